//! Sessions of log-ins by a form: begun before the first page of a run that they are for, and again when they have ended.
//!
//! Nothing that passes while somebody logs in leaves this module but the cookies that it gives. What an answer to a later
//! request tells of its session is read here, too, so that no log-in page is taken for the page in whose place it came.

use std::sync::Arc;

use archive_storage::address::site_of;
use archive_storage::warc::{dechunk, split};
use bytes::Bytes;
use tokio::sync::Mutex;
use url::Url;

use super::login_form::{LoginForm, may_send};
use super::logins::{Login, LoginHosts, LoginWay};
use super::service::FetchClient;
use super::{
    BodyMemory, CookieContext, Endpoint, Exchange, FetchError, FetchRequest, FetchSettings, HttpMessage,
    Logins,
};
use crate::parse::html::password_forms;
use crate::parse::{charset, charset_parameter, decode_content};

/// Maximum number of redirects before and after a form.
const REDIRECTS_MAX: usize = 10;

/// Maximum bytes of a page that are searched for a form or a text.
const SEARCHED_BYTES_MAX: usize = 1 << 20;

/// Maximum number of log-ins of a run by one form.
const SESSIONS_MAX: u32 = 1000;

/// Maximum number of sessions in which a page is asked for.
const TRIES_MAX: usize = 4;

/// A log-in is given up after this many pages in a row that a new session did not open.
const UNOPENED_MAX: u32 = 3;

/// A log-in by a form, and its session in this run.
pub(super) struct Door {
    hosts: LoginHosts,
    form: LoginForm,
    session: Mutex<DoorSession>,
}

#[derive(Default)]
struct DoorSession {
    /// Number of log-ins so far.
    number: u32,
    /// Where its form is.
    place: Option<FormPlace>,
    /// The newest one that opened a page.
    opened: u32,
    /// Pages in a row that a new session did not open.
    unopened: u32,
    /// Why there will be no further session in this run.
    closed: Option<Arc<str>>,
}

/// Where the form of a log-in is.
#[derive(Clone)]
struct FormPlace {
    /// Its page.
    page: Url,
    /// Its page after redirects.
    shown: Url,
    /// Where it is sent.
    action: Url,
}

impl FormPlace {
    /// Whether a URL is that of the form's page, whatever else is in its query.
    fn is_at(&self, url: &Url) -> bool {
        let is_asked = |pair| url.query_pairs().any(|own| own == pair);
        (is_same_path(&self.page, url) || is_same_path(&self.shown, url))
            && self.page.query_pairs().all(is_asked)
    }

    /// Whether a page has the form, or one with a password that is sent to the same place.
    fn is_on(&self, html: &str, url: &Url) -> bool {
        // Most pages have no such word.
        let has_word = html.as_bytes().windows(8).any(|word| word.eq_ignore_ascii_case(b"password"));
        has_word && password_forms(html, url).iter().any(|form| is_same_path(&self.action, &form.action))
    }
}

/// What came of a log-in that was tried.
#[derive(Debug)]
pub struct LoginTrial {
    /// What was asked and answered, without anything secret.
    pub steps: Vec<String>,
    /// Why it did not work.
    pub problem: Option<String>,
}

/// A page at which a chain of redirects ended.
struct Landing {
    url: Url,
    status: u16,
    text: String,
}

impl Door {
    pub(super) fn all(logins: &Logins) -> Vec<Self> {
        let door = |login: &Login| match &login.way {
            LoginWay::Form(form) => {
                Some(Self { hosts: login.hosts.clone(), form: (**form).clone(), session: Mutex::default() })
            }
            _ => None,
        };
        logins.all().iter().filter_map(door).collect()
    }

    pub(super) fn is_for(&self, request: &FetchRequest) -> bool {
        request.cookies != CookieContext::None && self.hosts.covers(&request.url)
    }
}

