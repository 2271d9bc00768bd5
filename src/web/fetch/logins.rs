//! Log-ins: what a crawl shows at doors that are closed to others.
//!
//! They are secrets of an archive ([`archive_base::secrets`]). A log-in is for a host, or for a domain and all hosts below
//! it, and over TLS only unless it says `http://`. It is shown for pages and their parts, never for robots.txt.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use archive_base::files::FileError;
use archive_base::secrets;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};
use url::Url;

use super::LoginForm;
use super::cookies::KeptCookie;
use super::login_form::may_send;

/// Name of the file with all log-ins of an archive, in JSON.
pub const FILE: &str = "logins.json";

/// Maximum bytes of that file, and of a file with cookies or a certificate.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// Maximum number of log-ins of an archive.
pub const LOGINS_MAX: usize = 1000;

/// Words of addresses that end a session, in the languages of most archives. They stand alone, between characters that
/// are neither letters nor digits.
const LOG_OUT: [&str; 22] = [
    "logout",
    "log-out",
    "log_out",
    "logoff",
    "log-off",
    "log_off",
    "signout",
    "sign-out",
    "sign_out",
    "signoff",
    "sign-off",
    "abmelden",
    "ausloggen",
    "deconnexion",
    "se-deconnecter",
    "cerrar-sesion",
    "cerrarsesion",
    "uitloggen",
    "afmelden",
    "logga-ut",
    "wyloguj",
    "esci",
];

/// The servers that a log-in is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct LoginHosts {
    host: String,
    port: Option<u16>,
    /// Whether all hosts below are meant, too.
    is_below: bool,
    /// Whether the log-in is also shown without TLS.
    is_plain: bool,
}

impl LoginHosts {
    /// Whether a host is meant.
    #[must_use]
    pub fn has(&self, host: &str) -> bool {
        let rest = host.strip_suffix(self.host.as_str());
        rest.is_some_and(|rest| rest.is_empty() || self.is_below && rest.ends_with('.'))
    }

    /// Whether a cookie of this domain is sent to the named host, though it is also sent to others.
    #[must_use]
    pub fn is_sent(&self, domain: &str, host_only: bool) -> bool {
        !host_only && self.host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    }

    /// Whether a proxy is meant, however it is spoken to.
    fn is_proxy(&self, host: &str, port: u16) -> bool {
        self.has(host) && self.port.unwrap_or(443) == port
    }

    pub(super) fn covers(&self, url: &Url) -> bool {
        may_send(url, self.is_plain)
            && url.port() == self.port
            && url.host_str().is_some_and(|host| self.has(host))
    }

    /// A URL there.
    #[must_use]
    pub fn url(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}/", if self.is_plain { "http" } else { "https" }, self.host)
    }

    /// Whether it is also shown without TLS.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether hosts below the named one are meant, too.
    #[must_use]
    pub fn is_below(&self) -> bool {
        self.is_below
    }
}

impl FromStr for LoginHosts {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "it has to be a host such as www.example.org, all hosts of a domain such as *.example.org, or http:// and one of them";
        let (is_plain, rest) = text.strip_prefix("http://").map_or((false, text), |rest| (true, rest));
        let (is_below, rest) = rest.strip_prefix("*.").map_or((false, rest), |rest| (true, rest));
        let url = Url::parse(&format!("https://{rest}")).map_err(|_| WRONG)?;
        let host = url.host_str().filter(|_| url.path() == "/" && url.query().is_none()).ok_or(WRONG)?;
        if rest.contains(['/', '@', '*', '#']) || is_below && !host.contains('.') {
            return Err(WRONG);
        }
        Ok(Self { host: host.to_owned(), port: url.port(), is_below, is_plain })
    }
}

impl fmt::Display for LoginHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plain, below) =
            (if self.is_plain { "http://" } else { "" }, if self.is_below { "*." } else { "" });
        write!(f, "{plain}{below}{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl From<LoginHosts> for String {
    fn from(hosts: LoginHosts) -> Self {
        hosts.to_string()
    }
}

