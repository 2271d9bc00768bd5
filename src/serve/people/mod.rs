//! People with accounts: passwords, sessions, login attempts, and the audit log.
//!
//! Passwords are verified only here, a few at a time, because each verification costs memory and time by design. The
//! file of accounts is reread within a second, which logs out people who were changed or removed. While the file has a
//! mistake, nobody can log in.

mod attempts;
mod audit;
mod sessions;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use archive_base::access::Role;
use archive_base::accounts::{Account, AccountList, AccountsError};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use self::attempts::Attempts;
use self::audit::Audit;
pub(super) use self::audit::{AuditKind, Event};
use self::sessions::Sessions;

/// How long the accounts are used before the file is reread.
const FRESH: Duration = Duration::from_millis(500);

/// Maximum number of concurrent password verifications, and how long others wait.
const HASHING_MAX: usize = 2;
const HASHING_WAIT: Duration = Duration::from_secs(10);

/// How long the password that a program sends with each request stays verified, and the maximum number of such entries.
const BELIEVED: Duration = Duration::from_secs(300);
const BELIEVED_MAX: usize = 256;

/// A random secret, or the digest of one.
type SecretKey = [u8; 32];

/// The person who makes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Who {
    /// Their name, if authenticated.
    pub(super) name: Option<String>,
    /// Their role; `None` without accounts.
    pub(super) role: Option<Role>,
    /// Their session, if they have one.
    pub(super) session: Option<SecretKey>,
}

/// Why a login is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoginRefusal {
    /// The name or the password is wrong.
    Wrong,
    /// There were too many failures from the same address, or for the same name.
    TooMany,
    /// It cannot be verified at the moment.
    Unable,
}

/// Authentication state.
#[derive(Debug)]
pub(super) struct People {
    path: PathBuf,
    loaded: Mutex<(Arc<AccountList>, Instant)>,
    sessions: Mutex<Sessions>,
    attempts: Mutex<Attempts>,
    /// Digests of credentials sent by programs, each with the person, a digest of the account, and its expiry.
    believed: Mutex<HashMap<SecretKey, (Who, SecretKey, Instant)>>,
    hashing: Semaphore,
    audit: Mutex<Audit>,
    secret: SecretKey,
}

impl People {
    pub(super) fn new(path: PathBuf, audit: PathBuf) -> Result<Self, super::ServeError> {
        let accounts = AccountList::read(&path)?;
        let audit =
            Audit::open(audit.clone()).map_err(|source| super::ServeError::Audit { path: audit, source })?;
        Ok(Self {
            path,
            loaded: Mutex::new((Arc::new(accounts), Instant::now())),
            sessions: Mutex::default(),
            attempts: Mutex::default(),
            believed: Mutex::default(),
            hashing: Semaphore::new(HASHING_MAX),
            audit: Mutex::new(audit),
            secret: random().map_err(super::ServeError::Start)?,
        })
    }

    /// The accounts, as of at most half a second ago.
    fn accounts(&self) -> Result<Arc<AccountList>, AccountsError> {
        let mut loaded = lock(&self.loaded);
        if loaded.1.elapsed() >= FRESH {
            *loaded = (Arc::new(AccountList::read(&self.path)?), Instant::now());
        }
        Ok(Arc::clone(&loaded.0))
    }

    fn current(&self) -> Option<Arc<AccountList>> {
        self.accounts().inspect_err(|error| tracing::error!("nobody can log in: {error}")).ok()
    }

    /// The role of an account, if the account is unchanged.
    fn unchanged(&self, name: &str, line: &SecretKey) -> Option<Role> {
        let accounts = self.current()?;
        accounts
            .find(name)
            .filter(|account| digest(account.line().as_bytes()) == *line)
            .map(|account| account.role)
    }

    /// What a session is bound to besides its cookie, which another page may have put into this browser.
    pub(super) fn client(user_agent: Option<&str>) -> SecretKey {
        digest(user_agent.unwrap_or_default().as_bytes())
    }

