//! A clock that advances only when all tasks wait, and the tasks. The same seed always gives the same order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use archive_base::remote::Time;
use chrono::{DateTime, Utc};
use fastrand::Rng;
use futures_util::future::{BoxFuture, LocalBoxFuture};
use tokio::sync::oneshot;

type Call = Box<dyn FnOnce() + Send>;

struct Inner {
    now: Duration,
    random: Rng,
    /// Scheduled calls, by time and number.
    calls: BTreeMap<(Duration, u64), Call>,
    number: u64,
    ready: BTreeSet<u64>,
}

/// The clock and the scheduled calls.
pub(super) struct World {
    start: Instant,
    inner: Mutex<Inner>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World at {:?}", self.elapsed())
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let random = Rng::with_seed(seed);
        let (calls, ready) = (BTreeMap::new(), BTreeSet::new());
        let inner = Inner { now: Duration::ZERO, random, calls, number: 0, ready };
        Arc::new(Self { start: Instant::now(), inner: Mutex::new(inner) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.inner().now
    }

    /// A random number below `end`.
    pub(super) fn below(&self, end: u64) -> u64 {
        self.inner().random.u64(..end.max(1))
    }

    /// A random duration between two numbers of milliseconds.
    pub(super) fn span(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    /// Schedules a call, which happens even if its originator is gone by then.
    pub(super) fn after(&self, span: Duration, call: impl FnOnce() + Send + 'static) {
        let mut inner = self.inner();
        let (time, number) = (inner.now + span, inner.number);
        inner.number += 1;
        inner.calls.insert((time, number), Box::new(call));
    }
}

impl Time for World {
    fn now(&self) -> Instant {
        self.start + self.elapsed()
    }

    fn of_day(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + self.elapsed()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        let (sender, receiver) = oneshot::channel();
        self.after(span, move || sender.send(()).unwrap_or_default());
        Box::pin(async move { receiver.await.unwrap() })
    }
}

struct TaskWaker {
    world: Arc<World>,
    task: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.world.inner().ready.insert(self.task);
    }
}

struct Task {
    work: LocalBoxFuture<'static, ()>,
    waker: Waker,
    /// Until when the task is paused.
    stopped: Duration,
}

/// All tasks.
pub(super) struct Tasks {
    world: Arc<World>,
    tasks: BTreeMap<u64, Task>,
    begun: u64,
    /// Number of times that a task was resumed, which shows whether two runs are the same.
    pub(super) steps: u64,
}

impl Tasks {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self { world, tasks: BTreeMap::new(), begun: 0, steps: 0 }
    }

    pub(super) fn begin(&mut self, work: impl Future<Output = ()> + 'static) -> u64 {
        self.begun += 1;
        let waker = Waker::from(Arc::new(TaskWaker { world: Arc::clone(&self.world), task: self.begun }));
        waker.wake_by_ref();
        self.tasks.insert(self.begun, Task { work: Box::pin(work), waker, stopped: Duration::ZERO });
        self.begun
    }

    pub(super) fn is_alive(&self, task: u64) -> bool {
        self.tasks.contains_key(&task)
    }

    pub(super) fn kill(&mut self, task: u64) {
        self.tasks.remove(&task);
    }

    /// Pauses a task until a time.
    pub(super) fn stop(&mut self, task: u64, until: Duration) {
        if let Some(task) = self.tasks.get_mut(&task) {
            task.stopped = until;
        }
    }

    /// Runs all tasks until a time.
    pub(super) fn run_until(&mut self, end: Duration) {
        loop {
            while let Some(task) = self.pick() {
                self.go_on(task);
            }
            let mut inner = self.world.inner();
            if inner.calls.keys().next().is_none_or(|(time, _)| *time > end) {
                inner.now = end;
                return;
            }
            let Some(((time, _), call)) = inner.calls.pop_first() else { return };
            inner.now = time;
            drop(inner);
            call();
        }
    }

    /// Picks a random task that can continue.
    fn pick(&self) -> Option<u64> {
        let mut inner = self.world.inner();
        let count = inner.ready.len();
        let chosen = if count < 2 { 0 } else { inner.random.usize(..count) };
        let task = *inner.ready.iter().nth(chosen)?;
        inner.ready.remove(&task);
        Some(task)
    }

    fn go_on(&mut self, number: u64) {
        let Some(task) = self.tasks.get_mut(&number) else { return };
        let left = task.stopped.saturating_sub(self.world.elapsed());
        if !left.is_zero() {
            let waker = task.waker.clone();
            return self.world.after(left, move || waker.wake());
        }
        self.steps += 1;
        let waker = task.waker.clone();
        if task.work.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()) {
            self.tasks.remove(&number);
        }
    }
}
