//! An archive on another machine, queried over HTTP. It is not trusted: its answers are limited in time and size, and
//! validated.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use archive_base::program;
use archive_base::remote;
use archive_books::cluster::PARTITIONS_MAX;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::redirect::Policy;
use tokio::runtime::{Handle, Runtime};
use tokio::time::timeout;
use url::Url;

use super::ask::{AnswerHead, AnswerLine, AskKind, LINE_BYTES_MAX, request};
use super::credentials::Credentials;
use super::{AskError, NodeError};

/// Time limit for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of bytes read of an error response, and of characters shown of it.
const PROBLEM_BYTES_MAX: usize = 4096;
const PROBLEM_CHARACTERS_MAX: usize = 300;

/// An archive that is served by `archive serve`.
#[derive(Clone, Debug)]
pub struct Node {
    name: String,
    url: Url,
    credentials: Option<(String, String)>,
}

/// Receives the lines after the head as they arrive; returns whether one is the end.
type TakeLine<'a> = dyn FnMut(&[u8]) -> Result<bool, NodeError> + 'a;

/// HTTP client for nodes, with its limits.
#[derive(Debug)]
pub struct Http {
    client: reqwest::Client,
    handle: Handle,
    /// The runtime of `handle`, unless that belongs to a server.
    _runtime: Option<Runtime>,
    wait: Duration,
    /// Maximum size of all answers in one round, in bytes.
    pub(super) bytes_max: u64,
}

impl Http {
    /// Creates a client with a time limit for each node's answer and a size limit in bytes for all answers of one
    /// round.
    ///
    /// # Errors
    /// When the system cannot provide threads or sockets.
    pub fn new(wait: Duration, bytes_max: u64) -> Result<Self, AskError> {
        let runtime = remote::runtime().map_err(|error| AskError::Taken(error.into()))?;
        let http = Self::on(runtime.handle().clone(), wait, bytes_max)?;
        Ok(Self { _runtime: Some(runtime), ..http })
    }

    /// As [`Http::new`], on the runtime of a server.
    ///
    /// # Errors
    /// When the system cannot provide sockets.
    pub fn on(handle: Handle, wait: Duration, bytes_max: u64) -> Result<Self, AskError> {
        // reqwest is built without a crypto provider of its own; the crawler's is installed once per process.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder()
            .user_agent(program::PRODUCT)
            // Redirects are not followed: passwords are only for the node that the user named.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(|error| AskError::Taken(error.into()))?;
        Ok(Self { client, handle, _runtime: None, wait, bytes_max })
    }
}

impl Node {
    /// Whether the location of an archive is the URL of a node rather than a folder.
    #[must_use]
    pub fn is_meant(place: &str) -> bool {
        place.starts_with("http://") || place.starts_with("https://")
    }

    /// Creates a node from its URL.
    ///
    /// # Errors
    /// When the URL is not valid for a node.
    pub fn new(name: &str, credentials: &Credentials) -> Result<Self, AskError> {
        let wrong = |problem: &str| AskError::Wrong(format!("'{name}' {problem}"));
        let url = Url::parse(name).map_err(|error| AskError::Wrong(format!("a node's URL: {error}")))?;
        if !url.username().is_empty() || url.password().is_some() {
            // The message omits the URL: the password would appear in logs.
            return Err(AskError::Wrong(
                "a password does not belong in a node's URL, which others can see: write it into a file, --credentials"
                    .to_owned(),
            ));
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("has more than a scheme, a host and a port; write it like http://node:8070/"));
        }
        let credentials = credentials.of(&url);
        Ok(Self { name: name.to_owned(), url, credentials })
    }

    /// Name of the node, as given by the user.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks a question, passes the rows of the answer to `take`, and returns its head and its end. The answer's bytes are
    /// subtracted from `left`, and it must be complete by `until`.
    pub(super) fn ask<K: AskKind>(
        &self,
        http: &Http,
        kind: K,
        (left, until): (&AtomicU64, Option<Instant>),
        take: &mut dyn FnMut(K::Row) -> Result<(), NodeError>,
    ) -> Result<(AnswerHead, K::End), NodeError> {
        let still = until.map(|until| until.saturating_duration_since(Instant::now()));
        let wait = still.map_or(http.wait, |still| still.min(http.wait));
        let (body, mut end) = (request(kind.into())?, None);
        let mut take = |line: &[u8]| -> Result<bool, NodeError> {
            match AnswerLine::<K::Row, K::End>::read(line)? {
                AnswerLine::Row(row) => take(row)?,
                AnswerLine::End(last) => end = Some(last),
            }
            Ok(end.is_some())
        };
        let talk = async { timeout(wait, self.talk(http, body, left, &mut take)).await };
        let head = http.handle.block_on(talk).unwrap_or(Err(NodeError::Late(wait)))?;
        Ok((head, end.ok_or_else(cut_off)?))
    }

    async fn talk(
        &self,
        http: &Http,
        body: Vec<u8>,
        left: &AtomicU64,
        take: &mut TakeLine<'_>,
    ) -> Result<AnswerHead, NodeError> {
        let url = self.url.join("ask").map_err(|error| NodeError::Failed(error.to_string()))?;
        let mut request = http.client.post(url).header(CONTENT_TYPE, "application/json").body(body);
        request = request.header(ACCEPT, "application/json");
        if let Some((name, password)) = &self.credentials {
            request = request.basic_auth(name, Some(password));
        }
        let mut response = request.send().await.map_err(failed)?;
        if response.status() != 200 {
            return Err(refused(response).await);
        }
        let mut lines = LineBuffer { waiting: Vec::new(), head: None, is_whole: false };
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            let size = piece.len() as u64;
            if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size)).is_err()
            {
                return Err(NodeError::TooLong(http.bytes_max));
            }
            lines.add(&piece, take)?;
        }
        match lines {
            LineBuffer { head: Some(head), is_whole: true, waiting } if waiting.is_empty() => Ok(head),
            _ => Err(cut_off()),
        }
    }
}

