//! Checks that the state is consistent: every block is readable, every reference resolves, every invariant holds.

use std::fmt::Display;

use super::State;
use crate::address::url_hash;
use crate::checkpoint::{Result, StateError};
use crate::history::{Capture, History};
use crate::ids::UrlId;
use crate::links::{LinkCursor, LinkList};
use crate::pages::{Page, Visit, VisitRecord};
use crate::urls::{Finder, NameTable};

/// Something in the state that is inconsistent with the rest of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    /// The kind of thing: `URL`, `visit`, `capture`, `host`.
    pub thing: &'static str,
    /// The id of the thing.
    pub id: u32,
    /// Description of the inconsistency.
    pub what: &'static str,
}

impl std::fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.thing, self.id, self.what)
    }
}

impl State {
    /// Reads everything and reports all damage; if there is none, reports inconsistencies.
    ///
    /// # Errors
    /// On an I/O error for data that was readable a moment ago.
    pub fn check(&self, report: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        let mut is_damaged = false;
        let mut damage = |error: &StateError| {
            is_damaged = true;
            report(error);
        };
        self.pages.check(&mut damage);
        self.visits.check(&mut damage);
        self.captures.check(&mut damage);
        self.hosts.check(&mut damage);
        self.sites.check(&mut damage);
        let names = [&self.urls, &self.host_names, &self.site_names].map(NameTable::log);
        for log in names.into_iter().chain([self.titles.log(), self.validators.log(), self.links.log()]) {
            log.check(self.identity(), &mut damage);
        }
        for path in [self.finder_path(), self.keys_path()] {
            match Finder::open(self.disk.as_ref(), &path, self.identity()) {
                Ok(finder) => finder.iter().for_each(|finder| finder.check(&mut damage)),
                Err(error) => damage(&error),
            }
        }
        if is_damaged { Ok(()) } else { self.check_references(&mut |found| report(&found)) }
    }

    fn check_references(&self, report: &mut dyn FnMut(Inconsistency)) -> Result<()> {
        self.check_urls(report)?;
        self.check_pages(report)?;
        self.check_visits(report)?;
        self.check_captures(report)?;
        let sites = self.site_count();
        for host in self.hosts() {
            let (id, _, host) = host?;
            if host.site.0 >= sites {
                report(Inconsistency { thing: "host", id: id.0, what: "its site does not exist" });
            }
        }
        self.sites().try_for_each(|site| site.map(drop))
    }

    fn check_urls(&self, report: &mut dyn FnMut(Inconsistency)) -> Result<()> {
        if self.url_count() != self.pages.len() {
            report(Inconsistency {
                thing: "URL",
                id: self.url_count(),
                what: "there are not as many pages as URLs",
            });
        }
        self.scan_urls(0..u32::MAX, |id, url| {
            if self.urls.known(url, url_hash(url))? != Some(id.0) {
                report(Inconsistency { thing: "URL", id: id.0, what: "it is in the table twice" });
            }
            Ok(())
        })
    }

    fn check_pages(&self, report: &mut dyn FnMut(Inconsistency)) -> Result<()> {
        let mut visits = self.visits.cursor();
        for page in self.pages(UrlId(0)) {
            let (url, page) = page?;
            let mut wrong = |what| report(Inconsistency { thing: "URL", id: url.0, what });
            if page.host != Page::HOST_UNKNOWN && page.host.0 >= self.host_count() {
                wrong("its host does not exist");
            }
            if let Some(visit) = page.visit {
                match visits.get(visit.0)? {
                    Some(record) if record.url == url => {}
                    Some(_) => wrong("its visit belongs to another URL"),
                    None => wrong("its visit does not exist"),
                }
            }
        }
        Ok(())
    }

    fn check_visits(&self, report: &mut dyn FnMut(Inconsistency)) -> Result<()> {
        let (mut pages, mut links, mut list) = (self.pages.cursor(), self.link_cursor(), LinkList::default());
        let mut titles = self.title_cursor();
        for record in self.visits.scan(0) {
            let (id, VisitRecord { url, visit }) = record?;
            let mut wrong = |what| report(Inconsistency { thing: "visit", id, what });
            let page = pages.get(url.0)?;
            if page.and_then(|page| page.visit).map(|visit| visit.0) != Some(id) {
                wrong("its page does not know it");
            }
            if let Some(title) = visit.title {
                titles.get(title)?;
            }
            self.check_version(&visit, url, &mut wrong)?;
            self.check_links(&visit, url, &mut links, &mut list, &mut wrong)?;
            self.check_history(&visit, url, &mut wrong)?;
        }
        Ok(())
    }

    fn check_version(&self, visit: &Visit, url: UrlId, wrong: &mut impl FnMut(&'static str)) -> Result<()> {
        let version = visit.version.map(|version| self.captures.get(version.0)).transpose()?;
        if version.is_some_and(|version| {
            version.is_none_or(|record| record.capture.url != url || !record.capture.is_confirmable())
        }) {
            wrong("its newest version is none");
        }
        self.validators_at(visit).map(drop)
    }

    fn check_links(
        &self,
        visit: &Visit,
        url: UrlId,
        links: &mut LinkCursor<'_>,
        list: &mut LinkList,
        wrong: &mut impl FnMut(&'static str),
    ) -> Result<()> {
        let Some(position) = visit.links else { return Ok(()) };
        links.get(position, list)?;
        if list.source != Some(url) {
            wrong("its links belong to another URL");
        }
        if list.links.iter().any(|link| link.target.0 >= self.url_count()) {
            wrong("a link leads to a URL that does not exist");
        }
        Ok(())
    }

    fn check_history(&self, visit: &Visit, url: UrlId, wrong: &mut impl FnMut(&'static str)) -> Result<()> {
        let (mut count, mut later): (u32, Option<Capture>) = (0, None);
        for capture in History::new(&self.captures, visit.last_capture) {
            let (_, capture) = capture?;
            if capture.url != url {
                wrong("a capture of its history belongs to another URL");
            }
            if later.is_some_and(|later| later.time < capture.time) {
                wrong("its history is out of order");
            }
            later = Some(capture);
            count += 1;
            if count > visit.captures {
                break;
            }
        }
        if count != visit.captures {
            wrong("its history has a different number of captures than recorded");
        }
        Ok(())
    }

    fn check_captures(&self, report: &mut dyn FnMut(Inconsistency)) -> Result<()> {
        let mut pages = self.pages.cursor();
        let mut originals = self.captures.cursor();
        for capture in self.captures() {
            let (id, capture) = capture?;
            let mut wrong = |what| report(Inconsistency { thing: "capture", id: id.0, what });
            if pages.get(capture.url.0)?.is_none_or(|page| page.visit.is_none()) {
                wrong("its URL was never visited");
            }
            if let Some(original) = capture.original
                && !originals.get(original.0)?.is_some_and(|record| record.capture.kind.has_payload())
            {
                wrong("what it refers to has no payload");
            }
        }
        Ok(())
    }
}
