//! Lanes: which requests are answered at once, so that those that take long do not delay the others.
//!
//! Each kind of request has places, and threads, of its own. Costly ones are answered by threads of low priority: beside
//! them, a crawl and the other lanes hardly get slower. Operators have a lane to themselves. Nobody else has more than a
//! part of the places for pages, or for what is costly: other requests of a client wait until it has its earlier answers.

use std::sync::Arc;
use std::time::Duration;

use archive_base::access::Role;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::http::Origin;

/// Maximum number of requests that are answered concurrently, by lane; others wait. With fewer quick ones, waiting for a
/// place costs as much as the answer.
const QUICK_MAX: usize = 8;
const OPERATORS_MAX: usize = 2;
const PAGES_MAX: usize = 8;
const COSTLY_MAX: usize = 4;

/// Maximum number of them for one client.
const PAGES_OF_ONE_MAX: usize = PAGES_MAX * 3 / 4;
const COSTLY_OF_ONE_MAX: usize = COSTLY_MAX / 2;

/// Threads for them, except for the costly ones.
pub(super) const THREADS: usize = QUICK_MAX + OPERATORS_MAX + PAGES_MAX;

/// How long a request waits for its turn.
const TURN_WAIT_MAX: Duration = Duration::from_secs(30);

/// Priority of threads for costly requests (setpriority(2)). Each has a thirtieth of the weight of another thread: all of
/// them, and their helpers, take a tenth of two busy processors, and a single one still gets something.
const NICENESS: i32 = 15;

/// Makes the current thread one of low priority. Without permission it competes with the others.
pub fn lower_priority() {
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// The threads for costly requests.
pub(super) fn slow_threads() -> std::io::Result<Runtime> {
    let mut threads = Builder::new_current_thread();
    threads
        .max_blocking_threads(COSTLY_MAX)
        .thread_name("serve-costly")
        .on_thread_start(lower_priority)
        .build()
}

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneKind {
    /// The start page, texts, and pages on the server itself.
    Quick,
    /// A page of the archive, or about one.
    Page,
    /// A search, a query, a package, or others that read much of the archive.
    Costly,
}

impl LaneKind {
    /// The kind of a request by its address.
    pub(super) fn of(origin: Origin, path: &str) -> Self {
        let (bare, query) = path.split_once('?').unwrap_or((path, ""));
        match (origin, bare.split('/').nth(1).unwrap_or_default()) {
            (Origin::Application, "query" | "search" | "pictures" | "compare" | "read" | "wacz" | "ask") => {
                Self::Costly
            }
            // The captures of one URL are as quick as its TimeMap.
            (Origin::Replay, "cdx") if archive_replay::asks_for_many(query) => Self::Costly,
            (Origin::Application, "page" | "site" | "review")
            | (Origin::Replay, "web" | "timegate" | "timemap" | "warc" | "cdx") => Self::Page,
            _ => Self::Quick,
        }
    }
}

/// The lanes of a server.
#[derive(Debug)]
pub(super) struct Lanes {
    quick: Lane,
    operators: Lane,
    pages: Lane,
    costly: Lane,
}

/// Places for requests of a kind, and where their threads are.
#[derive(Debug)]
struct Lane {
    places: Arc<Semaphore>,
    threads: Handle,
}

/// The part of a client in the places of lanes.
#[derive(Debug)]
pub(super) struct OwnPlaces {
    pages: Arc<Semaphore>,
    costly: Arc<Semaphore>,
}

impl Default for OwnPlaces {
    fn default() -> Self {
        let of = |places: usize| Arc::new(Semaphore::new(places));
        Self { pages: of(PAGES_OF_ONE_MAX), costly: of(COSTLY_OF_ONE_MAX) }
    }
}

/// A request's turn: its place in the lane, and in its client's part of it. Whoever has it may use a thread.
#[derive(Debug)]
pub(super) struct LaneTurn {
    threads: Handle,
    places: TurnPlaces,
}

/// The places of a request.
type TurnPlaces = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

impl Lane {
    fn new(places: usize, threads: &Handle) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), threads: threads.clone() }
    }

    fn turn(&self, places: TurnPlaces) -> LaneTurn {
        LaneTurn { threads: self.threads.clone(), places }
    }

    fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }
}

impl Lanes {
    /// Creates lanes with these threads; `slow` are those for costly requests.
    pub(super) fn new(threads: &Handle, slow: &Handle) -> Self {
        Self {
            quick: Lane::new(QUICK_MAX, threads),
            operators: Lane::new(OPERATORS_MAX, threads),
            pages: Lane::new(PAGES_MAX, threads),
            costly: Lane::new(COSTLY_MAX, slow),
        }
    }

