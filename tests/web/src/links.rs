//! The links of a page, in document order, without duplicates, drawn again at each request.
//!
//! Structural links come first: home, parent, the previous and next page; on home pages the neighbours in a tree of all
//! hosts; then the children. So every page is reachable from any home page. The free links after them follow
//! popularity: a site by a power law, a host of the site, a page of the host.

use super::Web;
use super::layout::{BRANCHES, Host, HostIndex, PageIndex, first_child, parent};
use super::random::{Key, Subject, Zipf};
use super::text::Append;

/// Number of children of a host in the tree of all hosts.
const HOST_BRANCHES: u64 = 4;
/// Largest number of draws for a free link whose target is already on the page.
const DRAWS_MAX: u64 = 4;
/// Share of the links between hosts that lead to a home page.
const HOME_SHARE: f64 = 0.4;
/// Statuses of redirects; 200 stands for a page with a meta refresh.
const REDIRECT_STATUSES: [u16; 8] = [301, 301, 302, 302, 303, 307, 308, 200];
/// Largest number of consecutive redirects behind an ordinary link.
const CHAIN_HOPS_MAX: u64 = 4;

/// A navigational link of the ground truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Link {
    /// To a page.
    Page(PageIndex),
    /// To a page through redirects.
    Redirect {
        /// Page after the redirects.
        target: PageIndex,
        /// Status of the redirects; 200 stands for a meta refresh.
        status: u16,
        /// Number of consecutive redirects.
        hops: u8,
    },
    /// To an address that answers 404.
    Missing {
        /// Host that answers.
        host: HostIndex,
        /// Makes the address unique.
        number: u64,
    },
    /// To an address that answers 410.
    Gone {
        /// Host that answers.
        host: HostIndex,
        /// Makes the address unique.
        number: u64,
    },
    /// To a trap or fault host.
    Elsewhere(&'static str),
}

impl Link {
    /// Returns the page at the end of the link.
    #[must_use]
    pub const fn target(&self) -> Option<PageIndex> {
        match self {
            Self::Page(target) | Self::Redirect { target, .. } => Some(*target),
            Self::Missing { .. } | Self::Gone { .. } | Self::Elsewhere(_) => None,
        }
    }
}

/// A link together with the host it leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) local: u32,
    pub(super) way: Way,
}

/// How a link leads to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Direct,
    Redirect { status: u16, hops: u8 },
    Missing(u64),
    Gone(u64),
    Elsewhere(&'static str),
}

/// The links of one page in groups; a reusable buffer.
#[derive(Debug)]
pub(super) struct Outline {
    targets: Vec<Target>,
    /// Index of the first child.
    children_at: usize,
    /// Index of the first free link.
    free_at: usize,
}

impl Outline {
    pub(super) const fn new() -> Self {
        Self { targets: Vec::new(), children_at: 0, free_at: 0 }
    }

    /// Returns all links.
    pub(super) fn all(&self) -> &[Target] {
        &self.targets
    }

    /// Returns the links to home, parent, siblings and neighbouring hosts.
    pub(super) fn frame(&self) -> &[Target] {
        &self.targets[..self.children_at]
    }

    /// Returns the links to the children of the page.
    pub(super) fn children(&self) -> &[Target] {
        &self.targets[self.children_at..self.free_at]
    }

    /// Returns the links in the text.
    pub(super) fn free(&self) -> &[Target] {
        &self.targets[self.free_at..]
    }

    fn contains(&self, host: u32, local: u32) -> bool {
        self.targets.iter().any(|target| target.local == local && target.host.index == host)
    }

    fn push(&mut self, host: Host, local: u32) {
        if !self.contains(host.index, local) {
            self.targets.push(Target { host, local, way: Way::Direct });
        }
    }
}

