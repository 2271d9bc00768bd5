//! The clock for waiting on stores: the machine's, or one controlled by a test.

use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::future::{BoxFuture, Either, select};

/// A monotonic clock.
pub trait Time: Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Instant;
    /// Returns the time of day for display; it may be adjusted.
    fn of_day(&self) -> DateTime<Utc>;
    /// Completes after `span`.
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

/// Waits for `work`, but drops it after `span`.
pub async fn within<T>(time: &dyn Time, span: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(work), time.sleep(span)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