impl FetchClient {
    /// Asks for a URL behind a door.
    pub(super) async fn ask_behind(
        &self,
        door: &Door,
        endpoint: Endpoint,
        request: &FetchRequest,
    ) -> Result<Exchange, FetchError> {
        let mut session = 0;
        for _ in 0..TRIES_MAX {
            let before = session;
            session = self.enter(door, before).await?;
            let exchange = self.prove(endpoint.clone(), request).await?;
            let sign = self.sign_of_end(door, request, &exchange).await;
            let mut state = door.session.lock().await;
            let Some(sign) = sign else {
                (state.opened, state.unopened) = (state.opened.max(session), 0);
                return Ok(exchange);
            };
            // Other requests may have used up the new session.
            if before > 0 && state.opened < session {
                return Err(state.unopened(&door.hosts, sign));
            }
        }
        Err(FetchError::LoggedOut("sessions end at once"))
    }

    /// Logs in, unless there has been a session after this one. Returns the number of the session.
    async fn enter(&self, door: &Door, after: u32) -> Result<u32, FetchError> {
        let mut session = door.session.lock().await;
        if let Some(why) = &session.closed {
            return Err(FetchError::LogIn(Arc::clone(why)));
        }
        if session.number > after {
            return Ok(session.number);
        }
        if session.number >= SESSIONS_MAX {
            let why = format!("its sessions have ended {SESSIONS_MAX} times in this run");
            return Err(FetchError::LogIn(session.close(&door.hosts, &why)));
        }
        match self.log_in(door, &mut Vec::new()).await {
            Ok(place) => {
                session.place = Some(place);
                session.number += 1;
                Ok(session.number)
            }
            Err(why) => Err(FetchError::LogIn(session.close(&door.hosts, &why))),
        }
    }

