//! What a reader must not see of a state: captures that are hidden, and every record that would tell of them.
//!
//! A veil replaces records by those of a state that never had the hidden captures. [`crate::State::set_veil`] lays it
//! over a state opened for reading; from then on, everything that is read of the state by URL or by page is as if the
//! captures had not been made. Tables that are read by position (names of hosts and sites, captures by number) keep
//! their gaps: their rows are reached only through what is shown.

use std::collections::{HashMap, HashSet};

use crate::history::Capture;
use crate::ids::{CaptureId, HostId, SiteId, UrlId};
use crate::links::{LinkList, LinkTarget};
use crate::pages::{Host, LinksPosition, Page, Site, TextPosition, Visit};
use crate::state::Totals;

/// Bit of the positions of titles and lists that only the veil has; no file is that long.
const IN_VEIL: u64 = 1 << 63;

/// See the module documentation.
#[derive(Debug, Default)]
pub struct Veil {
    /// Whether each capture is hidden.
    pub hidden: Vec<bool>,
    /// Flags of shown captures that differ from the stored ones: those compare a capture with a hidden one.
    pub flags: HashMap<CaptureId, u8>,
    /// Pages whose record or visit differs from the stored one.
    pub pages: HashMap<UrlId, (Page, Option<Visit>)>,
    /// URLs that only hidden captures name.
    pub unknown: HashSet<UrlId>,
    /// Pages whose newest text comes from a hidden capture.
    pub unread: HashSet<UrlId>,
    /// Hosts that differ; `None` for those that only hidden captures name.
    pub hosts: HashMap<HostId, Option<Host>>,
    /// Sites, as `hosts`.
    pub sites: HashMap<SiteId, Option<Site>>,
    /// The totals without what is hidden.
    pub totals: Totals,
    /// Times of the first and the last shown capture, in microseconds since 1970.
    pub span: Option<(i64, i64)>,
    titles: Vec<String>,
    lists: Vec<LinkList>,
}

impl Veil {
    /// A veil over these captures that changes nothing else yet.
    #[must_use]
    pub fn over(hidden: Vec<bool>) -> Self {
        Self { hidden, ..Self::default() }
    }

    /// Adds a title that is in no file, and returns its position.
    pub fn add_title(&mut self, title: String) -> TextPosition {
        self.titles.push(title);
        TextPosition(IN_VEIL | (self.titles.len() as u64 - 1))
    }

    /// Adds the links of a page that are in no file, and returns their position.
    pub fn add_links(&mut self, source: UrlId, links: Vec<LinkTarget>) -> LinksPosition {
        let position = LinksPosition(IN_VEIL | self.lists.len() as u64);
        self.lists.push(LinkList { position: Some(position), source: Some(source), links });
        position
    }

    pub(crate) fn title(&self, TextPosition(position): TextPosition) -> Option<&str> {
        self.titles.get(usize::try_from(position.checked_sub(IN_VEIL)?).ok()?).map(String::as_str)
    }

    pub(crate) fn list(&self, LinksPosition(position): LinksPosition) -> Option<&LinkList> {
        self.lists.get(usize::try_from(position.checked_sub(IN_VEIL)?).ok()?)
    }

    /// Whether a capture is hidden.
    #[must_use]
    pub fn hides(&self, capture: CaptureId) -> bool {
        self.hidden.get(capture.index()).copied().unwrap_or(false)
    }

    /// The capture as it is shown.
    pub(crate) fn shown(&self, id: CaptureId, capture: Capture) -> Capture {
        Capture { flags: self.flags.get(&id).copied().unwrap_or(capture.flags), ..capture }
    }
}
