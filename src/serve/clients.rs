//! Connections: how many there may be, which of them makes room for another, and how slowly a client may read.
//!
//! Clients that send requests and never read, or connect and say nothing, must not keep others out. So nobody waits to
//! be accepted: of too many connections, of all or of one client, one is dropped (`least_worthy`). What a client takes of
//! an answer is counted where it is written; who takes nothing, or next to nothing, is dropped as well. And nobody has
//! more than a part of the places in which answers are made.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::lanes::OwnPlaces;

/// Maximum number of concurrent connections.
pub(super) const CONNECTIONS_MAX: usize = 512;

/// Maximum number of concurrent connections of one client, which is an address, or of IPv6 a network: others find room
/// however many it makes. Many people may share an address with one who makes a storm of them; the more places it has,
/// the longer a new connection has before it is the oldest of those without an answer.
pub(super) const CONNECTIONS_OF_ONE_MAX: usize = 384;

/// How long a connection is a new one, which does not make room while others have been answered already.
const NEW_MAX: Duration = Duration::from_secs(2);

/// How long a new connection waits for the one that makes room for it.
const LEAVING_MAX: Duration = Duration::from_secs(1);

/// A client that takes nothing of an answer for this time is dropped.
const UNREAD_MAX: Duration = Duration::from_secs(10);

/// Number of networks from which on those without a connection are forgotten.
const NETWORKS_MAX: usize = 4 * CONNECTIONS_MAX;

/// Bytes a second that a client must take of a waiting answer, and how far it may fall behind: otherwise a byte every nine
/// seconds would hold an answer for days.
const RATE_MIN: u32 = 8 << 10;
const BEHIND_MAX: Duration = Duration::from_secs(30);

/// Bytes that the system takes of an answer and has not sent yet. By default it takes megabytes, which a slow client
/// reads for longer than [`UNREAD_MAX`] before anything more can be written.
const UNSENT_BYTES_MAX: u32 = 64 << 10;

/// The connections of a server.
#[derive(Debug)]
pub(super) struct Clients {
    places: Arc<Semaphore>,
    all: Mutex<HashMap<u64, Arc<Client>>>,
    /// The networks of clients that are connected, or named by a web server in front.
    networks: Mutex<HashMap<IpAddr, Weak<Network>>>,
    /// Number of connections so far.
    number: AtomicU64,
    began: Instant,
}

/// What one client has many of, and another does not: its address, or of IPv6 its network.
#[derive(Debug)]
pub(super) struct Network {
    /// Number of its connections.
    connections: AtomicUsize,
    /// Its places in each lane.
    pub(super) places: OwnPlaces,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Client {
    network: Arc<Network>,
    /// When the server began, and when the connection did.
    began: Instant,
    since: Instant,
    /// When the client last sent or took something, in milliseconds.
    moved: AtomicU64,
    /// Whether it has proved who it is, whether it has got an answer, and whether the server owes it one.
    is_known: AtomicBool,
    is_answered: AtomicBool,
    is_waiting: AtomicBool,
    is_dropped: AtomicBool,
    /// The task that serves it, once it is there.
    serving: OnceLock<AbortHandle>,
}

/// The place of a connection.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    clients: Arc<Clients>,
    number: u64,
    pub(super) client: Arc<Client>,
    _permit: OwnedSemaphorePermit,
}

