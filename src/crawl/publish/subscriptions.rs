//! Subscriptions to hubs (W3C WebSub): what was requested from a hub, what it confirmed, and whether a delivery really
//! is from it.
//!
//! A subscription consists of two files in the folder `subscriptions` of the archive, each with a single writer:
//! `ID.json` is written by runs, which send requests to hubs ([`super::hubs`]), and `ID.heard` by the server, which
//! hubs call back. `ID` is random and part of the callback URL, so that requests without it have no effect; the files
//! are readable only by the user who runs the program. They are replaced atomically. A subscription is on disk before
//! its hub is asked, and after a crash the request is repeated.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use archive_base::files::{self, WholeFile, make_folder, refuse_link};
use archive_storage::digest::{from_hex, hex};
use chrono::{DateTime, TimeDelta, Utc};
use ring::hmac;
use serde::{Deserialize, Serialize};

/// Folder within an archive.
pub const FOLDER: &str = "subscriptions";

/// Maximum number of subscriptions of an archive.
pub const SUBSCRIPTIONS_MAX: usize = 1000;

/// Lease requested from hubs, in seconds: ten days.
pub const LEASE_SECONDS: u64 = 10 * 86_400;

/// Maximum lease in seconds; a longer one is shortened to this.
const LEASE_SECONDS_MAX: u64 = 400 * 86_400;

/// Time that a hub has to verify a request; then it is asked again.
pub const PENDING: TimeDelta = TimeDelta::days(1);

/// Time for which a hub is left alone after it refused.
const REFUSED: TimeDelta = TimeDelta::days(30);

/// Maximum length of a hub's challenge in bytes.
pub const CHALLENGE_BYTES_MAX: usize = 2048;

/// Number of random bytes in an identifier and in a secret; both are written in hexadecimal.
const ID_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;

/// Maximum size in bytes; a larger file is not a subscription.
const FILE_BYTES_MAX: u64 = 64 << 10;

const ASKED: &str = "json";
const HEARD: &str = "heard";

/// A subscription as requested from a hub by a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Identifier, which is part of the callback's path.
    #[serde(skip)]
    pub id: String,
    /// URL of the hub.
    pub hub: String,
    /// URL of the topic: the page's own URL as the page states it.
    pub topic: String,
    /// Canonical URL of the page in the archive.
    pub page: String,
    /// Secret with which the hub signs deliveries.
    pub secret: String,
    /// Time of the last request to the hub.
    #[serde(with = "archive_base::instant")]
    pub asked: DateTime<Utc>,
}

/// The hub's last answer, received by the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Heard {
    #[serde(with = "archive_base::instant")]
    time: DateTime<Utc>,
    /// Granted lease; `None` if the hub refused.
    lease_seconds: Option<u64>,
    /// The hub's challenge: the hub may repeat it if it did not receive the answer.
    challenge: String,
}

impl Heard {
    fn ends(&self) -> DateTime<Utc> {
        self.after(self.lease_seconds.unwrap_or(0))
    }

    fn after(&self, seconds: u64) -> DateTime<Utc> {
        self.time + TimeDelta::seconds(i64::try_from(seconds.min(LEASE_SECONDS_MAX)).unwrap_or(0))
    }
}

/// Query parameters of a hub's verification request.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerificationRequest<'a> {
    /// `hub.mode`.
    pub mode: &'a str,
    /// `hub.topic`.
    pub topic: &'a str,
    /// `hub.challenge`.
    pub challenge: &'a str,
    /// `hub.lease_seconds`.
    pub lease_seconds: Option<u64>,
}

/// Outcome of a delivery to a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// There is no such subscription.
    Gone,
    /// It is not signed by the hub, or the lease is not in effect.
    Ignored,
    /// The page with this URL has changed.
    Page(String),
}

impl Subscription {
    /// Creates a subscription with a random identifier and secret; its hub has not been asked yet.
    ///
    /// # Errors
    /// When the system cannot provide random numbers.
    pub fn new(hub: String, topic: String, page: String) -> io::Result<Self> {
        let id = random::<ID_BYTES>()?;
        Ok(Self { id, hub, topic, page, secret: random::<SECRET_BYTES>()?, asked: DateTime::UNIX_EPOCH })
    }