    /// Fills in the form, and checks that it worked. Returns where the form is.
    async fn log_in(&self, door: &Door, steps: &mut Vec<String>) -> Result<FormPlace, String> {
        let Door { form, hosts, .. } = door;
        let page = Url::parse(&form.page).map_err(|error| error.to_string())?;
        let cookies =
            self.settings.cookies.as_ref().ok_or("a form needs cookies, which are off (--cookies)")?;
        // Who is logged in already is shown no form.
        let shown_at = page.host_str().unwrap_or_default();
        let is_sent = |domain: &str| {
            let above = shown_at.strip_suffix(domain);
            hosts.has(domain)
                || hosts.is_sent(domain, false)
                || above.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        cookies.drop_of(is_sent);
        let shown = self.follow(door, FetchRequest::new(page.clone()), steps).await?;
        let forms = password_forms(&shown.text, &shown.url);
        let filled = form.choose(forms).ok_or_else(|| {
            format!("{} (status {}) has no form with a password", public(&shown.url), shown.status)
        })?;
        let site = |url: &Url| url.host_str().map(|host| site_of(host).to_owned());
        if site(&filled.action) != site(&page) || !may_send(&filled.action, hosts.is_plain()) {
            let to = public(&filled.action);
            return Err(format!(
                "the form is sent to {to}, which is another site, or has no TLS: give its own page"
            ));
        }
        let names: Vec<&str> = filled.fields.iter().map(|field| field.name.as_str()).collect();
        steps.push(format!("a form with {} is sent to {}", names.join(", "), public(&filled.action)));
        let sent = form.fill(&filled)?;
        let mut request = FetchRequest::new(filled.action.clone());
        if filled.is_post {
            request.form = Some(sent.into());
        } else {
            request.url.set_query(Some(&sent));
        }
        request.set_referer(&shown.url);
        let place = FormPlace { page, shown: shown.url, action: filled.action };
        let answer = self.follow(door, request, steps).await?;
        self.check(form, &answer, &place)?;
        Ok(place)
    }

    /// Checks that a form worked, by the page to which it led.
    fn check(&self, form: &LoginForm, answer: &Landing, place: &FormPlace) -> Result<(), String> {
        let at = format!("{} (status {})", public(&answer.url), answer.status);
        let is_right = form.check_status.map_or(answer.status < 400, |status| answer.status == status);
        if !is_right {
            return Err(format!("it led to {at}"));
        }
        if form.check_text.as_ref().is_some_and(|text| !answer.text.contains(text)) {
            return Err(format!("it led to {at}, which lacks the text of --check-text"));
        }
        if form.check_cookie.as_ref().is_some_and(|name| !self.has_cookie(name, &[&place.page, &answer.url]))
        {
            return Err(format!("it led to {at}, but gave no cookie of the name of --check-cookie"));
        }
        if form.out_text.as_ref().is_some_and(|text| answer.text.contains(text)) {
            return Err(format!("it led to {at}, which has the text of --out-text"));
        }
        if form.check_text.is_none() && place.is_on(&answer.text, &answer.url) {
            return Err(format!("it led to {at}, which shows the form again"));
        }
        Ok(())
    }

    /// Asks for a URL, and for those to which the answers redirect.
    async fn follow(
        &self,
        door: &Door,
        mut request: FetchRequest,
        steps: &mut Vec<String>,
    ) -> Result<Landing, String> {
        for _ in 0..=REDIRECTS_MAX {
            let url = request.url.clone();
            if !may_send(&url, door.hosts.is_plain()) {
                return Err(format!("it leads to {}, which has no TLS", public(&url)));
            }
            let failed = |error: FetchError| format!("{}: {error}", public(&url));
            let host = url.host_str().unwrap_or_default();
            let port = url.port_or_known_default().unwrap_or(443);
            let place = self.connector.resolve(host, port).await.map_err(failed)?;
            let endpoint = Endpoint { secure: url.scheme() == "https", host: host.into(), port, place };
            request.cookies = CookieContext::SameSite;
            request.body_bytes_max = Some(SEARCHED_BYTES_MAX as u64);
            let exchange = self.prove(endpoint, &request).await.map_err(failed)?;
            steps.push(format!("{}: status {}", public(&url), exchange.status));
            let Some(target) = redirect(&url, &exchange) else {
                let text = text_of(&exchange.http);
                return Ok(Landing { url, status: exchange.status, text });
            };
            if matches!(exchange.status, 307 | 308) && request.form.is_some() {
                return Err(format!(
                    "{} wants the form to be sent elsewhere (status {})",
                    public(&url),
                    exchange.status
                ));
            }
            request = FetchRequest::new(target);
            request.set_referer(&url);
        }
        Err(format!("more than {REDIRECTS_MAX} redirects"))
    }

    fn has_cookie(&self, name: &str, urls: &[&Url]) -> bool {
        let now = self.settings.clock.now().timestamp();
        let jar = self.settings.cookies.as_ref();
        urls.iter().any(|url| jar.is_some_and(|cookies| cookies.has_named(url, name, now)))
    }

    /// Returns how an answer shows that the session has ended, if it does.
    async fn sign_of_end(
        &self,
        door: &Door,
        request: &FetchRequest,
        exchange: &Exchange,
    ) -> Option<&'static str> {
        // Whoever asks for the form itself gets it.
        let place = door.session.lock().await.place.clone().filter(|place| !place.is_at(&request.url))?;
        if exchange.status == 401 {
            return Some("status 401");
        }
        let target = redirect(&request.url, exchange);
        if target.is_some_and(|target| place.is_at(&target)) {
            return Some("a redirect to the page of the log-in");
        }
        let urls = [&place.page, &request.url];
        if door.form.check_cookie.as_ref().is_some_and(|name| !self.has_cookie(name, &urls)) {
            return Some("the cookie of --check-cookie is gone");
        }
        let is_page = matches!(
            exchange.http.head().media_type().as_deref(),
            None | Some("text/html" | "application/xhtml+xml")
        );
        if !is_page {
            return None;
        }
        let text = text_of(&exchange.http);
        if door.form.out_text.as_ref().is_some_and(|out| text.contains(out)) {
            return Some("the text of --out-text");
        }
        place.is_on(&text, &request.url).then_some("the form of the log-in")
    }