impl Web {
    /// Fills `outline` with the links that a page has at `now` in the version `version`. The free links are those of
    /// the page `source`, which is a different one for near duplicates.
    pub(super) fn outline(
        &self,
        host: &Host,
        local: u32,
        source: u32,
        version: u64,
        now: i64,
        outline: &mut Outline,
    ) {
        outline.targets.clear();
        self.put_frame(host, local, now, outline);
        outline.children_at = outline.targets.len();
        let first = first_child(local);
        for child in first..(first + u64::from(BRANCHES)).min(u64::from(host.pages)) {
            if self.is_born(host, child as u32, now) {
                outline.push(*host, child as u32);
            }
        }
        outline.free_at = outline.targets.len();
        self.put_free(host, local, source, version, now, outline);
        if local == 0 {
            self.put_elsewhere(host, outline);
        }
    }

    fn put_frame(&self, host: &Host, local: u32, now: i64, outline: &mut Outline) {
        if local > 0 {
            outline.push(*host, 0);
            outline.push(*host, parent(local));
            for sibling in [local - 1, local + 1] {
                if sibling < host.pages && self.is_born(host, sibling, now) {
                    outline.push(*host, sibling);
                }
            }
        } else if self.config.inter_host_share > 0.0 {
            let index = u64::from(host.index);
            let above = (index > 0).then(|| (index - 1) / HOST_BRANCHES);
            let below = (index * HOST_BRANCHES + 1)..=(index * HOST_BRANCHES + HOST_BRANCHES);
            let hosts = u64::from(self.config.hosts);
            for neighbour in above.into_iter().chain(below).filter(|neighbour| *neighbour < hosts) {
                outline.push(self.layout.host(neighbour as u32), 0);
            }
        }
    }

    fn put_free(&self, host: &Host, local: u32, source: u32, version: u64, now: i64, outline: &mut Outline) {
        let key = host.page_key(source).of(Subject::Links);
        let wanted = u64::from(self.config.links_per_page);
        let total = wanted / 2 + key.below(wanted + 1);
        let outward_total = (total as f64 * self.config.inter_host_share + key.at(1).unit()) as u64;
        let structural = outline.targets.len() as u64;
        let free = total.saturating_sub(structural);
        let outside = outline.targets.iter().filter(|target| target.host.index != host.index).count() as u64;
        let outward = outward_total.saturating_sub(outside).min(free);
        let within = Zipf::new(u64::from(host.pages), self.config.popularity_exponent);
        for slot in 0..free {
            // The links to other hosts are distributed evenly among the others.
            let is_outward = (slot + 1) * outward / free > slot * outward / free;
            let slot_key = key.at(2).at(slot).at(self.generation(key, slot, version));
            for attempt in 0..DRAWS_MAX {
                let draw = slot_key.at(attempt);
                let (to, page) = if is_outward {
                    self.draw_outward(draw)
                } else {
                    (*host, popular_page(host, &within, draw))
                };
                let is_fit = (to.index != host.index) == is_outward
                    && (is_outward || page != local)
                    && !outline.contains(to.index, page)
                    && self.is_born(&to, page, now);
                if is_fit {
                    let way = self.way_of(slot_key);
                    let host = if matches!(way, Way::Missing(_) | Way::Gone(_)) { *host } else { to };
                    outline.targets.push(Target { host, local: page, way });
                    break;
                }
            }
        }
    }

    /// Draws a page of any host, by popularity.
    fn draw_outward(&self, key: Key) -> (Host, u32) {
        let site = self.by_popularity.forward(self.site_law.rank(key.at(1).unit()));
        let (_, hosts) = self.layout.hosts_of(site as u32);
        let label = if hosts == 1 {
            0
        } else {
            Zipf::new(u64::from(hosts), self.config.popularity_exponent).rank(key.at(2).unit())
        };
        let host = self.layout.host_of_site(site as u32, label as u32);
        let page = if host.pages == 1 || key.at(3).chance(HOME_SHARE) {
            0
        } else {
            popular_page(&host, &Zipf::new(u64::from(host.pages), self.config.popularity_exponent), key)
        };
        (host, page)
    }