    /// Writes it durably.
    ///
    /// # Errors
    /// When writing to the disk fails.
    pub fn save(&self, archive: &Path) -> io::Result<()> {
        make_folder(&archive.join(FOLDER))?;
        replace(&file(archive, &self.id, ASKED), self)
    }

    /// Removes its files.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn remove(&self, archive: &Path) -> io::Result<()> {
        remove(archive, &self.id)
    }

    /// Whether its hub is to be asked now: it never answered, two thirds of its lease are over, or its refusal is long
    /// ago.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn is_due(&self, archive: &Path, now: DateTime<Utc>) -> io::Result<bool> {
        let heard = read::<Heard>(&file(archive, &self.id, HEARD))?;
        if heard.as_ref().is_none_or(|heard| self.asked > heard.time) && now < self.asked + PENDING {
            return Ok(false);
        }
        Ok(heard.is_none_or(|heard| match heard.lease_seconds {
            Some(seconds) => now >= heard.after(seconds.min(LEASE_SECONDS_MAX) / 3 * 2),
            None => now >= heard.time + REFUSED,
        }))
    }

    fn is_signed(&self, signature: &str, body: &[u8]) -> bool {
        let Some((method, digits)) = signature.trim().split_once('=') else { return false };
        let algorithm = match method {
            // The weakness of SHA-1 does not make HMACs forgeable, and large hubs offer nothing else.
            "sha1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            "sha256" => hmac::HMAC_SHA256,
            "sha384" => hmac::HMAC_SHA384,
            "sha512" => hmac::HMAC_SHA512,
            _ => return false,
        };
        let key = hmac::Key::new(algorithm, self.secret.as_bytes());
        from_hex(digits).is_some_and(|tag| hmac::verify(&key, body, &tag).is_ok())
    }
}

/// Lists all subscriptions. Removes server files whose subscription is gone.
///
/// # Errors
/// When a file cannot be read or removed.
pub fn subscriptions(archive: &Path) -> io::Result<Vec<Subscription>> {
    refuse_link(&archive.join(FOLDER))?;
    let mut found = Vec::new();
    for entry in files::if_there(fs::read_dir(archive.join(FOLDER)))?.into_iter().flatten() {
        let path = entry?.path();
        let Some(id) = path.file_stem().and_then(|id| id.to_str()).filter(|id| is_id(id)) else { continue };
        match find(archive, id)? {
            Some(subscription) if path.extension().is_some_and(|it| it == ASKED) => found.push(subscription),
            Some(_) => {}
            None => remove(archive, id)?,
        }
    }
    found.sort_by(|left, right| (left.asked, &left.id).cmp(&(right.asked, &right.id)));
    Ok(found)
}

/// Removes the subscriptions to these URLs.
///
/// # Errors
/// When a file cannot be read or removed.
pub fn forget(archive: &Path, urls: &HashSet<String>) -> io::Result<()> {
    let all = subscriptions(archive)?.into_iter();
    all.filter(|it| urls.contains(&it.page) || urls.contains(&it.topic)).try_for_each(|it| it.remove(archive))
}

/// Handles a hub's verification request. Returns the answer to send; `None` if it does not match a request of ours.
///
/// # Errors
/// When a file cannot be read or written.
pub fn confirm(
    archive: &Path,
    id: &str,
    asked: VerificationRequest<'_>,
    now: DateTime<Utc>,
) -> io::Result<Option<String>> {
    let Some(known) = find(archive, id)?.filter(|known| known.topic == asked.topic) else { return Ok(None) };
    let path = file(archive, id, HEARD);
    let heard = read::<Heard>(&path)?;
    let (lease_seconds, answer) = match asked.mode {
        "subscribe" => {
            let is_challenge = (1..=CHALLENGE_BYTES_MAX).contains(&asked.challenge.len());
            // A hub that did not receive the answer repeats its request.
            let is_open = |heard: &Heard| heard.time < known.asked || heard.challenge == asked.challenge;
            if !is_challenge || now >= known.asked + PENDING || !heard.as_ref().is_none_or(is_open) {
                return Ok(None);
            }
            (Some(asked.lease_seconds.unwrap_or(LEASE_SECONDS)), asked.challenge.to_owned())
        }
        "denied" => (None, String::new()),
        _ => return Ok(None),
    };
    let heard = Heard { time: now, lease_seconds, challenge: answer.clone() };
    replace(&path, &heard).map(|()| Some(answer))
}

