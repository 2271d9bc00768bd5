//! HTTP, robots.txt, DNS and the address guard: from a URL to the bytes received over the wire.
//!
//! One thread holds all sockets. An [`Exchange`] reads a response into one buffer, and the archive stores that buffer
//! unchanged: heads, transfer coding and content coding are never rebuilt, except that HTTP/2 is put into the form of HTTP/1.1. Redirects are not followed here: each
//! response is a capture of its own. A body that is too long for memory goes to a file while it is received
//! ([`BodyMemory`]).

mod body;
mod certificates;
mod connect;
mod connect_to;
pub mod cookie_files;
pub mod cookies;
mod digest;
mod doors;
mod error;
mod exchange;
mod framing;
mod guard;
mod http2;
mod idle;
mod login_form;
pub mod logins;
mod proxy;
mod request;
mod resume;
pub mod robots;
mod service;
mod ways;

pub use body::{BodyMemory, ChargedBytes, HttpMessage};
pub use certificates::{AcceptedCertificate, CertificateFault, TlsFacts};
pub use connect::{Endpoint, Place};
pub use connect_to::{ConnectTo, ConnectToError};
pub use cookies::{CookieContext, Cookies};
pub use doors::{LoginTrial, try_login};
pub use error::FetchError;
pub use exchange::Exchange;
pub use guard::is_public;
pub use login_form::LoginForm;
pub use logins::Logins;
pub use proxy::ProxyFault;
pub use request::{Compression, FetchRequest};
pub use service::{
    FetchSettings, FetchTask, Fetcher, FetcherEnded, Job, JobResult, ResponseLimits, TypeLimit,
};
pub use ways::{IpVersion, Proxy, ProxyRule, ProxyRuleError, Ways};