    /// Decides whether the link in a slot leads straight to its page, through redirects, or to a missing page.
    fn way_of(&self, slot: Key) -> Way {
        let draw = slot.at(DRAWS_MAX).unit();
        let (redirects, broken) = (self.config.redirect_share, self.config.broken_share);
        let key = slot.at(DRAWS_MAX + 1);
        if draw < redirects {
            let status = REDIRECT_STATUSES[key.below(REDIRECT_STATUSES.len() as u64) as usize];
            // Half of the redirects have a single hop.
            let hops = 1 + key.at(1).below(2) * key.at(2).below(CHAIN_HOPS_MAX);
            Way::Redirect { status, hops: hops as u8 }
        } else if draw < redirects + broken {
            let number = key.below(1_000_000_000);
            if key.at(1).chance(0.7) { Way::Missing(number) } else { Way::Gone(number) }
        } else {
            Way::Direct
        }
    }

    /// Adds links to traps and faults on some home pages.
    fn put_elsewhere(&self, host: &Host, outline: &mut Outline) {
        let key = host.key.of(Subject::Traps);
        let (traps, faults) = (self.config.traps, self.config.faults);
        // The first host always has these links, other hosts one time in ten.
        let draw = if host.index == 0 { 0 } else { key.below(10) };
        if traps && draw == 0 {
            let trap =
                super::traps::ENTRANCES[key.at(1).below(super::traps::ENTRANCES.len() as u64) as usize];
            outline.targets.push(Target { host: *host, local: 0, way: Way::Elsewhere(trap) });
        }
        if faults && draw <= 1 {
            outline.targets.push(Target {
                host: *host,
                local: 0,
                way: Way::Elsewhere(super::faults::ENTRANCE),
            });
        }
    }

    /// Returns how often the link in a slot has been redrawn up to a version.
    fn generation(&self, key: Key, slot: u64, version: u64) -> u64 {
        if self.config.link_churn == 0.0 {
            return 0;
        }
        let period = (1.0 / self.config.link_churn).round() as u64;
        (version + key.at(3).at(slot).below(period)) / period
    }
}

/// Draws a page of a host other than the home page, by popularity; returns the home page if there is no other.
fn popular_page(host: &Host, law: &Zipf, key: Key) -> u32 {
    if host.pages == 1 {
        return 0;
    }
    // Popular pages lie anywhere in the tree: each rank maps to a random page.
    let rank = law.rank(key.at(4).unit());
    1 + host.key.of(Subject::Popularity).at(rank).below(u64::from(host.pages) - 1) as u32
}

impl Target {
    /// Appends the address: from the root if it is on the host `from`, otherwise absolute.
    pub(super) fn put_address(&self, web: &Web, from: Option<&Host>, out: &mut Vec<u8>) {
        if let Way::Elsewhere(address) = self.way {
            out.put(address);
            return;
        }
        if from.is_none_or(|from| from.index != self.host.index) {
            out.put("http://");
            self.host.put_name(out);
        }
        match self.way {
            Way::Redirect { status, hops } => {
                put_redirect(u64::from(status), u64::from(hops), self.local, out);
            }
            Way::Missing(number) => put_absent("/missing/", number, out),
            Way::Gone(number) => put_absent("/gone/", number, out),
            Way::Direct | Way::Elsewhere(_) => web.layout.put_path(&self.host, self.local, out),
        }
    }

    /// Returns the link of the ground truth.
    pub(super) fn link(&self) -> Link {
        let target = PageIndex(self.host.first + u64::from(self.local));
        let host = HostIndex(self.host.index);
        match self.way {
            Way::Direct => Link::Page(target),
            Way::Redirect { status, hops } => Link::Redirect { target, status, hops },
            Way::Missing(number) => Link::Missing { host, number },
            Way::Gone(number) => Link::Gone { host, number },
            Way::Elsewhere(address) => Link::Elsewhere(address),
        }
    }
}

/// Appends the path of a redirect with `hops` hops left that ends at the page `local`.
pub(super) fn put_redirect(status: u64, hops: u64, local: u32, out: &mut Vec<u8>) {
    out.put("/go/");
    out.put_number(hops);
    out.push(b'-');
    out.put_number(status);
    out.push(b'/');
    out.put_number(u64::from(local));
}

fn put_absent(folder: &str, number: u64, out: &mut Vec<u8>) {
    out.put(folder);
    out.put_number(number);
    out.put(".html");
}