    /// Tries a log-in: fills in its form, or asks for the home page of its host with what it shows there.
    async fn try_login(&self, login: &Login) -> LoginTrial {
        let mut steps = Vec::new();
        let doors = Door::all(&Logins::of(vec![login.clone()]));
        let problem = match doors.first() {
            Some(door) => self.log_in(door, &mut steps).await.err(),
            None => self.ask_home(login, &mut steps).await.err(),
        };
        LoginTrial { steps, problem }
    }

    async fn ask_home(&self, login: &Login, steps: &mut Vec<String>) -> Result<(), String> {
        let door = Door { hosts: login.hosts.clone(), form: LoginForm::default(), session: Mutex::default() };
        let url = Url::parse(&login.hosts.url()).map_err(|error| error.to_string())?;
        let landing = self.follow(&door, FetchRequest::new(url), steps).await?;
        if landing.status < 400 { Ok(()) } else { Err(format!("it led to status {}", landing.status)) }
    }
}

impl DoorSession {
    /// Counts a page that a new session did not open; the last one closes the door.
    fn unopened(&mut self, hosts: &LoginHosts, sign: &'static str) -> FetchError {
        self.unopened += 1;
        match &self.closed {
            Some(why) => FetchError::LogIn(Arc::clone(why)),
            None if self.unopened < UNOPENED_MAX => FetchError::LoggedOut(sign),
            None => {
                let why = format!("a new session opens no page any more: {sign}");
                FetchError::LogIn(self.close(hosts, &why))
            }
        }
    }

    fn close(&mut self, hosts: &LoginHosts, why: &str) -> Arc<str> {
        let why: Arc<str> = format!("the log-in at {hosts} does not work: {why}").into();
        self.closed = Some(Arc::clone(&why));
        why
    }
}

/// Tries a log-in as a run would make it, without an archive.
///
/// # Errors
/// When there can be no event queue of the operating system.
pub fn try_login(settings: FetchSettings, login: &Login) -> std::io::Result<LoginTrial> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let memory = BodyMemory::new(64 * SEARCHED_BYTES_MAX, std::env::temp_dir());
    let settings = FetchSettings { logins: Logins::of(vec![login.clone()]), ..settings };
    let client = FetchClient::new(settings, memory);
    let local = tokio::task::LocalSet::new();
    Ok(local.block_on(&runtime, client.try_login(login)))
}

/// Where an answer redirects to.
fn redirect(url: &Url, exchange: &Exchange) -> Option<Url> {
    let head = exchange.http.head();
    let location = head.get("Location").filter(|_| (300..400).contains(&exchange.status))?;
    url.join(location).ok()
}

fn is_same_path(one: &Url, other: &Url) -> bool {
    (one.host_str(), one.port_or_known_default(), one.path())
        == (other.host_str(), other.port_or_known_default(), other.path())
}

/// Returns the beginning of a body as text.
fn text_of(http: &HttpMessage) -> String {
    let head = http.head();
    let body = match http {
        HttpMessage::Whole(http) => split(http).1,
        // What cannot be read has no text; storing it will fail, and say so.
        HttpMessage::Spooled { body, .. } => body.beginning(SEARCHED_BYTES_MAX).unwrap_or_default().into(),
    };
    let body: Bytes = body.slice(..body.len().min(SEARCHED_BYTES_MAX));
    let body = if head.is_chunked() { dechunk(&body) } else { body };
    let decoded = decode_content(&body, &head.list("Content-Encoding"), SEARCHED_BYTES_MAX).body;
    let label = head.get("Content-Type").and_then(charset_parameter);
    let charset = charset::detect(&decoded, label, false);
    charset::decode(&decoded, &charset).0.into_owned()
}

/// A URL as it may be said: queries of log-ins have tokens.
fn public(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}