impl TryFrom<String> for LoginHosts {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// What is shown at a door.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum LoginWay {
    /// Name and password with each request (RFC 7617).
    Basic {
        /// Name.
        name: String,
        /// Password.
        password: String,
    },
    /// Proof of a password (RFC 7616).
    Digest {
        /// Name.
        name: String,
        /// Password.
        password: String,
    },
    /// A field of the head.
    Field {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// Cookies that a browser had.
    Cookies(Vec<KeptCookie>),
    /// A certificate and its key, in PEM.
    Certificate(String),
    /// Name and password for a proxy at this place.
    Proxy {
        /// Name.
        name: String,
        /// Password.
        password: String,
    },
    /// A form that is filled in.
    Form(Box<LoginForm>),
}

impl LoginWay {
    /// The name of its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Basic { .. } => "basic",
            Self::Digest { .. } => "digest",
            Self::Field { .. } => "field",
            Self::Cookies(_) => "cookies",
            Self::Certificate(_) => "certificate",
            Self::Proxy { .. } => "proxy",
            Self::Form(_) => "form",
        }
    }

    /// What may be said of it.
    #[must_use]
    pub fn public(&self) -> String {
        match self {
            Self::Basic { name, .. }
            | Self::Digest { name, .. }
            | Self::Field { name, .. }
            | Self::Proxy { name, .. } => name.clone(),
            Self::Cookies(cookies) => {
                let names: Vec<&str> = cookies.iter().map(|cookie| &*cookie.name).collect();
                names.join(" ")
            }
            Self::Certificate(_) => String::new(),
            Self::Form(form) => form.name.clone().unwrap_or_default(),
        }
    }

    /// Checks that it can be sent to hosts.
    ///
    /// # Errors
    /// What is wrong, without anything secret.
    pub fn check(&self, hosts: &LoginHosts) -> Result<(), &'static str> {
        let is_line = |text: &str| !text.chars().any(char::is_control);
        match self {
            Self::Basic { password, .. } | Self::Digest { password, .. } | Self::Proxy { password, .. }
                if password.is_empty() =>
            {
                Err("the password is empty")
            }
            Self::Field { value, .. } if value.is_empty() => Err("the value of the field is empty"),
            Self::Basic { name, .. } | Self::Proxy { name, .. } if name.contains(':') => {
                Err("the name may have no colon")
            }
            Self::Basic { name, password }
            | Self::Digest { name, password }
            | Self::Proxy { name, password } => {
                let are_lines = is_line(name) && is_line(password);
                if are_lines { Ok(()) } else { Err("name and password have to be one line each") }
            }
            Self::Field { name, value } => {
                let is_token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
                if name.is_empty() || !name.bytes().all(is_token) {
                    return Err("the name of a field has letters, digits, - and _");
                }
                if RESERVED.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                    return Err("the program sets this field itself");
                }
                if is_line(value) { Ok(()) } else { Err("the value of a field has to be one line") }
            }
            Self::Certificate(pem) => certified(pem).map(drop),
            Self::Form(form) => form.check(hosts.is_plain),
            Self::Cookies(_) => Ok(()),
        }
    }
}

/// Fields that no log-in sets: the first say where a message ends, and whose it is.
const RESERVED: [&str; 7] =
    ["Host", "Content-Length", "Transfer-Encoding", "Connection", "Cookie", "User-Agent", "Accept-Encoding"];

/// Reads a certificate with its chain and its key.
fn certified(pem: &str) -> Result<CertifiedKey, &'static str> {
    let chain = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or("it has no certificate in PEM")?;
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| "it has no private key in PEM")?;
    CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())
        .map_err(|_| "the key is not that of the certificate, or of an unknown kind")
}

/// A log-in.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The servers that it is for.
    pub hosts: LoginHosts,
    /// What is shown to them.
    pub way: LoginWay,
}

/// All log-ins of an archive.
#[derive(Clone, Default)]
pub struct Logins(Arc<Vec<Login>>);

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logins").finish_non_exhaustive()
    }
}

impl Logins {
    /// Reads the log-ins of an archive; none if there is no file.
    ///
    /// # Errors
    /// When the file cannot be read, is not private, or is not what this program writes.
    pub fn read(archive: &Path) -> Result<Self, FileError> {
        let Some(bytes) = secrets::read(archive, FILE, FILE_BYTES_MAX)? else { return Ok(Self::default()) };
        let wrong =
            |problem: String| FileError::at(&secrets::path(archive, FILE))(std::io::Error::other(problem));
        // The message of the parser may quote a secret.
        let all: Vec<Login> = serde_json::from_slice(&bytes)
            .map_err(|error| wrong(format!("line {} is no list of log-ins", error.line())))?;
        for login in &all {
            login
                .way
                .check(&login.hosts)
                .map_err(|problem| wrong(format!("the log-in at {}: {problem}", login.hosts)))?;
        }
        Ok(Self(Arc::new(all)))
    }