/// Verifies a delivery from a hub.
///
/// # Errors
/// When a file cannot be read.
pub fn deliver(
    archive: &Path,
    id: &str,
    signature: Option<&str>,
    body: &[u8],
    now: DateTime<Utc>,
) -> io::Result<Delivered> {
    let Some(known) = find(archive, id)? else { return Ok(Delivered::Gone) };
    let is_leased = read::<Heard>(&file(archive, id, HEARD))?.is_some_and(|heard| now < heard.ends());
    let is_signed = signature.is_some_and(|signature| known.is_signed(signature, body));
    Ok(if is_leased && is_signed { Delivered::Page(known.page) } else { Delivered::Ignored })
}

fn find(archive: &Path, id: &str) -> io::Result<Option<Subscription>> {
    if !is_id(id) {
        return Ok(None);
    }
    refuse_link(&archive.join(FOLDER))?;
    let found = read::<Subscription>(&file(archive, id, ASKED))?;
    Ok(found.map(|found| Subscription { id: id.to_owned(), ..found }))
}

fn is_id(text: &str) -> bool {
    text.len() == 2 * ID_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn file(archive: &Path, id: &str, ending: &str) -> PathBuf {
    archive.join(FOLDER).join(format!("{id}.{ending}"))
}

/// Reads a JSON file; `None` if it does not exist or does not parse.
fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> io::Result<Option<T>> {
    let bytes = files::read_if_there(path, FILE_BYTES_MAX)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

fn replace(path: &Path, what: &impl Serialize) -> io::Result<()> {
    let mut file = WholeFile::begin(path)?;
    file.keep_private()?;
    file.write_all(&serde_json::to_vec(what)?)?;
    file.commit()
}

fn remove(archive: &Path, id: &str) -> io::Result<()> {
    for ending in [ASKED, HEARD] {
        files::if_there(fs::remove_file(file(archive, id, ending)))?;
    }
    Ok(())
}

fn random<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscribed(archive: &Path, asked: DateTime<Utc>) -> Subscription {
        let [hub, topic, page] = ["http://hub.test/", "http://a.test/feed", "http://a.test/feed"];
        let new = Subscription::new(hub.to_owned(), topic.to_owned(), page.to_owned()).unwrap();
        let subscription = Subscription { asked, ..new };
        subscription.save(archive).unwrap();
        subscription
    }

    /// The current time with the microsecond precision of the files.
    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp_micros(Utc::now().timestamp_micros()).unwrap()
    }

    fn question(challenge: &str) -> VerificationRequest<'_> {
        let topic = "http://a.test/feed";
        VerificationRequest { mode: "subscribe", topic, challenge, lease_seconds: Some(300) }
    }

    #[test]
    fn signatures_are_those_of_rfc_4231() {
        let folder = tempfile::tempdir().unwrap();
        let known =
            Subscription { secret: "Jefe".to_owned(), ..subscribed(folder.path(), DateTime::UNIX_EPOCH) };
        let body = b"what do ya want for nothing?";
        let right = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert!(known.is_signed(right, body) && known.is_signed(&format!(" {right}"), body));
        assert!(known.is_signed("sha1=effcdf6ae5eb2fa2d27416d5f184df9c259a7c79", body));
        assert!(!known.is_signed(right, b"what do ya want for something?"));
        for wrong in
            ["", "sha256=", "sha256=5b", "md5=750c783e6ab0b503eaa86e310a5db738", "sha256=+b", &right[..70]]
        {
            assert!(!known.is_signed(wrong, body), "{wrong}");
        }
    }

    #[test]
    fn a_hub_is_answered_once_for_what_was_asked() {
        let folder = tempfile::tempdir().unwrap();
        let (archive, now) = (folder.path(), now());
        let known = subscribed(archive, now);
        let ask = |id: &str, asked, now| confirm(archive, id, asked, now).unwrap();
        let longest = "c".repeat(CHALLENGE_BYTES_MAX);
        let longer = longest.clone() + "c";
        for wrong in [
            VerificationRequest { topic: "http://a.test/other", ..question("x") },
            VerificationRequest { mode: "unsubscribe", ..question("x") },
            question(""),
            question(&longer),
        ] {
            assert_eq!(ask(&known.id, wrong, now), None, "{wrong:?}");
        }
        for id in ["", "../../watches/x", &"0".repeat(2 * ID_BYTES)] {
            assert_eq!(ask(id, question("x"), now), None, "{id}");
        }
        assert_eq!(ask(&known.id, question("late"), now + PENDING), None);
        assert_eq!(ask(&known.id, question(&longest), now), Some(longest.clone()));
        assert_eq!(ask(&known.id, question("another"), now), None);
        assert_eq!(ask(&known.id, question(&longest), now), Some(longest), "the same hub once more");
    }

    #[test]
    fn what_comes_counts_while_the_lease_lasts() {
        let folder = tempfile::tempdir().unwrap();
        let (archive, now) = (folder.path(), now());
        let known = subscribed(archive, now);
        let key = hmac::Key::new(hmac::HMAC_SHA256, known.secret.as_bytes());
        let signature = format!("sha256={}", hex(hmac::sign(&key, b"body").as_ref()));
        let sent =
            |signature: Option<&str>, now| deliver(archive, &known.id, signature, b"body", now).unwrap();
        assert_eq!(sent(Some(&signature), now), Delivered::Ignored, "before the hub has asked");
        confirm(archive, &known.id, question("x"), now).unwrap().unwrap();
        let page = Delivered::Page("http://a.test/feed".to_owned());
        let lease = TimeDelta::seconds(300);
        assert_eq!(sent(Some(&signature), now + lease - TimeDelta::microseconds(1)), page);
        assert_eq!(sent(Some(&signature), now + lease), Delivered::Ignored);
        assert_eq!(sent(None, now), Delivered::Ignored);
        known.remove(archive).unwrap();
        assert_eq!(sent(Some(&signature), now), Delivered::Gone);
    }

    #[test]
    fn a_hub_is_asked_before_its_lease_ends_and_left_alone_when_it_refuses() {
        let folder = tempfile::tempdir().unwrap();
        let (archive, now) = (folder.path(), now());
        let (known, second) = (subscribed(archive, now), TimeDelta::seconds(1));
        let is_due = |time| known.is_due(archive, time).unwrap();
        assert!(!is_due(now + PENDING - second) && is_due(now + PENDING));
        confirm(archive, &known.id, question("x"), now).unwrap().unwrap();
        assert!(!is_due(now + second * 199) && is_due(now + second * 200));
        confirm(archive, &known.id, VerificationRequest { mode: "denied", ..question("") }, now)
            .unwrap()
            .unwrap();
        assert!(!is_due(now + REFUSED - second) && is_due(now + REFUSED));
        // Leftover files of a removed subscription are deleted, too.
        fs::remove_file(file(archive, &known.id, ASKED)).unwrap();
        assert!(subscriptions(archive).unwrap().is_empty() && !file(archive, &known.id, HEARD).exists());
    }

    #[test]
    fn what_is_erased_is_subscribed_to_no_more() {
        let folder = tempfile::tempdir().unwrap();
        subscribed(folder.path(), Utc::now());
        forget(folder.path(), &HashSet::from(["http://b.test/".to_owned()])).unwrap();
        assert_eq!(subscriptions(folder.path()).unwrap().len(), 1);
        forget(folder.path(), &HashSet::from(["http://a.test/feed".to_owned()])).unwrap();
        assert_eq!(subscriptions(folder.path()).unwrap().len(), 0);
    }
}
