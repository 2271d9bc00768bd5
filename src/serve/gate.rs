//! Access control: how a request is authenticated, and where unauthenticated requests are redirected.
//!
//! With accounts, a browser has a cookie for each of the two origins. The application's cookie is issued for a
//! password. The cookie for archived pages is issued for a ticket, which the application hands to logged-in people by a
//! redirect to the other origin: it is valid once, for a few seconds and for one address. Archived pages cannot query
//! the application and never see the ticket. The second cookie gives access to archived pages only, and scripts can
//! read neither cookie. Programs send their password with each request.

use std::net::IpAddr;

use archive_books::ledger::host_name;
use bytes::Bytes;
use hyper::HeaderMap;
use url::form_urlencoded;

use super::ServerState;
use super::http::Origin;
use super::page::{Reply, Speech, role_for, wants_json};
use super::people::{AuditKind, Event, LoginRefusal, People, Who};

/// Paths for logging in and out, and for passing people between the two origins.
const LOGIN: &str = "/login";
const LOGOUT: &str = "/logout";
const PASS: &str = "/pass";
const PASSED: &str = "/static/pass";

/// Path at which the server says that it runs. It is answered even if everything else has to wait.
pub(super) const HEALTH: &str = "/health";

/// Maximum number of cookies of a request that are examined: as many as the head of a request can have. Another page may
/// have put any number of its own before ours.
const COOKIES_MAX: usize = 1024;

/// Maximum length of a path in the audit log, in bytes.
const PATH_TOLD: usize = 100;

/// Expensive pages: other web pages may link to them, but not request them on their own.
const COSTLY: [&str; 5] = ["/wacz", "/query", "/pictures", "/compare", super::ask::PATH];

/// A request to be checked.
pub(super) struct GateRequest<'a> {
    pub(super) origin: Origin,
    pub(super) head: &'a HeaderMap,
    /// Path and query.
    pub(super) path: &'a str,
    pub(super) peer: IpAddr,
    pub(super) application: &'a str,
    pub(super) replay: &'a str,
    pub(super) speech: Speech,
    /// Data of a submitted form.
    pub(super) form: Option<&'a Bytes>,
}

/// Whether a path accepts a form for accounts.
pub(super) fn takes_form(path: &str) -> bool {
    matches!(bare(path), LOGIN | LOGOUT)
}