impl Clients {
    pub(super) fn new(most: usize) -> Self {
        let places = Arc::new(Semaphore::new(most));
        Self {
            places,
            all: Mutex::default(),
            networks: Mutex::default(),
            number: AtomicU64::new(0),
            began: Instant::now(),
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Arc<Client>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection, of a web server in front (which has those of all its clients) or of one client, for which another one is dropped if there are too many. `None` if that one does not end.
    pub(super) async fn admit(self: &Arc<Self>, address: IpAddr, is_front: bool) -> Option<ConnectionPlace> {
        let network = self.network(address);
        if !is_front && network.connections.load(Ordering::Relaxed) >= CONNECTIONS_OF_ONE_MAX {
            self.drop_one(|client| Arc::ptr_eq(&client.network, &network));
        }
        let place = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.drop_one(|_| true);
                timeout(LEAVING_MAX, Arc::clone(&self.places).acquire_owned()).await.ok()?.ok()?
            }
        };
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let client = Arc::new(Client::new(network, self.began));
        self.all().insert(number, Arc::clone(&client));
        Some(ConnectionPlace { clients: Arc::clone(self), number, client, _permit: place })
    }

    /// The network of a client.
    pub(super) fn network(&self, address: IpAddr) -> Arc<Network> {
        let mut networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        let address = network(address);
        if let Some(known) = networks.get(&address).and_then(Weak::upgrade) {
            return known;
        }
        if networks.len() >= NETWORKS_MAX {
            networks.retain(|_, network| network.strong_count() > 0);
        }
        let new = Arc::new(Network { connections: AtomicUsize::new(0), places: OwnPlaces::default() });
        networks.insert(address, Arc::downgrade(&new));
        new
    }

    /// Drops the least worthy of some connections.
    fn drop_one(&self, is_one: impl Fn(&Client) -> bool) {
        let mut all = self.all();
        // It is removed at once, so that the next connection does not choose the same one.
        if let Some(client) = least_worthy(&all, is_one).and_then(|number| remove(&mut all, number)) {
            client.disconnect();
        }
    }
}

/// Removes a connection, which no longer counts.
fn remove(all: &mut HashMap<u64, Arc<Client>>, number: u64) -> Option<Arc<Client>> {
    let client = all.remove(&number)?;
    client.network.connections.fetch_sub(1, Ordering::Relaxed);
    Some(client)
}

/// The connection that makes room: rather a stranger's than one of somebody who has logged in; of these, one of the
/// address with the most connections; rather one that has been answered than a new one, which otherwise would leave before
/// its request is read while others ask over and over, and of new ones the oldest; rather one whose client is to act than
/// one that waits for the server; and the one that has been still for the longest time.
fn least_worthy(all: &HashMap<u64, Arc<Client>>, is_one: impl Fn(&Client) -> bool) -> Option<u64> {
    let worth = |client: &Client| {
        let is = |fact: &AtomicBool| fact.load(Ordering::Relaxed);
        let is_new = !is(&client.is_answered) && client.since.elapsed() < NEW_MAX;
        let count = Reverse(client.network.connections.load(Ordering::Relaxed));
        // What a busy server has not read yet says nothing of a new client.
        let (is_waiting, still_since) = match is_new {
            true => (false, client.since.duration_since(client.began).as_millis() as u64),
            false => (is(&client.is_waiting), client.moved.load(Ordering::Relaxed)),
        };
        (is(&client.is_known), count, is_new, is_waiting, still_since)
    };
    let of = all.iter().filter(|(_, client)| is_one(client));
    of.min_by_key(|(_, client)| worth(client)).map(|(number, _)| *number)
}

