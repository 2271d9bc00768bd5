//! Slots for requests, shared by the crawls of one machine. Each crawl asks the process that started it before it asks
//! a server, and the crawl with the most important page gets the slot. So all partitions of a machine are crawled in
//! one order, as one archive would be.
//!
//! Both sides send single bytes over a socket, which is the standard input of the crawl. A crawl sends the level of its
//! best page, or 0 if it has none, and [`BACK`] when a request is over. The other side sends [`GRANTED`].

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crossbeam::channel::{Receiver, TryRecvError, bounded};

/// Byte that returns a slot. All other bytes of a crawl are levels.
const BACK: u8 = u8::MAX;

/// Byte that grants a crawl one more request.
const GRANTED: u8 = 1;

/// Maximum number of slots granted to a crawl and not yet used; it requests them one by one.
const GRANTS_MAX: usize = 16;

/// The slots of a machine.
#[derive(Clone, Debug)]
pub struct SlotsOfMachine(Arc<Mutex<SlotTable>>);

#[derive(Debug)]
struct SlotTable {
    free: usize,
    crawls: BTreeMap<u64, SlotHolder>,
    begun: u64,
}

#[derive(Debug)]
struct SlotHolder {
    socket: UnixStream,
    /// The level of its best page; 0 if it needs no slot.
    level: u8,
    held: usize,
}

impl SlotsOfMachine {
    /// Allows `count` concurrent requests.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(SlotTable { free: count, crawls: BTreeMap::new(), begun: 0 })))
    }

    /// Adds a crawl, which takes part until it ends. Returns its end of the socket.
    ///
    /// # Errors
    /// If there are no more sockets or threads.
    pub fn join(&self) -> io::Result<OwnedFd> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut reader = ours.try_clone()?;
        let number = {
            let mut crawls = self.lock();
            crawls.begun += 1;
            let number = crawls.begun;
            crawls.crawls.insert(number, SlotHolder { socket: ours, level: 0, held: 0 });
            number
        };
        let slots = self.clone();
        thread::Builder::new().name("slots".to_owned()).spawn(move || {
            let mut bytes = [0; 256];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                slots.lock().hear(number, bytes.get(..count).unwrap_or_default());
            }
            slots.lock().leave(number);
        })?;
        Ok(theirs.into())
    }

    fn lock(&self) -> MutexGuard<'_, SlotTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotTable {
    fn hear(&mut self, number: u64, bytes: &[u8]) {
        let Some(crawl) = self.crawls.get_mut(&number) else { return };
        for &byte in bytes {
            if byte != BACK {
                crawl.level = byte;
            } else if crawl.held > 0 {
                crawl.held -= 1;
                self.free += 1;
            }
        }
        self.grant();
    }

    fn leave(&mut self, number: u64) {
        self.free += self.crawls.remove(&number).map_or(0, |crawl| crawl.held);
        self.grant();
    }

    /// Grants free slots to the crawls with the best pages; among equal ones, to the crawl with the fewest slots.
    fn grant(&mut self) {
        while self.free > 0 {
            let best = self.crawls.values_mut().max_by_key(|crawl| (crawl.level, Reverse(crawl.held)));
            let Some(crawl) = best.filter(|crawl| crawl.level > 0) else { return };
            // The crawl sends its level again after it has received this.
            crawl.level = 0;
            // If the crawl is gone, its reader notices and returns its slots.
            if crawl.socket.write_all(&[GRANTED]).is_ok() {
                crawl.held += 1;
                self.free -= 1;
            }
        }
    }
}

/// The slots of a crawl, granted by the process that started it.
#[derive(Debug)]
pub struct Slots {
    socket: UnixStream,
    /// Grants; disconnected when the other process is gone.
    pub granted: Receiver<()>,
    unused: usize,
    /// The level that the other side knows.
    said: u8,
    is_over: bool,
}

impl Slots {
    /// Uses the standard input of this process.
    ///
    /// # Errors
    /// If it is not a socket, or no thread can be started.
    pub fn from_stdin() -> io::Result<Self> {
        Self::over(io::stdin().as_fd().try_clone_to_owned()?)
    }

