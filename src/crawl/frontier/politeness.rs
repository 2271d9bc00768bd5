//! How servers are treated: how long each is left alone between two requests.

use std::time::Duration;

/// However slow a server is, its answer time alone keeps it from being asked for no longer than this.
const ADAPTED_DELAY_MAX: Duration = Duration::from_secs(30);

/// How long and how often servers are asked.
#[derive(Debug, Clone)]
pub struct Politeness {
    /// From the end of one request to a host to the start of the next.
    pub host_delay: Duration,
    /// The same for an address, which may serve many hosts.
    pub address_delay: Duration,
    /// A host that took a time to answer is left alone for this many times as long, if that is more than its delay.
    pub answer_factor: f64,
    /// Requests under way to one host.
    pub per_host: u32,
    /// Requests under way to one address.
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
    /// No delay, and so many requests under way to a host and to an address: for servers of your own.
    #[must_use]
    pub const fn at_once(per_host: u32, per_address: u32) -> Self {
        let none = Duration::ZERO;
        Self { host_delay: none, address_delay: none, answer_factor: 1.0, per_host, per_address }
    }

    /// How long a host is left alone after a request that lasted `elapsed`, if it has a delay of its `own`, or asked for a `pause`.
    pub(super) fn delay_after(
        &self,
        own: Option<Duration>,
        elapsed: Duration,
        pause: Option<Duration>,
    ) -> Duration {
        let delay = own.unwrap_or(self.host_delay);
        // A server that takes long to answer is busy: it is left alone for a multiple of that time.
        let adapted = elapsed.mul_f64(self.answer_factor).min(ADAPTED_DELAY_MAX);
        let delay = if delay.is_zero() { delay } else { delay.max(adapted) };
        delay.max(pause.unwrap_or_default())
    }
}