fn bare(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

impl GateRequest<'_> {
    fn field(&self, name: &str) -> Option<&str> {
        self.head.get(name)?.to_str().ok()
    }

    /// Determines who sends the request.
    ///
    /// # Errors
    /// The reply to a client that is not admitted, or that logs in or out.
    pub(super) async fn enter(&self, shared: &ServerState) -> Result<Who, Reply> {
        if self.origin == Origin::Application
            && COSTLY.contains(&bare(self.path))
            && self.is_of_another_page()
        {
            let what = "Another web page may not ask for this; follow a link, or type the address.";
            return Err(self.refusal(403, what));
        }
        // A web server in front may name this one as it likes.
        if let Some(own) = shared.place.own_names.as_ref().filter(|_| shared.user_header.is_none()) {
            self.under_own_name(own)?;
        }
        match &shared.people {
            Some(people) => self.of_people(people, self.address(shared)).await,
            None => self.vouched(shared),
        }
    }

    /// Redirects a browser that navigates to one of the two origins under the name of the other, where its cookies are.
    fn under_own_name(&self, [application, replay]: &[String; 2]) -> Result<(), Reply> {
        let own = if self.origin == Origin::Application { application } else { replay };
        let Some(host) = self.field("host").filter(|host| !host_name(host).eq_ignore_ascii_case(own)) else {
            return Ok(());
        };
        if !self.is_navigation() {
            return Ok(());
        }
        let port = &host[host_name(host).len()..];
        let mut reply = Reply::see_other(&format!("http://{own}{port}{}", self.path));
        // Method and body are sent again.
        reply.status = 307;
        Err(reply)
    }

    /// Whether a browser shows the answer to a person.
    fn is_navigation(&self) -> bool {
        match self.field("sec-fetch-mode") {
            Some(mode) => mode == "navigate",
            None => self.field("accept").is_some_and(|accept| accept.contains("text/html")),
        }
    }

    /// Whether another web page makes the request, other than by a link that a person followed. Programs and old
    /// browsers do not state this.
    fn is_of_another_page(&self) -> bool {
        let is_other =
            self.field("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
        let is_link =
            self.field("sec-fetch-dest") == Some("document") && self.field("sec-fetch-user") == Some("?1");
        is_other && !is_link
    }

    /// The person named by the web server in front of this one.
    fn vouched(&self, shared: &ServerState) -> Result<Who, Reply> {
        let name = shared.user_header.as_ref().and_then(|header| self.field(header.as_str()));
        let name = name.filter(|name| !name.trim().is_empty()).map(str::to_owned);
        if name.is_none() && shared.is_public && !self.is_open() {
            return Err(self.refusal(403, "The web server before this one does not say who you are."));
        }
        Ok(Who { name, ..Who::default() })
    }

    async fn of_people(&self, people: &std::sync::Arc<People>, address: IpAddr) -> Result<Who, Reply> {
        if self.is_open() {
            return Ok(Who::default());
        }
        if self.origin == Origin::Replay && bare(self.path) == PASSED {
            return Err(self.redeem(people));
        }
        if self.origin == Origin::Application && bare(self.path) == LOGIN {
            return Err(self.log_in(people, address).await);
        }
        let is_replay = self.origin == Origin::Replay;
        let client = People::client(self.field("user-agent"));
        let cookies = self.head.get_all("cookie").iter().filter_map(|field| field.to_str().ok());
        let cookies = cookies.flat_map(|field| field.split(';')).filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == self.cookie_name()).then_some(value)
        });
        let who = match people.by_cookie(cookies.take(COOKIES_MAX), is_replay, &client) {
            Some(who) => who,
            None => match self.field("authorization") {
                Some(field) => {
                    people.by_password(field, address).await.map_err(|why| self.turned_away(why))?
                }
                None => return Err(self.unknown()),
            },
        };
        if self.origin == Origin::Application {
            match bare(self.path) {
                PASS => return Err(self.pass(people, &who)),
                LOGOUT => return Err(self.log_out(people, &who, address)),
                path if who.role < Some(role_for(path)) => {
                    let event = Event::of(AuditKind::Refused, who.name.as_deref());
                    people.record(&Event {
                        address: Some(address),
                        path: path.get(..path.len().min(PATH_TOLD)),
                        ..event
                    });
                    return Err(self.refusal(403, "Your account may not see this."));
                }
                _ => {}
            }
        }
        Ok(who)
    }

    /// Whether the path is open to everybody.
    fn is_open(&self) -> bool {
        self.origin == Origin::Application && matches!(bare(self.path), HEALTH | "/style.css")
    }

    /// The client's address. A web server in front is trusted if it is on this machine.
    pub(super) fn address(&self, shared: &ServerState) -> IpAddr {
        let named = || {
            // The client may have sent earlier entries; that server appends its own.
            let last = self.head.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
            last.rsplit(',').next()?.trim().parse().ok()
        };
        shared.place.trusts(self.peer).then(named).flatten().unwrap_or(self.peer)
    }

    fn is_secure(&self) -> bool {
        let own = if self.origin == Origin::Application { self.application } else { self.replay };
        own.starts_with("https://")
    }

    fn cookie_name(&self) -> String {
        let name = if self.origin == Origin::Application { "archive" } else { "archive-pages" };
        format!("{}{name}", if self.is_secure() { "__Host-" } else { "" })
    }

    /// Redirects with a cookie that scripts cannot read. The one for archived pages is also sent when a person follows a
    /// link from the application, which may be on another site. In a frame of a page of another site, such as the
    /// application, browsers keep only a cookie that is good in frames of that site alone.
    fn with_cookie(&self, to: &str, value: &str) -> Reply {
        let is_framed = self.field("sec-fetch-site") == Some("cross-site")
            && self.field("sec-fetch-dest").is_some_and(|destination| destination != "document");
        let site = match self.origin {
            Origin::Application => "Strict",
            Origin::Replay if is_framed => "None; Partitioned",
            Origin::Replay => "Lax",
        };
        let secure = if self.is_secure() || site.starts_with("None") { "; Secure" } else { "" };
        let end = if value.is_empty() { "; Max-Age=0" } else { "" };
        let value = format!("{}={value}; Path=/; HttpOnly; SameSite={site}{secure}{end}", self.cookie_name());
        Reply::see_other(to).with("Set-Cookie", value)
    }

    fn refusal(&self, status: u16, what: &'static str) -> Reply {
        Reply::refusal(status, self.speech, what, self.wants_data())
    }

    fn wants_data(&self) -> bool {
        wants_json(self.field("accept")) || self.parameter("format").as_deref() == Some("json")
    }

    /// A parameter of the form, or else of the query.
    fn parameter(&self, name: &str) -> Option<String> {
        let query = self.path.split_once('?').map_or("", |(_, query)| query).as_bytes();
        let sent = self.form.map_or(query, |form| form);
        form_urlencoded::parse(sent).find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
    }

    /// Where a person wanted to go: a path on this server, because one of its origins is prepended.
    fn aim(&self) -> String {
        let is_path = |to: &String| to.starts_with('/') && to.bytes().all(|byte| byte.is_ascii_graphic());
        self.parameter("to").filter(is_path).unwrap_or_else(|| "/".to_owned())
    }

    /// The reply to a client without a session: people are redirected to the login.
    fn unknown(&self) -> Reply {
        if !self.is_navigation() || self.form.is_some() {
            let reply = self.refusal(401, "Log in first.");
            // Otherwise the browser would ask for the password itself, and keep it.
            return match self.field("sec-fetch-mode") {
                Some(_) => reply,
                None => reply.with("WWW-Authenticate", "Basic realm=\"archive\", charset=\"UTF-8\""),
            };
        }
        if self.origin == Origin::Application && self.field("sec-fetch-site") == Some("cross-site") {
            // A browser sends no cookie when following a link from another site, but does when this page reloads.
            return Reply::problem(200, self.speech, "One moment.").with("Refresh", "0");
        }
        let to: String = form_urlencoded::byte_serialize(self.path.as_bytes()).collect();
        let place = if self.origin == Origin::Application { LOGIN } else { PASS };
        Reply::see_other(&format!("{}{place}?to={to}", self.application))
    }

    fn turned_away(&self, why: LoginRefusal) -> Reply {
        let (status, what) = said(why);
        later(why, self.refusal(if why == LoginRefusal::Wrong { 401 } else { status }, what))
    }

    async fn log_in(&self, people: &std::sync::Arc<People>, address: IpAddr) -> Reply {
        let to = self.aim();
        if self.form.is_none() {
            return Reply::login(200, self.speech, &to, self.replay, None);
        }
        let t = self.parameter("lang").map_or(self.speech, |tag| self.speech.choosing(&tag));
        let sent = |name: &str| self.parameter(name).unwrap_or_default();
        let client = People::client(self.field("user-agent"));
        match people.log_in(&sent("name"), &sent("password"), address, client).await {
            Ok(id) => self.with_cookie(&format!("{}{to}", self.application), &id),
            Err(why) => {
                let (status, what) = said(why);
                later(why, Reply::login(status, t, &to, self.replay, Some(what)))
            }
        }
    }

    fn log_out(&self, people: &People, who: &Who, address: IpAddr) -> Reply {
        if self.form.is_none() {
            return Reply::logout(self.speech, who.name.as_deref().unwrap_or_default());
        }
        people.log_out(who, address);
        self.with_cookie(&format!("{}{LOGIN}", self.application), "")
    }

    /// Redirects to an archived page with a ticket.
    fn pass(&self, people: &People, who: &Who) -> Reply {
        match people.ticket(who, &self.aim()) {
            Some(ticket) => Reply::see_other(&format!("{}{PASSED}?ticket={ticket}", self.replay)),
            None => self.unknown(),
        }
    }

    /// Redeems a ticket at the origin of archived pages.
    fn redeem(&self, people: &People) -> Reply {
        let Some((cookie, path)) = self.parameter("ticket").and_then(|ticket| people.redeem(&ticket)) else {
            return self.refusal(403, "This ticket is used or too old. Go back and try again.");
        };
        self.with_cookie(&format!("{}{path}", self.replay), &cookie)
    }
}

/// Says when to try again, if there were too many attempts.
fn later(why: LoginRefusal, reply: Reply) -> Reply {
    if why == LoginRefusal::TooMany { reply.with("Retry-After", "900") } else { reply }
}

fn said(why: LoginRefusal) -> (u16, &'static str) {
    match why {
        LoginRefusal::Wrong => (403, "Name or password is wrong."),
        LoginRefusal::TooMany => (429, "There were too many wrong passwords. Wait a quarter of an hour."),
        LoginRefusal::Unable => (503, "Nobody can log in at the moment; the server's log has more."),
    }
}