    fn over(socket: OwnedFd) -> io::Result<Self> {
        let socket = UnixStream::from(socket);
        let mut reader = socket.try_clone()?;
        let (sender, granted) = bounded(GRANTS_MAX);
        thread::Builder::new().name("slots".to_owned()).spawn(move || {
            let mut byte = [0];
            while reader.read_exact(&mut byte).is_ok() && sender.send(()).is_ok() {}
        })?;
        Ok(Self { socket, granted, unused: 0, said: 0, is_over: false })
    }

    /// Whether one more request may be sent; `level` is that of the best one, 0 if there is none. Unused slots are
    /// returned if there is none.
    pub fn may_ask(&mut self, level: u8) -> bool {
        loop {
            match self.granted.try_recv() {
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) if self.is_over => return false,
                heard => self.heard(heard.is_ok()),
            }
        }
        if level == 0 {
            (0..std::mem::take(&mut self.unused)).for_each(|_| self.say(BACK));
        }
        if self.unused == 0 && level != self.said {
            self.said = level;
            self.say(level);
        }
        self.unused > 0
    }

    /// Uses a slot for a request.
    pub fn take(&mut self) {
        self.unused = self.unused.saturating_sub(1);
    }

    /// Returns the slot of a finished request.
    pub fn give_back(&mut self) {
        self.say(BACK);
    }

    /// Records that a slot was granted, or that the other process is gone.
    pub fn heard(&mut self, is_granted: bool) {
        self.is_over |= !is_granted;
        self.unused += usize::from(is_granted);
        self.said = 0;
    }

    /// Whether a request is waiting for a slot.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.said > 0
    }

    /// Whether the process that started the crawl is gone.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn say(&mut self, byte: u8) {
        self.is_over |= self.socket.write_all(&[byte]).is_err();
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // The reading thread also has the socket, and would keep it open until the process ends.
        drop(self.socket.shutdown(Shutdown::Both));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn crawl(machine: &SlotsOfMachine) -> Slots {
        Slots::over(machine.join().unwrap()).unwrap()
    }

    /// Waits for a grant and uses it.
    fn take(slots: &mut Slots) {
        slots.granted.recv_timeout(PATIENCE).unwrap();
        slots.heard(true);
        slots.take();
    }

    #[test]
    fn the_best_page_is_asked_first_and_what_a_crawl_held_is_free_when_it_ends() {
        let machine = SlotsOfMachine::new(2);
        let [mut low, mut high] = [crawl(&machine), crawl(&machine)];
        assert!(!low.may_ask(3));
        take(&mut low);
        assert!(!low.may_ask(3));
        take(&mut low);
        // All slots are in use; both crawls wait for the next one.
        assert!(!low.may_ask(3) && !high.may_ask(9));
        assert!(low.is_waiting() && high.is_waiting());
        let hears = || machine.lock().crawls.values().map(|crawl| crawl.level).collect::<Vec<_>>();
        while hears() != [3, 9] {
            thread::yield_now();
        }
        low.give_back();
        take(&mut high);
        assert!(low.granted.try_recv().is_err() && low.is_waiting());
        drop(high);
        take(&mut low);
        assert_eq!(machine.lock().free, 0);
        // Slots that are granted but not used are returned.
        low.give_back();
        assert!(!low.may_ask(1));
        low.granted.recv_timeout(PATIENCE).unwrap();
        low.heard(true);
        assert!(!low.may_ask(0));
        while machine.lock().free == 0 {
            thread::yield_now();
        }
        drop(machine);
    }

    #[test]
    fn a_crawl_can_give_back_only_what_it_has_and_notices_when_the_other_side_is_gone() {
        let machine = SlotsOfMachine::new(1);
        let mut slots = crawl(&machine);
        (0..5).for_each(|_| slots.give_back());
        slots.may_ask(7);
        take(&mut slots);
        assert_eq!(machine.lock().free, 0);
        machine.lock().crawls.clear();
        // The reader of the other side holds the socket until this side closes it; a process that ends closes both.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut slots = Slots::over(theirs.into()).unwrap();
        drop(ours);
        while !slots.is_over() {
            slots.may_ask(7);
        }
    }
}