    /// These log-ins.
    pub(super) fn of(all: Vec<Login>) -> Self {
        Self(Arc::new(all))
    }

    /// Writes the log-ins of an archive.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(archive: &Path, all: &[Login]) -> Result<(), FileError> {
        let bytes = serde_json::to_vec_pretty(all);
        let bytes = bytes.map_err(|error| FileError::at(&secrets::path(archive, FILE))(error.into()))?;
        secrets::write(archive, FILE, &bytes)
    }

    /// All of them, in the order in which they were added.
    #[must_use]
    pub fn all(&self) -> &[Login] {
        &self.0
    }

    /// Those for a URL.
    fn for_url(&self, url: &Url) -> impl Iterator<Item = &Login> {
        let is_of_server = |login: &&Login| !matches!(login.way, LoginWay::Proxy { .. });
        self.0.iter().filter(is_of_server).filter(move |login| login.hosts.covers(url))
    }

    /// Name and password for a proxy.
    pub(super) fn of_proxy(&self, host: &str, port: u16) -> Option<(&str, &str)> {
        self.0.iter().find_map(|login| match &login.way {
            LoginWay::Proxy { name, password } if login.hosts.is_proxy(host, port) => {
                Some((name.as_str(), password.as_str()))
            }
            _ => None,
        })
    }

    /// Whether there is one for a URL.
    #[must_use]
    pub fn covers(&self, url: &Url) -> bool {
        self.for_url(url).next().is_some()
    }

    /// Whether a URL ends the session of a log-in, by the words in its path and query.
    #[must_use]
    pub fn is_log_out(&self, url: &Url) -> bool {
        self.covers(url) && {
            let text = url[url::Position::BeforePath..].to_ascii_lowercase();
            let is_inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            LOG_OUT.iter().any(|word| {
                text.match_indices(word).any(|(at, _)| {
                    let (before, after) = (&text[..at], &text[at + word.len()..]);
                    !is_inside(before.chars().next_back()) && !is_inside(after.chars().next())
                })
            })
        }
    }

    /// The fields of a request for a URL.
    pub(super) fn fields(&self, url: &Url) -> Vec<(String, String)> {
        let field = |login: &Login| match &login.way {
            LoginWay::Basic { name, password } => {
                let both = BASE64_STANDARD.encode(format!("{name}:{password}"));
                Some(("Authorization".to_owned(), format!("Basic {both}")))
            }
            LoginWay::Field { name, value } => Some((name.clone(), value.clone())),
            LoginWay::Digest { .. }
            | LoginWay::Cookies(_)
            | LoginWay::Certificate(_)
            | LoginWay::Form(_)
            | LoginWay::Proxy { .. } => None,
        };
        self.for_url(url).filter_map(field).collect()
    }

    /// Name and password of which a URL may ask for proof.
    pub(super) fn provable(&self, url: &Url) -> Option<(&str, &str)> {
        self.for_url(url).find_map(|login| match &login.way {
            LoginWay::Digest { name, password } => Some((name.as_str(), password.as_str())),
            _ => None,
        })
    }

    /// All cookies; of each log-in, those of its hosts.
    pub fn cookies(&self) -> impl Iterator<Item = &KeptCookie> {
        self.0.iter().flat_map(|login| match &login.way {
            LoginWay::Cookies(cookies) => cookies.as_slice(),
            _ => &[],
        })
    }

    /// The certificates that are shown to hosts.
    pub(super) fn certificates(&self) -> Vec<(LoginHosts, Arc<CertifiedKey>)> {
        let certificate = |login: &Login| match &login.way {
            // They were read once already.
            LoginWay::Certificate(pem) => Some((login.hosts.clone(), Arc::new(certified(pem).ok()?))),
            _ => None,
        };
        self.0.iter().filter_map(certificate).collect()
    }
}

