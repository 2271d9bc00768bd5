//! Sessions, held in memory and keyed by digests of their cookies. They end with the server.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::SecretKey;

/// Maximum idle time of a session, and its maximum lifetime.
const IDLE_MAX: Duration = Duration::from_secs(2 * 3600);
const LIFE_MAX: Duration = Duration::from_secs(12 * 3600);

/// Maximum number of sessions per person, and in total; the least recently used one is ended.
const OF_ONE_MAX: usize = 16;
const ALL_MAX: usize = 4096;

/// Lifetime of a ticket, and maximum number of pending tickets.
const TICKET_LIFE: Duration = Duration::from_secs(30);
const TICKETS_MAX: usize = 1024;

#[derive(Debug)]
struct Session {
    name: String,
    /// Digest of the account when the session began.
    line: SecretKey,
    /// Digest of what the browser calls itself.
    client: SecretKey,
    began: Instant,
    used: Instant,
    /// Digest of the cookie for archived pages.
    pages: Option<SecretKey>,
}

#[derive(Debug)]
struct Ticket {
    id: SecretKey,
    session: SecretKey,
    path: String,
    made: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: HashMap<SecretKey, Session>,
    /// Sessions by the digests of their cookies for archived pages.
    pages: HashMap<SecretKey, SecretKey>,
    tickets: VecDeque<Ticket>,
}

impl Sessions {
    pub(super) fn begin(
        &mut self,
        id: SecretKey,
        name: String,
        [line, client]: [SecretKey; 2],
        now: Instant,
    ) {
        let over: Vec<SecretKey> =
            self.all.iter().filter(|(_, session)| session.is_over(now)).map(|(id, _)| *id).collect();
        over.iter().for_each(|id| self.end(id));
        let own = self.all.values().filter(|session| session.name == name).count();
        let is_meant = |session: &Session| own < OF_ONE_MAX || session.name == name;
        if own >= OF_ONE_MAX || self.all.len() >= ALL_MAX {
            let oldest =
                self.all.iter().filter(|(_, session)| is_meant(session)).min_by_key(|(_, it)| it.used);
            if let Some(id) = oldest.map(|(id, _)| *id) {
                self.end(&id);
            }
        }
        self.all.insert(id, Session { name, line, client, began: now, used: now, pages: None });
    }

    /// Finds a session by one of its two cookies: its key, the person's name, and the account's digest.
    pub(super) fn find(
        &mut self,
        id: &SecretKey,
        of_pages: bool,
        client: &SecretKey,
        now: Instant,
    ) -> Option<(SecretKey, String, SecretKey)> {
        let id = if of_pages { *self.pages.get(id)? } else { *id };
        let session = self.all.get_mut(&id).filter(|session| session.client == *client)?;
        if session.is_over(now) {
            self.end(&id);
            return None;
        }
        session.used = now;
        Some((id, session.name.clone(), session.line))
    }

    pub(super) fn end(&mut self, id: &SecretKey) {
        if let Some(pages) = self.all.remove(id).and_then(|session| session.pages) {
            self.pages.remove(&pages);
        }
    }

    pub(super) fn add_ticket(&mut self, id: SecretKey, session: SecretKey, path: String, now: Instant) {
        if self.tickets.len() >= TICKETS_MAX {
            self.tickets.pop_front();
        }
        self.tickets.push_back(Ticket { id, session, path, made: now });
    }

    /// The session and the address of a ticket, which is removed.
    pub(super) fn take_ticket(&mut self, id: &SecretKey, now: Instant) -> Option<(SecretKey, String)> {
        self.tickets.retain(|ticket| now.duration_since(ticket.made) < TICKET_LIFE);
        let place = self.tickets.iter().position(|ticket| ticket.id == *id)?;
        let ticket = self.tickets.remove(place)?;
        self.all.contains_key(&ticket.session).then_some((ticket.session, ticket.path))
    }

    pub(super) fn open_pages(&mut self, session: SecretKey, cookie: SecretKey) {
        if let Some(found) = self.all.get_mut(&session) {
            found.pages = Some(cookie);
            self.pages.insert(cookie, session);
        }
    }
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.used) >= IDLE_MAX || now.duration_since(self.began) >= LIFE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The account and the browser of all sessions.
    const OWN: [SecretKey; 2] = [[9; 32], [8; 32]];

    fn key(number: usize) -> SecretKey {
        let mut key = SecretKey::default();
        key[..8].copy_from_slice(&(number as u64).to_le_bytes());
        key
    }

    #[test]
    fn sessions_end_when_unused_when_old_and_with_their_pages() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        sessions.begin(key(1), "anna".to_owned(), OWN, start);
        sessions.open_pages(key(1), key(2));
        let just = IDLE_MAX - Duration::from_secs(1);
        assert!(sessions.find(&key(2), true, &OWN[1], start + just).is_some(), "what is used stays");
        assert!(sessions.find(&key(1), false, &OWN[1], start + 2 * just).is_some());
        assert!(
            sessions.find(&key(2), false, &OWN[1], start + 2 * just).is_none(),
            "one cookie is not the other"
        );
        assert!(sessions.find(&key(1), true, &OWN[1], start + 2 * just).is_none());
        assert!(sessions.find(&key(1), false, &OWN[1], start + 2 * just + IDLE_MAX).is_none());
        assert!(sessions.all.is_empty() && sessions.pages.is_empty());
        sessions.begin(key(3), "anna".to_owned(), OWN, start);
        let uses = (1..=LIFE_MAX.as_secs() / 3600).map(|hour| start + Duration::from_secs(hour * 3600));
        let found: Vec<bool> =
            uses.map(|now| sessions.find(&key(3), false, &OWN[1], now).is_some()).collect();
        assert_eq!(found.iter().filter(|found| **found).count(), found.len() - 1, "the last is too late");
    }

    #[test]
    fn nobody_has_more_sessions_than_they_may() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        sessions.begin(key(0), "ben".to_owned(), OWN, start);
        for number in 1..=OF_ONE_MAX + 1 {
            sessions.begin(key(number), "anna".to_owned(), OWN, start + Duration::from_secs(number as u64));
        }
        assert_eq!(sessions.all.len(), OF_ONE_MAX + 1);
        assert!(!sessions.all.contains_key(&key(1)) && sessions.all.contains_key(&key(0)));
        for number in 0..ALL_MAX + 9 {
            sessions.begin(key(100 + number), format!("p{number}"), OWN, start + Duration::from_secs(99));
        }
        assert_eq!(sessions.all.len(), ALL_MAX);
    }

    #[test]
    fn a_ticket_is_good_once_and_for_a_moment() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        sessions.begin(key(1), "anna".to_owned(), OWN, start);
        sessions.add_ticket(key(2), key(1), "/web/".to_owned(), start);
        assert!(sessions.take_ticket(&key(3), start).is_none());
        assert_eq!(sessions.take_ticket(&key(2), start), Some((key(1), "/web/".to_owned())));
        assert!(sessions.take_ticket(&key(2), start).is_none());
        sessions.add_ticket(key(4), key(1), "/".to_owned(), start);
        assert!(sessions.take_ticket(&key(4), start + TICKET_LIFE).is_none());
        sessions.add_ticket(key(5), key(1), "/".to_owned(), start);
        sessions.end(&key(1));
        assert!(sessions.take_ticket(&key(5), start).is_none(), "its session is over");
        (0..=TICKETS_MAX).for_each(|number| sessions.add_ticket(key(number), key(1), String::new(), start));
        assert_eq!(sessions.tickets.len(), TICKETS_MAX);
    }
}
