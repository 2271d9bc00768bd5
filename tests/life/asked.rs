//! What the archive says when it is asked, in every way in which people and programs ask.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::support::Archive;
use crate::support::served::{Answer, Served, ask};

/// An archive that is served and asked.
pub(super) struct Asked<'a> {
    pub(super) archive: &'a Archive,
    pub(super) served: Served,
}

impl<'a> Asked<'a> {
    pub(super) fn of(archive: &'a Archive) -> Self {
        Self { archive, served: Served::of(archive) }
    }

    /// Returns what replay shows behind redirects: the status, whether it is a capture, and the text unless it is an
    /// error.
    pub(super) fn replayed(&self, url: &str, time: DateTime<Utc>) -> (u16, bool, String) {
        let (answer, is_capture) = self.followed(&format!("/web/{}id_/{url}", stamp(time)));
        let text = if answer.status == 200 {
            String::from_utf8_lossy(&answer.body).into_owned()
        } else {
            String::new()
        };
        (answer.status, is_capture, text)
    }

    /// Returns the day of the capture to which the TimeGate leads, as in `2018-06-01`.
    pub(super) fn negotiated(&self, url: &str, time: DateTime<Utc>) -> Option<String> {
        let date = format!("Accept-Datetime: {}", time.format("%a, %d %b %Y %H:%M:%S GMT"));
        let answer = ask(&self.served.replay, "GET", &format!("/timegate/{url}"), &[&date]);
        let place = answer.get("location")?.split_once("/web/")?.1;
        let (_, is_capture) = self.followed(&format!("/web/{place}"));
        is_capture.then(|| day(place))
    }

    fn followed(&self, path: &str) -> (Answer, bool) {
        const REDIRECTS_MAX: usize = 8;
        let mut path = path.to_owned();
        for _ in 0..REDIRECTS_MAX {
            let answer = ask(&self.served.replay, "GET", &path, &[]);
            match answer.get("location") {
                Some(place) if (300..400).contains(&answer.status) => {
                    path = format!("/web/{}", place.split_once("/web/").unwrap().1);
                }
                _ => {
                    let is_capture = answer.get("memento-datetime").is_some();
                    return (answer, is_capture);
                }
            }
        }
        (Answer { status: 0, fields: Vec::new(), body: b"too many redirects".to_vec() }, false)
    }

    /// Returns the days of a URL's captures in its TimeMap.
    pub(super) fn mapped(&self, url: &str) -> Vec<String> {
        let answer = ask(&self.served.replay, "GET", &format!("/timemap/json/{url}"), &[]);
        let map: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let listed = map["mementos"]["list"].as_array().into_iter().flatten();
        let own = listed.filter(|it| it["uri"].as_str().unwrap().ends_with(&format!("/{url}")));
        days(own.map(|it| it["datetime"].as_str().unwrap().to_owned()))
    }

    /// Returns the days of a URL's captures in the CDX server, each with its status: for 304 that of what was not modified.
    pub(super) fn listed(&self, url: &str) -> Vec<(String, String)> {
        let asked = url::form_urlencoded::byte_serialize(url.as_bytes()).collect::<String>();
        let answer = ask(&self.served.replay, "GET", &format!("/cdx?url={asked}&output=json"), &[]);
        let lines = std::str::from_utf8(&answer.body).unwrap().lines();
        let rows = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let own = rows.filter(|row| row["url"] == url);
        let mut days: Vec<_> = own
            .map(|row| {
                let stamp = row["timestamp"].as_str().unwrap();
                (day(stamp), row["status"].as_str().unwrap_or_default().replace("304", "200"))
            })
            .collect();
        days.dedup_by(|later, earlier| later.0 == earlier.0);
        days
    }

    /// Returns the application's page of a URL.
    pub(super) fn page(&self, url: &str) -> Value {
        self.application("/page", &[("url", url)])
    }

    /// Returns the pages that a search finds as of a time.
    pub(super) fn found(&self, words: &str, time: DateTime<Utc>) -> BTreeSet<String> {
        let time = time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let answer = self.application("/search", &[("q", words), ("as-of", &time)]);
        let hits = answer["results"].as_array().cloned().unwrap_or_default();
        let urls = hits
            .iter()
            .flat_map(|hit| [&hit["url"]].into_iter().chain(hit["also"].as_array().into_iter().flatten()));
        urls.map(|url| url.as_str().unwrap().to_owned()).collect()
    }

    fn application(&self, path: &str, parameters: &[(&str, &str)]) -> Value {
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
        let answer = ask(&self.served.application, "GET", &format!("{path}?{query}&format=json"), &[]);
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Returns the content of a URL as of a time, from the command line.
    pub(super) fn got(&self, url: &str, time: DateTime<Utc>) -> Vec<u8> {
        let at = time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        self.archive.run("get", &[url, "--at", &at]).output
    }
}

/// Returns days without repetition from times that begin with a day.
fn days(times: impl Iterator<Item = String>) -> Vec<String> {
    let mut days: Vec<String> = times.map(|time| time[..10].to_owned()).collect();
    days.sort();
    days.dedup();
    days
}

/// Returns the day of a timestamp, as in `2018-06-01`.
fn day(stamp: &str) -> String {
    format!("{}-{}-{}", &stamp[..4], &stamp[4..6], &stamp[6..8])
}

fn stamp(time: DateTime<Utc>) -> String {
    time.format("%Y%m%d%H%M%S").to_string()
}