/// Returns a head without the values of its fields `Set-Cookie`; `None` if it has none.
pub(super) fn without_cookies(head: &[u8]) -> Option<Vec<u8>> {
    const NAME: &[u8] = b"set-cookie:";
    let is_field = |line: &[u8]| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME));
    if !head.split(|byte| *byte == b'\n').any(is_field) {
        return None;
    }
    let (mut out, mut was_field) = (Vec::with_capacity(head.len()), false);
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        // A line that begins with a blank continues the one before.
        if was_field && (line.starts_with(b" ") || line.starts_with(b"\t")) {
            continue;
        }
        was_field = is_field(line);
        if !was_field {
            out.extend_from_slice(line);
            continue;
        }
        let pair = line.iter().position(|byte| *byte == b';').unwrap_or(line.trim_ascii_end().len());
        let name = line[..pair].iter().position(|byte| *byte == b'=').map_or(NAME.len(), |at| at + 1);
        out.extend_from_slice(&line[..name]);
        out.extend_from_slice(super::cookies::REDACTED.as_bytes());
        out.extend_from_slice(&line[pair..]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> LoginHosts {
        text.parse().unwrap()
    }

    #[test]
    fn a_log_in_is_for_the_hosts_that_it_names() {
        for (named, url, is_meant) in [
            ("a.test", "https://a.test/x", true),
            ("a.test", "http://a.test/x", false),
            ("http://a.test", "http://a.test/x", true),
            ("http://a.test", "https://a.test/x", true),
            ("a.test", "https://b.a.test/", false),
            ("a.test", "https://a.test:8443/", false),
            ("a.test:8443", "https://a.test:8443/", true),
            ("*.a.test", "https://c.b.a.test/", true),
            ("*.a.test", "https://a.test/", true),
            ("*.a.test", "https://ba.test/", false),
            ("http://127.0.0.1:8070", "http://127.0.0.1:8070/", true),
            ("Ä.test", "https://xn--4ca.test/", true),
        ] {
            let named = hosts(named);
            assert_eq!(named.covers(&url.parse().unwrap()), is_meant, "{named} {url}");
            assert_eq!(hosts(&named.to_string()), named);
        }
        for wrong in ["", "a.test/x", "https://a.test", "*", "*.test", "x@a.test", "a.*.test", "a b"] {
            assert!(wrong.parse::<LoginHosts>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_that_log_out_are_known_by_whole_words() {
        let way = LoginWay::Field { name: "X".to_owned(), value: String::new() };
        let logins = Logins(Arc::new(vec![Login { hosts: hosts("a.test"), way }]));
        for (url, is_log_out) in [
            ("https://a.test/user/LogOut", true),
            ("https://a.test/?action=sign-out&x=1", true),
            ("https://a.test/logout.php", true),
            ("https://a.test/catalogoutlet", false),
            ("https://a.test/logouts", false),
            ("https://b.test/logout", false),
        ] {
            assert_eq!(logins.is_log_out(&url.parse().unwrap()), is_log_out, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let field =
            |name: &str, value: &str| LoginWay::Field { name: name.to_owned(), value: value.to_owned() };
        let basic = |name: &str, password: &str| LoginWay::Basic {
            name: name.to_owned(),
            password: password.to_owned(),
        };
        for (way, is_right) in [
            (field("X-Token", "a b"), true),
            (field("X-Token", "a\r\nHost: b"), false),
            (field("X Token", "a"), false),
            (field("hOst", "a"), false),
            (basic("a", "b:c"), true),
            (basic("a:b", "c"), false),
            (basic("a", "b\n"), false),
            (LoginWay::Certificate("none".to_owned()), false),
        ] {
            assert_eq!(way.check(&hosts("a.test")).is_ok(), is_right, "{} {}", way.kind(), way.public());
        }
    }

    #[test]
    fn a_head_keeps_all_but_what_its_cookies_say() {
        let head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=s3cr3t; Path=/\r\n s3cr3t\r\nset-cookie:s3cr3t\r\nServer: x\r\n\r\n";
        let expected =
            b"HTTP/1.1 200 OK\r\nSet-Cookie: a=redacted; Path=/\r\nset-cookie:redacted\r\nServer: x\r\n\r\n";
        assert_eq!(without_cookies(head).as_deref(), Some(&expected[..]));
        assert_eq!(without_cookies(b"HTTP/1.1 200 OK\r\n\r\n"), None);
    }
}
