//! Politeness: how long each server is left alone between two requests.

use std::time::Duration;

/// Maximum delay that follows from a server's response time.
const ADAPTED_DELAY_MAX: Duration = Duration::from_secs(30);

/// How often, and how many at a time, servers are asked.
#[derive(Debug, Clone)]
pub struct Politeness {
    /// Delay from the end of one request to a host to the start of the next.
    pub host_delay: Duration,
    /// The same for an address, which may serve many hosts.
    pub address_delay: Duration,
    /// The delay of a host is at least this multiple of its response time.
    pub answer_factor: f64,
    /// Maximum number of requests in flight to one host.
    pub per_host: u32,
    /// Maximum number of requests in flight to one address.
    pub per_address: u32,
}

impl Default for Politeness {
    fn default() -> Self {
        Self {
            host_delay: Duration::from_secs(2),
            address_delay: Duration::from_millis(500),
            answer_factor: 5.0,
            per_host: 1,
            per_address: 1,
        }
    }
}

impl Politeness {
    /// No delays, and this many requests in flight per host and per address: for servers of your own.
    #[must_use]
    pub const fn at_once(per_host: u32, per_address: u32) -> Self {
        let none = Duration::ZERO;
        Self { host_delay: none, address_delay: none, answer_factor: 1.0, per_host, per_address }
    }

    /// Returns the delay of a host after a request that took `elapsed`, given its `own` delay, if any, and the `pause`
    /// that it asked for.
    pub(super) fn delay_after(
        &self,
        own: Option<Duration>,
        elapsed: Duration,
        pause: Option<Duration>,
    ) -> Duration {
        let delay = own.unwrap_or(self.host_delay);
        // A slow server is busy: it is left alone for a multiple of its response time.
        let adapted = elapsed.mul_f64(self.answer_factor).min(ADAPTED_DELAY_MAX);
        let delay = if delay.is_zero() { delay } else { delay.max(adapted) };
        delay.max(pause.unwrap_or_default())
    }
}