fn cut_off() -> NodeError {
    NodeError::senseless("it was cut off")
}

/// Parser for the lines of an answer as it arrives.
struct LineBuffer {
    /// Bytes of the incomplete next line.
    waiting: Vec<u8>,
    head: Option<AnswerHead>,
    is_whole: bool,
}

impl LineBuffer {
    fn add(&mut self, mut piece: &[u8], take: &mut TakeLine<'_>) -> Result<(), NodeError> {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let (line, rest) = piece.split_at(end);
            piece = rest.get(1..).unwrap_or_default();
            self.wait_for(line)?;
            let line = std::mem::take(&mut self.waiting);
            self.line(&line, take)?;
        }
        self.wait_for(piece)
    }

    fn wait_for(&mut self, piece: &[u8]) -> Result<(), NodeError> {
        if self.waiting.len() + piece.len() > LINE_BYTES_MAX {
            return Err(NodeError::LongLine);
        }
        self.waiting.extend_from_slice(piece);
        Ok(())
    }

    fn line(&mut self, line: &[u8], take: &mut TakeLine<'_>) -> Result<(), NodeError> {
        if self.is_whole {
            return Err(NodeError::senseless("it continues after its end"));
        }
        if self.head.is_none() {
            let head = AnswerHead::read(line)?;
            if head.origins.iter().flatten().any(|stated| origin(stated).as_ref() != Some(stated)) {
                return Err(NodeError::senseless("it names no origins of application and replay"));
            }
            if head.partition.as_ref().is_some_and(|part| part.count > PARTITIONS_MAX) {
                return Err(NodeError::senseless("it is for too many partitions"));
            }
            self.head = Some(head);
            return Ok(());
        }
        self.is_whole = take(line)?;
        Ok(())
    }
}

/// The origin named by a URL that has only a scheme, a host and a port, in the form that browsers use.
#[must_use]
pub fn origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let is_anonymous = url.username().is_empty() && url.password().is_none();
    (is_bare && is_anonymous).then(|| url.origin().ascii_serialization())
}

fn failed(error: reqwest::Error) -> NodeError {
    NodeError::Failed(remote::first_cause(&error.without_url()))
}

/// Reads an error response, with the node's error message if it has one.
async fn refused(mut response: reqwest::Response) -> NodeError {
    let status = response.status().as_u16();
    if status == 401 {
        return NodeError::Unknown;
    }
    let mut said = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        said.extend_from_slice(&piece);
        if said.len() > PROBLEM_BYTES_MAX {
            break;
        }
    }
    said.truncate(PROBLEM_BYTES_MAX);
    let said: Option<serde_json::Value> = serde_json::from_slice(&said).ok();
    let what = said.as_ref().and_then(|said| said["error"].as_str()).map(one_line);
    NodeError::Refused { status, what: what.unwrap_or_default() }
}

/// A node's message as one line of bounded length.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(PROBLEM_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Result<(usize, bool), NodeError> {
        let mut lines = LineBuffer { waiting: Vec::new(), head: None, is_whole: false };
        let mut taken = 0;
        for piece in pieces {
            lines.add(piece, &mut |line| {
                taken += 1;
                Ok(matches!(AnswerLine::<(String, bool), ()>::read(line)?, AnswerLine::End(())))
            })?;
        }
        Ok((taken, lines.is_whole))
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let head = br#"{"version":2,"partition":null}"#.as_slice();
        assert_eq!(lines(&[head, b"\n{\"row\"", b":[\"a\",true]}\n{\"end\":null}\n"]).unwrap(), (2, true));
        let line =
            |bytes: usize| [br#"{"row":["", true]}"#.as_slice(), &vec![b' '; bytes - 18], b"\n"].concat();
        assert_eq!(lines(&[head, b"\n", &line(LINE_BYTES_MAX)]).unwrap(), (1, false));
        let error = lines(&[head, b"\n", &line(LINE_BYTES_MAX + 1)]).unwrap_err();
        assert!(matches!(error, NodeError::LongLine), "{error}");
        let error = lines(&[br#"{"version":3,"new":[]}"#, b"\n"]).unwrap_err();
        assert!(matches!(error, NodeError::Version(3)), "{error}");
        let error = lines(&[head, b"\n{\"end\":null}\n{\"row\":[\"a\",true]}\n"]).unwrap_err();
        assert!(error.to_string().contains("after its end"), "{error}");
    }

    #[test]
    fn nodes_are_named_by_origins_without_passwords() {
        let node = |url: &str| Node::new(url, &Credentials::default()).map_err(|error| error.to_string());
        assert_eq!(node("http://node:8070").unwrap().name(), "http://node:8070");
        assert!(node("http://node:8070/x").unwrap_err().contains("write it like http://node:8070/"));
        let error = node("http://anna:secret@node/").unwrap_err();
        assert!(error.contains("--credentials") && !error.contains("secret"), "{error}");
        assert!(node("http://").unwrap_err().contains("empty host"));
    }
}
