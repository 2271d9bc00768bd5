//! Requests to an archive as the replay server makes them.

use archive_base::access::Access;
use archive_replay::{Request, Response};
use archive_storage::Store;

use super::Archive;
use super::warc::response;
use crate::imports::import;

pub(crate) const BASE: &str = "http://replay.test";
pub(crate) const APPLICATION: &str = "http://application.test";
pub(crate) const URL: &str = "http://a.org/p";
pub(crate) const DAYS: [&str; 3] = ["2014-01-03T03:03:21Z", "2016-02-03T04:05:06Z", "2018-03-04T05:06:07Z"];
pub(crate) const STAMPS: [&str; 3] = ["20140103030321", "20160203040506", "20180304050607"];

/// An archive that is queried as by the replay server.
pub(crate) struct Replay {
    pub(crate) archive: Archive,
}

impl Replay {
    pub(crate) fn of(records: &[Vec<u8>]) -> Self {
        let archive = Archive::new();
        let (findings, _) = import(&archive, &[("all.warc", records.concat())]);
        println!("{findings:?}");
        Self { archive }
    }

    pub(crate) fn request(&self, request: &Request<'_>) -> Response {
        let store = Store::read_only(&self.archive.path).unwrap();
        let access = Access::read(&self.archive.path).unwrap();
        let request = &Request { application: APPLICATION, ..*request };
        let response = archive_replay::answer(&store, &access, request).unwrap();
        for (name, value) in &response.headers {
            assert!(!name.contains(|c: char| c.is_whitespace() || c == ':'), "{name}");
            assert!(!value.contains(|c: char| c.is_control()), "{name}: {value:?}");
        }
        // Every redirect must stay within the replay, but for the list of a URL's captures: a page of the application.
        if let Some(location) = response.get("Location") {
            let own = location.starts_with("/web/") || location.starts_with(&format!("{BASE}/web/"));
            let list = location.strip_prefix(APPLICATION).is_some_and(|rest| rest.starts_with("/page?url="));
            let is_list = request.path.starts_with("/web/*") && list;
            assert!(own || is_list, "{}: {location}", request.path);
        }
        assert!(response.get("Content-Security-Policy").unwrap().contains("default-src 'self'"));
        assert_eq!(response.get("Set-Cookie"), None);
        response
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.request(&Request { path, base: BASE, ..Request::default() })
    }

    pub(crate) fn at(&self, path: &str, accept_datetime: &str) -> Response {
        self.request(&Request {
            path,
            base: BASE,
            accept_datetime: Some(accept_datetime),
            ..Request::default()
        })
    }

    pub(crate) fn text(&self, path: &str) -> String {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}");
        text(&response)
    }

    pub(crate) fn lines(&self, query: &str) -> Vec<String> {
        self.text(&format!("/cdx?{query}")).lines().map(str::to_owned).collect()
    }

    /// Returns the target of a redirect.
    pub(crate) fn leads(&self, path: &str) -> String {
        let response = self.get(path);
        assert_eq!(response.status, 302, "{path}");
        response.get("Location").unwrap().to_owned()
    }
}

pub(crate) fn text(response: &Response) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}

/// Returns an archive with three versions of one page.
pub(crate) fn versions() -> Replay {
    let page = |number: usize| {
        response(&format!("urn:uuid:{number}"), URL, DAYS[number], &format!("<p>version {number}"))
    };
    Replay::of(&[page(0), page(1), page(2)])
}