/// An address, or of IPv6 its network.
fn network(address: IpAddr) -> IpAddr {
    // A listener at `::` names IPv4 clients as parts of one network.
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

impl Client {
    fn new(network: Arc<Network>, began: Instant) -> Self {
        let client = Self {
            network,
            began,
            since: Instant::now(),
            moved: AtomicU64::new(0),
            is_known: AtomicBool::new(false),
            is_answered: AtomicBool::new(false),
            is_waiting: AtomicBool::new(false),
            is_dropped: AtomicBool::new(false),
            serving: OnceLock::new(),
        };
        client.network.connections.fetch_add(1, Ordering::Relaxed);
        client.moves();
        client
    }

    fn moves(&self) {
        self.moved.store(self.began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Notes that it has proved who it is.
    pub(super) fn mark_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// Its network, unless a web server in front names another client.
    pub(super) fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Notes the task that serves it.
    pub(super) fn set_task(&self, task: AbortHandle) {
        let task = self.serving.get_or_init(|| task);
        // It may have had to make room before.
        if self.is_dropped.load(Ordering::SeqCst) {
            task.abort();
        }
    }

    fn disconnect(&self) {
        self.is_dropped.store(true, Ordering::SeqCst);
        self.serving.get().into_iter().for_each(AbortHandle::abort);
    }

    /// Notes that it waits for an answer, or has got one.
    pub(super) fn waits(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Ordering::Relaxed);
        self.is_answered.fetch_or(!is_waiting, Ordering::Relaxed);
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        remove(&mut self.clients.all(), self.number);
    }
}

/// How a client keeps up with what is sent.
#[derive(Debug, Default)]
struct ReadingPace {
    /// Since when it has taken nothing.
    since: Option<Instant>,
    /// How far it is behind.
    behind: Duration,
}

impl ReadingPace {
    /// Until when it may take nothing more.
    fn until(&mut self, now: Instant) -> Instant {
        let since = *self.since.get_or_insert(now);
        since + UNREAD_MAX.min(BEHIND_MAX.saturating_sub(self.behind))
    }

    /// Notes what it has taken. The time matters only if it has waited.
    fn takes(&mut self, bytes: usize, now: impl FnOnce() -> Instant) {
        if self.since.is_none() && self.behind.is_zero() {
            return;
        }
        let waited = self.since.take().map_or(Duration::ZERO, |since| now() - since);
        let worth = Duration::from_secs(1) * u32::try_from(bytes).unwrap_or(u32::MAX) / RATE_MIN;
        self.behind = (self.behind + waited).saturating_sub(worth);
    }
}

/// The stream of a connection, which fails when its client is too slow.
#[derive(Debug)]
pub(super) struct Watched {
    stream: TcpStream,
    client: Arc<Client>,
    pace: ReadingPace,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Watched {
    pub(super) fn new(stream: TcpStream, client: Arc<Client>) -> Self {
        // If the system refuses, it keeps more than it has to.
        let _ = stream.set_nodelay(true);
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
        Self { stream, client, pace: ReadingPace::default(), timer: None }
    }

    fn written(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if outcome.is_pending() {
            let until = self.pace.until(Instant::now());
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
            ready!(timer.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if let Poll::Ready(Ok(bytes)) = outcome {
            self.pace.takes(bytes, Instant::now);
            self.client.moves();
        }
        self.timer = None;
        outcome
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.pace.since.is_some() {
            // What a client did not read would otherwise stay with the system, which goes on offering it.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.client.moves();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_nothing_or_next_to_nothing_is_too_slow() {
        let start = Instant::now();
        let mut pace = ReadingPace::default();
        assert_eq!(pace.until(start), start + UNREAD_MAX);
        assert_eq!(pace.until(start + Duration::from_secs(9)), start + UNREAD_MAX, "nothing was taken since");
        let mut now = start;
        let mut take = |bytes: usize| {
            let until = pace.until(now);
            now += Duration::from_secs(9);
            pace.takes(bytes, || now);
            until.duration_since(now - Duration::from_secs(9))
        };
        let often: Vec<u64> = (0..100).map(|_| take(9 * RATE_MIN as usize).as_secs()).collect();
        assert!(often.iter().all(|allowed| *allowed == 10), "who keeps the rate may go on for ever");
        let dripping: Vec<u64> = (0..4).map(|_| take(1).as_secs()).collect();
        assert_eq!(dripping, [10, 10, 10, 3], "a byte every nine seconds is too little soon");
        take(100 * RATE_MIN as usize);
        assert_eq!(take(1).as_secs(), 10, "what is made up for counts no more, and nothing is saved");
        assert_eq!(take(1).as_secs(), 10);
    }

    #[test]
    fn strangers_and_the_many_make_room_first() {
        let began = Instant::now();
        let mut all = HashMap::new();
        let clients = Clients::new(9);
        let mut add = |number: u64, address: &str, is_known: bool, is_waiting: bool, moved: u64| {
            let client = Client::new(clients.network(address.parse().unwrap()), began);
            client.is_known.store(is_known, Ordering::Relaxed);
            client.is_answered.store(number != 3, Ordering::Relaxed);
            client.is_waiting.store(is_waiting, Ordering::Relaxed);
            client.moved.store(moved, Ordering::Relaxed);
            all.insert(number, Arc::new(client));
        };
        add(1, "192.0.2.1", false, false, 0);
        add(2, "2001:db8::1", false, true, 5);
        add(3, "2001:db8::2:1", false, false, 4);
        add(4, "2001:db8::3:1", false, true, 1);
        for number in 5..9 {
            add(number, "192.0.2.2", true, false, 0);
        }
        let mut order = Vec::new();
        while let Some(next) = least_worthy(&all, |_| true).filter(|_| all.len() > 4) {
            remove(&mut all, next);
            order.push(next);
        }
        // Two of the network with three, not the new one; then who is to act, and the other; the new one stays.
        assert_eq!(order, [4, 2, 1, 3]);
    }

    #[tokio::test]
    async fn a_newcomer_gets_the_place_of_one_that_is_dropped() {
        let clients = Arc::new(Clients::new(2));
        let address = "192.0.2.1".parse().unwrap();
        let first = clients.admit(address, false).await.unwrap();
        let second = clients.admit(address, false).await.unwrap();
        second.client.mark_known();
        serve(first);
        let third = clients.admit(address, false).await.unwrap();
        assert_eq!(clients.all().len(), 2);
        drop((second, third));
        assert!(clients.all().is_empty());
    }

    /// Serves a connection until it is dropped.
    fn serve(place: ConnectionPlace) {
        let client = Arc::clone(&place.client);
        let serving = tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(place);
        });
        client.set_task(serving.abort_handle());
    }

    #[tokio::test]
    async fn nobody_has_more_connections_than_one_may_have() {
        let clients = Arc::new(Clients::new(CONNECTIONS_MAX + CONNECTIONS_OF_ONE_MAX));
        let of = |network: &str| {
            let network = clients.network(network.parse().unwrap());
            clients.all().values().filter(|client| Arc::ptr_eq(&client.network, &network)).count()
        };
        // The addresses of a network are one client, and another network is another.
        for number in 0..CONNECTIONS_OF_ONE_MAX + 9 {
            let address = format!("2001:db8:0:7::{number:x}").parse().unwrap();
            serve(clients.admit(address, false).await.unwrap());
            assert_eq!(of("2001:db8:0:7::"), CONNECTIONS_OF_ONE_MAX.min(number + 1));
        }
        serve(clients.admit("2001:db8:0:8::1".parse().unwrap(), false).await.unwrap());
        assert_eq!((of("2001:db8:0:7::"), of("2001:db8:0:8::")), (CONNECTIONS_OF_ONE_MAX, 1));
        // A web server in front has the connections of all its clients.
        for number in 0..=CONNECTIONS_OF_ONE_MAX {
            serve(clients.admit("127.0.0.1".parse().unwrap(), true).await.unwrap());
            assert_eq!(of("127.0.0.1"), number + 1);
        }
    }

    #[test]
    fn networks_that_are_gone_are_forgotten() {
        let clients = Clients::new(1);
        let stays = clients.network("192.0.2.1".parse().unwrap());
        for number in 0..2 * NETWORKS_MAX as u32 {
            clients.network(std::net::Ipv4Addr::from_bits(number).into());
            assert!(clients.networks.lock().unwrap().len() <= NETWORKS_MAX);
        }
        assert!(Arc::ptr_eq(&stays, &clients.network("::ffff:192.0.2.1".parse().unwrap())));
    }
}
