//! The clock by which stores are waited for: the machine's, or one that a test turns.

use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::future::{BoxFuture, Either, select};

/// A monotonic clock.
pub trait Time: Debug + Send + Sync {
    /// The time.
    fn now(&self) -> Instant;
    /// The time of day, for people to read: it may be set.
    fn of_day(&self) -> DateTime<Utc>;
    /// Ends after so long.
    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()>;
}

/// The clock of the machine. Sleeping needs a [`runtime`](super::runtime).
#[derive(Clone, Copy, Debug)]
pub struct MachineTime;

impl Time for MachineTime {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn of_day(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(span))
    }
}

/// Waits for something, but no longer than so long; what has not ended by then is given up.
pub async fn within<T>(time: &dyn Time, span: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(work), time.sleep(span)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
