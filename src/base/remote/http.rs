//! HTTP connections to object stores, using the program's own client.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt, Limited};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::redirect::Policy;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use crate::duration::read_duration;
use crate::program;

/// Maximum bytes of an answer that is not an object, such as a page of a listing or an error.
pub(super) const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Timeout for connecting, unless `AWS_CONNECT_TIMEOUT` is set.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Timeout between a request and the head of its answer, and between two reads of an object's bytes, unless
/// `AWS_READ_TIMEOUT` is set. It includes the time for sending, so a part of an upload must be sent within it.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// Creates clients for stores.
#[derive(Debug)]
pub(super) struct StoreConnector;

impl HttpConnector for StoreConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // reqwest is built without a provider of its own; the crawler's is installed for the process, once.
        drop(rustls::crypto::ring::default_provider().install_default());
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let client = reqwest::Client::builder()
            .user_agent(program::PRODUCT)
            .https_only(!allows_http)
            // The request's signature is for this store only.
            .redirect(Policy::none())
            .connect_timeout(timeout(options, ClientConfigKey::ConnectTimeout, CONNECT_TIMEOUT)?)
            .read_timeout(timeout(options, ClientConfigKey::ReadTimeout, READ_TIMEOUT)?)
            .build();
        Ok(HttpClient::new(StoreClient { http: client.map_err(wrong)?, pages: Mutex::default() }))
    }
}

fn wrong(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> object_store::Error {
    object_store::Error::Generic { store: "S3", source: error.into() }
}

/// Returns a timeout from the environment, or else `usual`; the library's defaults don't suit the parts of an upload.
fn timeout(options: &ClientOptions, key: ClientConfigKey, usual: Duration) -> object_store::Result<Duration> {
    let library = ClientOptions::default().get_config_value(&key);
    match options.get_config_value(&key) {
        Some(text) if Some(&text) != library.as_ref() => read_duration(&text).map_err(wrong),
        _ => Ok(usual),
    }
}

/// Number of times that a page of a listing may be given: a store that names the same next page for ever would be
/// listed for ever. Listings side by side may have pages in common.
const SAME_PAGE_MAX: u32 = 16;

#[derive(Debug)]
struct StoreClient {
    http: reqwest::Client,
    /// How often each page was given, by the hash of its URL, since a listing last began.
    pages: Mutex<HashMap<u64, u32>>,
}

impl StoreClient {
    /// Notes that a page of a listing is given; fails if it always is the same one.
    fn turn_page(&self, url: &Url) -> Result<(), HttpError> {
        let has = |name: &str| url.query_pairs().any(|(found, _)| found == name);
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if !has("continuation-token") {
            if has("list-type") {
                pages.clear();
            }
            return Ok(());
        }
        let times = pages.entry(xxh3_64(url.as_str().as_bytes())).or_default();
        *times += 1;
        if *times <= SAME_PAGE_MAX {
            return Ok(());
        }
        let problem = "the store names the same next page of a listing again and again";
        Err(HttpError::new(HttpErrorKind::Decode, io::Error::other(problem)))
    }
}

#[async_trait]
impl HttpService for StoreClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string())
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let is_get = parts.method == reqwest::Method::GET && url.query().is_none();
        let asked = url.clone();
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        *request.body_mut() = Some(reqwest::Body::wrap(body));
        let response = self.http.execute(request).await.map_err(failed)?;
        if response.status().is_success() {
            self.turn_page(&asked)?;
        }
        // The caller limits the bytes of an object.
        let limit = if is_get && response.status().is_success() { usize::MAX } else { ANSWER_BYTES_MAX };
        let (parts, body) = http::Response::<reqwest::Body>::from(response).into_parts();
        let body = Limited::new(body, limit).map_err(|error| match error.downcast::<reqwest::Error>() {
            Ok(error) => failed(*error),
            Err(error) => HttpError::new_boxed(HttpErrorKind::Decode, error),
        });
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

/// Classifies a failure; the library decides by the kind whether to retry.
fn failed(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else if error.is_builder() {
        HttpErrorKind::Unknown
    } else {
        // The connection was cut; idempotent requests are retried.
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error.without_url())
}
