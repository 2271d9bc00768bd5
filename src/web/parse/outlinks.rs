//! Collects the links of one document: resolved, canonical, each URL once.
//!
//! The first occurrence determines a link's index and kind. A kind that carries cash overrides one that does not, so a
//! page that is both linked and embedded counts as linked. But images, styles and other subresources that are also
//! linked stay requisites: the document is incomplete without them, whatever happens to its links. Memory is bounded by
//! [`ParseLimits`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use archive_storage::address::{is_url_in_bounds, url_hash};
use encoding_rs::Encoding;
use url::Url;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::resolve::Resolver;
use super::{Link, LinkKind, ParseLimits, ParseProblem};

/// For tables whose keys are hashes already.
pub type HashedAlready = BuildHasherDefault<IdentityHash>;

/// See [`HashedAlready`].
#[derive(Debug, Default)]
pub struct IdentityHash(u64);

impl Hasher for IdentityHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type ByHash<V> = HashMap<u64, V, HashedAlready>;

/// The links found so far.
pub(crate) struct Outlinks {
    resolver: Resolver,
    /// For each reference as written, the index of its link, or none if it leads nowhere. Keyed by hash only.
    seen: ByHash<Option<u32>>,
    /// Distinguishes equal references against different bases.
    salt: u64,
    places: ByHash<u32>,
    links: Vec<Link>,
    /// Whether the links being added are in the page's template.
    in_template: bool,
    buffer: String,
    links_max: usize,
    url_bytes_max: usize,
    dropped_count: usize,
    dropped_long: usize,
}

impl Outlinks {
    pub(crate) fn new(base: &Url, encoding: &'static Encoding, limits: &ParseLimits) -> Self {
        /// Expected number of links: a typical page has a few more.
        const EXPECTED: usize = 64;
        let expected = limits.links_max.min(EXPECTED);
        Self {
            resolver: Resolver::new(base.clone(), encoding),
            seen: HashMap::with_capacity_and_hasher(expected, HashedAlready::default()),
            salt: 0,
            places: HashMap::with_capacity_and_hasher(expected, HashedAlready::default()),
            links: Vec::with_capacity(expected),
            in_template: false,
            buffer: String::with_capacity(128),
            links_max: limits.links_max,
            url_bytes_max: limits.url_bytes_max,
            dropped_count: 0,
            dropped_long: 0,
        }
    }

    /// Number of links so far.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns a collector that takes no links, for reading only the words of a text.
    pub(crate) fn without_links() -> Self {
        let base = Url::parse("about:blank").expect("a constant that parses");
        Self::new(
            &base,
            encoding_rs::UTF_8,
            &ParseLimits { links_max: 0, url_bytes_max: 0, ..ParseLimits::default() },
        )
    }