    /// Finds the person by session cookies. With `of_pages`, these are cookies for archived pages, which are valid for
    /// nothing else. Cookies of several people are those of nobody: one of them was put there.
    pub(super) fn by_cookie<'c>(
        &self,
        cookies: impl Iterator<Item = &'c str>,
        of_pages: bool,
        client: &SecretKey,
    ) -> Option<Who> {
        let found = cookies.filter_map(|cookie| {
            let id = BASE64_URL_SAFE_NO_PAD
                .decode(cookie)
                .ok()
                .filter(|id| id.len() == SecretKey::default().len())?;
            lock(&self.sessions).find(&digest(&id), of_pages, client, Instant::now())
        });
        let mut found: Vec<_> = found.collect();
        let (session, name, line) = found.pop()?;
        if found.iter().any(|(_, other, _)| *other != name) {
            return None;
        }
        let Some(role) = self.unchanged(&name, &line) else {
            lock(&self.sessions).end(&session);
            return None;
        };
        Some(Who { name: Some(name), role: Some(role), session: Some(session) })
    }

    /// Authenticates a request that carries a password, as programs send it (`Authorization: Basic`).
    pub(super) async fn by_password(
        self: &Arc<Self>,
        field: &str,
        address: IpAddr,
    ) -> Result<Who, LoginRefusal> {
        let key = digest(&[&self.secret, field.as_bytes()].concat());
        let known = lock(&self.believed).get(&key).filter(|(.., until)| Instant::now() < *until).cloned();
        if let Some((who, line, _)) = known
            && self.unchanged(who.name.as_deref().unwrap_or_default(), &line).is_some()
        {
            return Ok(who);
        }
        let sent = field
            .get(..6)
            .filter(|scheme| scheme.eq_ignore_ascii_case("basic "))
            .ok_or(LoginRefusal::Wrong)?;
        let sent = BASE64_STANDARD.decode(field[sent.len()..].trim()).map_err(|_| LoginRefusal::Wrong)?;
        let sent = String::from_utf8(sent).map_err(|_| LoginRefusal::Wrong)?;
        let (name, password) = sent.split_once(':').ok_or(LoginRefusal::Wrong)?;
        let account = self.check(name, password, address).await?;
        let who = Who { name: Some(account.name.clone()), role: Some(account.role), session: None };
        let mut believed = lock(&self.believed);
        if believed.len() >= BELIEVED_MAX {
            believed.clear();
        }
        believed.insert(key, (who.clone(), digest(account.line().as_bytes()), Instant::now() + BELIEVED));
        Ok(who)
    }

    /// Logs a person in; returns the cookie of the session.
    pub(super) async fn log_in(
        self: &Arc<Self>,
        name: &str,
        password: &str,
        address: IpAddr,
        client: SecretKey,
    ) -> Result<String, LoginRefusal> {
        let account = self.check(name, password, address).await?;
        let id = random().map_err(|_| LoginRefusal::Unable)?;
        let line = digest(account.line().as_bytes());
        lock(&self.sessions).begin(digest(&id), account.name, [line, client], Instant::now());
        Ok(BASE64_URL_SAFE_NO_PAD.encode(id))
    }

    /// Verifies a name and a password, and logs the outcome.
    async fn check(
        self: &Arc<Self>,
        name: &str,
        password: &str,
        address: IpAddr,
    ) -> Result<Account, LoginRefusal> {
        let accounts = self.current().ok_or(LoginRefusal::Unable)?;
        // An unknown name is not logged: it may be a password in the wrong field.
        let known = accounts.find(name).cloned();
        let event = |what| Event {
            address: Some(address),
            ..Event::of(what, known.as_ref().map(|it| it.name.as_str()))
        };
        let attempt = lock(&self.attempts).begin(name, address, Instant::now());
        if let Err(is_first) = attempt {
            if is_first {
                self.write(&event(AuditKind::Limited))?;
            }
            return Err(LoginRefusal::TooMany);
        }
        let place = tokio::time::timeout(HASHING_WAIT, self.hashing.acquire()).await;
        let Ok(Ok(_place)) = place else {
            lock(&self.attempts).forgive(name, address);
            return Err(LoginRefusal::Unable);
        };
        let (asked, password) = (name.to_owned(), password.to_owned());
        let verifying = tokio::task::spawn_blocking(move || accounts.verify(&asked, &password)).await;
        if !verifying.map_err(|_| LoginRefusal::Unable)? {
            self.write(&event(AuditKind::Failure))?;
            return Err(LoginRefusal::Wrong);
        }
        self.write(&event(AuditKind::Login))?;
        lock(&self.attempts).forgive(name, address);
        known.ok_or(LoginRefusal::Wrong)
    }

    /// Ends the session of the request, including access to archived pages.
    pub(super) fn log_out(&self, who: &Who, address: IpAddr) {
        if let Some(session) = &who.session {
            lock(&self.sessions).end(session);
            self.record(&Event {
                address: Some(address),
                ..Event::of(AuditKind::Logout, who.name.as_deref())
            });
        }
    }

    /// Issues a ticket for an address of archived pages: it is valid once, for a few seconds.
    pub(super) fn ticket(&self, who: &Who, path: &str) -> Option<String> {
        let (session, id) = (who.session?, random().ok()?);
        lock(&self.sessions).add_ticket(digest(&id), session, path.to_owned(), Instant::now());
        Some(BASE64_URL_SAFE_NO_PAD.encode(id))
    }

    /// Redeems a ticket for a cookie and the address.
    pub(super) fn redeem(&self, ticket: &str) -> Option<(String, String)> {
        let id = BASE64_URL_SAFE_NO_PAD.decode(ticket).ok()?;
        let mut sessions = lock(&self.sessions);
        let (session, path) = sessions.take_ticket(&digest(&id), Instant::now())?;
        // The cookie is derived from the session, so it need not be stored, and neither cookie reveals the other.
        let cookie = digest(&[self.secret, session].concat());
        sessions.open_pages(session, digest(&cookie));
        Some((BASE64_URL_SAFE_NO_PAD.encode(cookie), path))
    }

    /// Logs an event that must not go unrecorded.
    fn write(&self, event: &Event<'_>) -> Result<(), LoginRefusal> {
        let written = tokio::task::block_in_place(|| lock(&self.audit).write(event));
        written
            .inspect_err(|error| {
                tracing::error!("nobody can log in: the audit log cannot be written: {error}");
            })
            .map_err(|_| LoginRefusal::Unable)
    }

    /// Logs an event that has already happened.
    pub(super) fn record(&self, event: &Event<'_>) {
        // The failure has been logged, and nobody can log in any more.
        let _ = self.write(event);
    }
}

fn lock<T>(it: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

fn digest(bytes: &[u8]) -> SecretKey {
    Sha256::digest(bytes).into()
}

fn random() -> std::io::Result<SecretKey> {
    let mut key = SecretKey::default();
    getrandom::fill(&mut key)?;
    Ok(key)
}
