//! How long leases and turns of a cluster last. All nodes have this from `cluster.json`, so that they agree.

use std::time::Duration;

use super::turns::GUARD;

/// How long a check of the newest epoch holds, in seconds, unless `cluster.json` says otherwise.
pub(super) const LEASE_SECONDS: u8 = 10;

/// The shortest lease: a turn of two leases still has time for requests beside its [`GUARD`].
pub(super) const LEASE_SECONDS_MIN: u8 = 3;

/// The spans of a cluster; all follow from its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    lease: Duration,
}

impl Default for Spans {
    fn default() -> Self {
        Self::of(LEASE_SECONDS)
    }
}

impl Spans {
    /// Returns the spans for a lease in seconds, which is at least [`LEASE_SECONDS_MIN`].
    pub(super) fn of(lease_seconds: u8) -> Self {
        Self { lease: Duration::from_secs(lease_seconds.into()) }
    }

    /// How long a check of the newest epoch holds, and a look at the addresses of others.
    pub(super) fn lease(self) -> Duration {
        self.lease
    }

    /// How long a node waits for the lease of the previous one, with a margin for requests in flight.
    pub(super) fn takeover(self) -> Duration {
        self.lease * 3 / 2
    }

    /// How long the store may take to write or remove an object. A slower request is repeated after checking that the
    /// partition still belongs to this node.
    pub(super) fn write_max(self) -> Duration {
        self.lease / 2
    }

    /// Interval between two looks at what others have sent, while there is work.
    #[must_use]
    pub fn poll(self) -> Duration {
        self.lease / 5
    }

    /// A status is published again after this time. This shows others that the node is alive and, while addresses are
    /// asked, yields the time of the store's clock.
    pub(super) fn pulse(self) -> Duration {
        self.lease * 3
    }

    /// How long to wait for partitions that had ended as complete and have got work since, if no others have work.
    pub(super) fn left_patience(self) -> Duration {
        self.lease * 3
    }

    /// Duration of a partition's turn at an address.
    pub(super) fn turn(self) -> Duration {
        self.lease * 2
    }

    /// The longest delay of an address that fits into a turn and leaves time for requests.
    #[must_use]
    pub fn address_delay_max(self) -> Duration {
        (self.lease * 13 / 10).saturating_sub(GUARD)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClusterError, Member};
    use super::*;

    #[test]
    fn a_lease_is_as_long_as_the_cluster_says_within_its_limits() {
        let store = tempfile::tempdir().unwrap();
        let url = format!("file://{}", store.path().display());
        for (more, lease) in [
            ("", Some(10)),
            (r#","lease_seconds":3"#, Some(3)),
            (r#","lease_seconds":10"#, Some(10)),
            (r#","lease_seconds":2"#, None),
            (r#","lease_seconds":11"#, None),
        ] {
            let cluster = format!(r#"{{"cluster":"c","partitions":2,"mode":"exchange"{more}}}"#);
            std::fs::write(store.path().join("cluster.json"), cluster).unwrap();
            let found = Member::find(&url, (1, 2), (None, None), None);
            match lease {
                Some(lease) => assert_eq!(found.unwrap().spans(), Spans::of(lease)),
                None => assert!(matches!(found, Err(ClusterError::Damaged { .. })), "{more}"),
            }
        }
        let longest = [LEASE_SECONDS, LEASE_SECONDS_MIN].map(|lease| Spans::of(lease).address_delay_max());
        assert_eq!(longest, [10_000, 900].map(Duration::from_millis));
    }
}