    /// Starts again with another base, which is resolved against the current one, and these references. The first
    /// `kept` links stay.
    pub(crate) fn rebase_all(
        &mut self,
        base: &str,
        encoding: &'static Encoding,
        kept: usize,
        references: &[(Cow<'_, str>, LinkKind, bool)],
    ) {
        let Ok(base) = self.resolver.base().join(base.trim()) else { return };
        let is_base = matches!(base.scheme(), "http" | "https") && base.as_str().len() <= self.url_bytes_max;
        if !is_base || &base == self.resolver.base() {
            return;
        }
        self.set_base(base, encoding);
        self.seen.clear();
        for link in self.links.drain(kept..) {
            self.places.remove(&link.hash);
        }
        for (reference, kind, nofollow) in references {
            self.add(reference, *kind, *nofollow);
        }
    }

    /// Sets another base for the following references.
    pub(crate) fn set_base(&mut self, base: Url, encoding: &'static Encoding) {
        self.salt = url_hash(base.as_str());
        self.resolver = Resolver::new(base, encoding);
    }

    /// Base that references are resolved against.
    pub(crate) fn base(&self) -> &Url {
        self.resolver.base()
    }

    /// Adds a reference; returns the index of its link if there is one.
    pub(crate) fn add(&mut self, reference: &str, kind: LinkKind, nofollow: bool) -> Option<u32> {
        let written = url_hash(reference) ^ self.salt;
        if let Some(&place) = self.seen.get(&written) {
            if let Some(place) = place {
                self.meet_again(place, kind, nofollow);
            }
            return place;
        }
        let place = self.add_new(reference, kind, nofollow);
        if self.seen.len() < 2 * self.links_max {
            self.seen.insert(written, place);
        }
        place
    }

    fn add_new(&mut self, reference: &str, kind: LinkKind, nofollow: bool) -> Option<u32> {
        // A reference may shrink when canonicalised, but not that much.
        if reference.len() > 4 * self.url_bytes_max {
            self.dropped_long += usize::from(!reference.trim_start().starts_with("data:"));
            return None;
        }
        let mut url = std::mem::take(&mut self.buffer);
        let place = self.resolver.resolve(reference, &mut url).then(|| self.place(&url, kind, nofollow));
        self.buffer = url;
        place.flatten()
    }

    fn place(&mut self, url: &str, kind: LinkKind, nofollow: bool) -> Option<u32> {
        if !is_url_in_bounds(url, self.url_bytes_max) {
            self.dropped_long += 1;
            return None;
        }
        let hash = url_hash(url);
        match self.places.get(&hash) {
            Some(&place) if self.links[place as usize].url == url => {
                self.meet_again(place, kind, nofollow);
                Some(place)
            }
            _ if self.links.len() >= self.links_max => {
                self.dropped_count += 1;
                None
            }
            _ => {
                let place = u32::try_from(self.links.len()).ok()?;
                self.places.insert(hash, place);
                self.links.push(Link {
                    url: url.to_owned(),
                    hash,
                    kind,
                    nofollow,
                    template: self.in_template,
                    modified: None,
                });
                Some(place)
            }
        }
    }

    fn meet_again(&mut self, place: u32, kind: LinkKind, nofollow: bool) {
        let link = &mut self.links[place as usize];
        let is_followed = |kind: LinkKind| kind.carries_cash() && !kind.is_requisite();
        let stays_part = link.kind.is_subresource() && is_followed(kind);
        let wins = kind.carries_cash() && !link.kind.carries_cash() && !stays_part
            || kind.is_subresource() && is_followed(link.kind);
        let weighs = kind.carries_cash() == link.kind.carries_cash();
        if wins {
            link.kind = kind;
            link.nofollow = nofollow;
            link.template = self.in_template;
        } else if weighs {
            link.nofollow &= nofollow;
            link.template &= self.in_template;
        }
    }

    /// Sets whether the following references are in the page's template.
    pub(crate) fn set_template(&mut self, in_template: bool) {
        self.in_template = in_template;
    }

    /// Raises the limit on the number of links.
    pub(crate) fn allow(&mut self, links_max: usize) {
        self.links_max = self.links_max.max(links_max);
    }

    /// Hash of the page's outgoing document links, for documents without text.
    pub(crate) fn signature(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        for link in self.links.iter().filter(|link| link.kind.carries_cash()) {
            hash.update(&xxh3_64(link.url.as_bytes()).to_le_bytes());
        }
        hash.digest()
    }

    /// Hash of the pictures and other media that the page shows outside its template; 0 for none.
    pub(crate) fn pictures(&self) -> u64 {
        let is_shown = |link: &&Link| {
            use LinkKind::{Image, ImageSource, LazyImage, Media};
            !link.template && matches!(link.kind, Image | ImageSource | LazyImage | Media)
        };
        let hashes = self.links.iter().filter(is_shown).map(|link| xxh3_64(link.url.as_bytes()));
        hashes.fold(0, u64::wrapping_add)
    }

    /// Returns the canonical URL of a reference without adding it.
    pub(crate) fn resolve(&mut self, reference: &str) -> Option<String> {
        self.resolver.resolve(reference, &mut self.buffer).then(|| self.buffer.clone())
    }

    /// Returns the links in the order found; reports those dropped at a limit in `problems`.
    pub(crate) fn finish(self, problems: &mut Vec<ParseProblem>) -> Vec<Link> {
        if self.dropped_count > 0 {
            problems.push(ParseProblem::TooManyLinks { dropped: self.dropped_count });
        }
        if self.dropped_long > 0 {
            problems.push(ParseProblem::LongUrls { dropped: self.dropped_long });
        }
        self.links
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;

    use super::*;

    fn outlinks(limits: &ParseLimits) -> Outlinks {
        Outlinks::new(&Url::parse("http://a.example/b/").unwrap(), UTF_8, limits)
    }

    #[test]
    fn a_url_is_kept_once_and_its_best_kind_wins() {
        let mut links = outlinks(&ParseLimits::default());
        assert_eq!(links.add("/x", LinkKind::Preload, false), Some(0));
        assert_eq!(links.add("../x#y", LinkKind::Anchor, true), Some(0));
        assert_eq!(links.add("/z", LinkKind::Area, true), Some(1));
        assert_eq!(links.add("/z", LinkKind::Anchor, false), Some(1));
        assert_eq!(links.add("/z", LinkKind::Icon, false), Some(1));
        assert_eq!(links.add("#top", LinkKind::Anchor, false), None);
        for (place, kinds) in [
            (2, [LinkKind::Anchor, LinkKind::Image]),
            (3, [LinkKind::Stylesheet, LinkKind::Anchor]),
            (4, [LinkKind::Image, LinkKind::InlineFrame]),
            (5, [LinkKind::InlineFrame, LinkKind::Image]),
        ] {
            let places = kinds.map(|kind| links.add(&format!("/{place}"), kind, false));
            assert_eq!(places, [Some(place); 2]);
        }
        let mut problems = Vec::new();
        let links = links.finish(&mut problems);
        let kept: Vec<_> = links.iter().map(|link| (link.url.as_str(), link.kind, link.nofollow)).collect();
        assert_eq!(
            kept,
            [
                ("http://a.example/x", LinkKind::Anchor, true),
                ("http://a.example/z", LinkKind::Area, false),
                ("http://a.example/2", LinkKind::Image, false),
                ("http://a.example/3", LinkKind::Stylesheet, false),
                ("http://a.example/4", LinkKind::InlineFrame, false),
                ("http://a.example/5", LinkKind::InlineFrame, false),
            ]
        );
        assert!(problems.is_empty());
    }

    /// Visits store signatures, so they must not vary between processes.
    #[test]
    fn a_signature_depends_on_the_links_alone() {
        let mut links = outlinks(&ParseLimits::default());
        for reference in ["/1", "/2"] {
            links.add(reference, LinkKind::Anchor, false);
        }
        assert_eq!(links.signature(), 9_456_428_470_599_830_895);
    }

    #[test]
    fn limits_hold_at_the_limit_and_one_above() {
        let limits = ParseLimits { links_max: 3, url_bytes_max: 19, ..ParseLimits::default() };
        let mut links = outlinks(&limits);
        for reference in ["/1", "/2", "/34", "/4567", "/5"] {
            links.add(reference, LinkKind::Anchor, false);
        }
        let mut problems = Vec::new();
        let links = links.finish(&mut problems);
        assert_eq!(links.len(), 3);
        assert_eq!(links[2].url.len(), 19);
        assert_eq!(
            problems,
            [ParseProblem::TooManyLinks { dropped: 1 }, ParseProblem::LongUrls { dropped: 1 }]
        );
    }

    #[test]
    fn a_new_base_counts_from_there() {
        let mut links = outlinks(&ParseLimits::default());
        links.add("x", LinkKind::Anchor, false);
        links.set_base(Url::parse("http://a.example/c/").unwrap(), UTF_8);
        links.add("x", LinkKind::Anchor, false);
        let urls: Vec<_> = links.finish(&mut Vec::new()).into_iter().map(|link| link.url).collect();
        assert_eq!(urls, ["http://a.example/b/x", "http://a.example/c/x"]);
    }
}