    /// Waits for the turn of a request, of a client with these places of its own; `None` if that takes too long.
    pub(super) async fn turn(
        &self,
        kind: LaneKind,
        role: Option<Role>,
        own: Option<&OwnPlaces>,
    ) -> Option<LaneTurn> {
        let (lane, part) = match kind {
            LaneKind::Costly => (&self.costly, own.map(|own| &own.costly)),
            _ if role == Some(Role::Operator) => (&self.operators, None),
            LaneKind::Page => (&self.pages, own.map(|own| &own.pages)),
            LaneKind::Quick => (&self.quick, None),
        };
        // A costly request of an operator does not stand behind those of others, but leaves one place free.
        let operators = &self.operators;
        if kind == LaneKind::Costly
            && role == Some(Role::Operator)
            && operators.places.available_permits() > 1
            && let Some(place) = operators.place()
        {
            return Some(operators.turn((place, None)));
        }
        let waiting = async {
            let part = match part {
                Some(part) => Some(Arc::clone(part).acquire_owned().await.ok()?),
                None => None,
            };
            Some((Arc::clone(&lane.places).acquire_owned().await.ok()?, part))
        };
        Some(lane.turn(tokio::time::timeout(TURN_WAIT_MAX, waiting).await.ok()??))
    }
}

impl LaneTurn {
    /// Runs `work` on a thread of the lane, and returns what it returns together with the turn. If nobody waits for it any
    /// more, the turn lasts until the work is done.
    pub(super) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<(T, TurnPlaces)> {
        let Self { threads, places } = self;
        threads.spawn_blocking(move || (work(), places)).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The turn of a request, if it has it at once.
    async fn now(lanes: &Lanes, kind: LaneKind, role: Option<Role>, own: &OwnPlaces) -> Option<LaneTurn> {
        tokio::time::timeout(Duration::from_millis(50), lanes.turn(kind, role, Some(own))).await.ok()?
    }

    #[tokio::test]
    async fn nobody_has_more_places_than_one_may_have() {
        let lanes = Lanes::new(&Handle::current(), &Handle::current());
        for (kind, most) in [(LaneKind::Page, PAGES_OF_ONE_MAX), (LaneKind::Costly, COSTLY_OF_ONE_MAX)] {
            let [one, other] = [OwnPlaces::default(), OwnPlaces::default()];
            let mut held = Vec::new();
            for _ in 0..most {
                held.push(now(&lanes, kind, None, &one).await.unwrap());
            }
            assert!(now(&lanes, kind, None, &one).await.is_none(), "{kind:?}");
            assert!(now(&lanes, kind, None, &other).await.is_some(), "{kind:?}");
            held.pop();
            assert!(now(&lanes, kind, None, &one).await.is_some(), "{kind:?}");
        }
    }

    #[tokio::test]
    async fn costly_requests_leave_room_for_the_others_and_for_operators() {
        let (lanes, operator) = (Lanes::new(&Handle::current(), &Handle::current()), Some(Role::Operator));
        let mut held = Vec::new();
        let [one, other] = [OwnPlaces::default(), OwnPlaces::default()];
        for own in [&one, &other].into_iter().cycle().take(COSTLY_MAX) {
            held.extend(now(&lanes, LaneKind::Costly, None, own).await);
        }
        let one = &OwnPlaces::default();
        assert!(now(&lanes, LaneKind::Costly, None, one).await.is_none());
        held.extend(now(&lanes, LaneKind::Costly, operator, one).await);
        assert_eq!(held.len(), COSTLY_MAX + 1);
        assert!(
            now(&lanes, LaneKind::Costly, operator, one).await.is_none(),
            "one is left for the start page"
        );
        assert!(now(&lanes, LaneKind::Quick, operator, one).await.is_some());
        for kind in [LaneKind::Quick, LaneKind::Page] {
            assert!(now(&lanes, kind, None, one).await.is_some());
        }
        held.clear();
        assert!(now(&lanes, LaneKind::Costly, None, one).await.is_some());
    }

    #[test]
    fn addresses_have_kinds() {
        for (origin, path, kind) in [
            (Origin::Application, "/", LaneKind::Quick),
            (Origin::Application, "/query.js", LaneKind::Quick),
            (Origin::Application, "/query?q=page", LaneKind::Costly),
            (Origin::Application, "/review/site?name=a", LaneKind::Page),
            (Origin::Application, "/page?url=a", LaneKind::Page),
            (Origin::Application, "/cdx?url=a", LaneKind::Quick),
            (Origin::Replay, "/cdx?url=a", LaneKind::Page),
            (Origin::Replay, "/cdx?url=a.org/*", LaneKind::Costly),
            (Origin::Replay, "/cdx?matchType=domain&url=a.org", LaneKind::Costly),
            (Origin::Replay, "/web/2020id_/http://a.org/query", LaneKind::Page),
        ] {
            assert_eq!(LaneKind::of(origin, path), kind, "{path}");
        }
    }
}
