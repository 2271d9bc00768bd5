//! How servers are treated.

use std::time::Duration;

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
}
