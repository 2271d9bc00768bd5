//! Connections kept open between requests.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::Endpoint;

/// Maximum number of idle connections to one server.
const PER_ENDPOINT_MAX: usize = 32;

/// Maximum number of servers with idle connections: each connection costs a file handle.
const ENDPOINTS_MAX: usize = 256;

/// An idle connection older than this is closed rather than reused: most servers have closed it by then.
const AGE_MAX: Duration = Duration::from_secs(15);

/// Idle connections, each with the time since when it has been idle.
pub(super) struct IdleConnections<C>(HashMap<Endpoint, Vec<(Instant, C)>>);

impl<C> Default for IdleConnections<C> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<C> IdleConnections<C> {
    /// Takes the most recently used connection to a server.
    pub(super) fn take(&mut self, endpoint: &Endpoint) -> Option<C> {
        let connections = self.0.get_mut(endpoint)?;
        let found = connections.pop().filter(|(since, _)| since.elapsed() < AGE_MAX);
        if found.is_none() || connections.is_empty() {
            self.0.remove(endpoint);
        }
        found.map(|(_, connection)| connection)
    }

    /// Keeps a connection, or closes it if there are too many.
    pub(super) fn put(&mut self, endpoint: Endpoint, connection: C) {
        if self.0.len() >= ENDPOINTS_MAX && !self.0.contains_key(&endpoint) {
            self.0.retain(|_, connections| {
                connections.retain(|(since, _)| since.elapsed() < AGE_MAX);
                !connections.is_empty()
            });
            if self.0.len() >= ENDPOINTS_MAX {
                return;
            }
        }
        let connections = self.0.entry(endpoint).or_default();
        if connections.len() < PER_ENDPOINT_MAX {
            connections.push((Instant::now(), connection));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Place;
    use super::*;

    fn endpoint(port: usize) -> Endpoint {
        let (host, place) = ("a.test".into(), Place::BehindProxy);
        Endpoint { secure: false, host, port: port as u16, place }
    }

    #[test]
    fn connections_and_servers_are_limited() {
        let mut idle = IdleConnections::default();
        for number in 0..PER_ENDPOINT_MAX + 5 {
            idle.put(endpoint(0), number);
        }
        let kept: Vec<usize> = std::iter::from_fn(|| idle.take(&endpoint(0))).collect();
        assert_eq!(kept, (0..PER_ENDPOINT_MAX).rev().collect::<Vec<_>>());
        for port in 0..ENDPOINTS_MAX + 5 {
            idle.put(endpoint(port), port);
        }
        let kept = (0..ENDPOINTS_MAX + 5).filter(|port| idle.take(&endpoint(*port)).is_some());
        assert_eq!(kept.count(), ENDPOINTS_MAX);
    }
}
