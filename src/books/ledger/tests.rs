//! The books on small hand-made webs: who is paid what, and that no cash is lost.

mod transfers;

use std::sync::Arc;

use archive_math::importance::Imbalance;
use archive_storage::backend::RealDisk;
use archive_storage::{
    Capture, CaptureId, CaptureKind, Location, PageFlags, SegmentId, State, StateMode, UrlId,
};
use archive_web::parse::{DocumentKind, Link, LinkKind};
use chrono::{DateTime, Utc};

use super::settings::FAVOURED_SITES_MAX;
use super::*;

/// An archive without segments: only what captures change in its state.
struct TestBooks {
    state: State,
    credits: Credits,
    captures: u64,
    _folder: tempfile::TempDir,
}

impl TestBooks {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(Arc::new(RealDisk), folder.path(), StateMode::Own).unwrap();
        let credits = Credits::open(&state).unwrap();
        Self { state, credits, captures: 0, _folder: folder }
    }

    /// Captures a page with this status and these links; the same `content` means the same payload.
    fn capture(&mut self, url: &str, status: u16, content: u8, links: &[Link]) -> UrlId {
        let original = self.original(content);
        let kind = if original.is_some() { CaptureKind::Identical } else { CaptureKind::Response };
        let document = Some(DocumentKind::Html);
        let facts = CrawlerFacts { links: links.to_vec(), document, ..CrawlerFacts::default() };
        self.credit(url, kind, status, content, facts)
    }

    /// Captures a 304 that confirms this content.
    fn not_modified(&mut self, url: &str, content: u8) -> UrlId {
        self.credit(url, CaptureKind::NotModified, 304, content, CrawlerFacts::default())
    }

    /// Returns the capture that has this content.
    fn original(&self, content: u8) -> Option<(CaptureId, Capture)> {
        let id = self.state.by_digest(&[content; 16]).unwrap().filter(|_| content > 0)?;
        Some((id, self.state.capture(id).unwrap()))
    }

    fn credit(
        &mut self,
        url: &str,
        kind: CaptureKind,
        status: u16,
        content: u8,
        facts: CrawlerFacts,
    ) -> UrlId {
        self.captures += 1;
        let outcome = FetchOutcome {
            url: url.to_owned(),
            time: DateTime::<Utc>::from_timestamp(1_700_000_000 + self.captures as i64 * 86_400, 0).unwrap(),
            kind,
            status,
            media_type: "text/html".to_owned(),
            payload_bytes: 100,
            digest: [content; 16],
            original: self.original(content),
            validators: None,
            facts,
        };
        let location = Location { segment: SegmentId(1), offset: self.captures * 1000, length: 1000 };
        self.credits.credit(&mut self.state, &outcome, location, &mut Vec::new()).unwrap();
        self.credits.audit(&self.state).unwrap();
        self.id(url)
    }

    fn id(&self, url: &str) -> UrlId {
        self.state.find(url).unwrap().unwrap()
    }

    fn flags(&self, url: &str) -> PageFlags {
        self.state.page(self.id(url)).unwrap().flags
    }

    /// Cash of the page with this URL, in units.
    fn cash(&self, url: &str) -> u64 {
        let id = self.id(url);
        let (page, visit) = (self.state.page(id).unwrap(), self.state.visit(id).unwrap());
        self.credits.pages().cash(&account::account(&page, visit.as_ref())).units()
    }
}

fn link(url: &str, kind: LinkKind) -> Link {
    Link::new(url.to_owned(), kind)
}

fn anchor(url: &str) -> Link {
    link(url, LinkKind::Anchor)
}

#[test]
fn a_redirect_shares_the_account_of_its_target() {
    let mut books = TestBooks::new();
    books.credits.add_seeds(&mut books.state, &["http://a.test/".to_owned()]).unwrap();
    books.capture("http://a.test/", 200, 0, &[anchor("http://a.test/old"), anchor("http://a.test/new")]);
    let pages = books.credits.pages().pages();
    let (old, new) = (books.cash("http://a.test/old"), books.cash("http://a.test/new"));
    books.capture("http://a.test/old", 301, 0, &[link("http://a.test/new", LinkKind::Redirect)]);
    assert_eq!(books.credits.pages().pages(), pages - 1);
    let flags = books.flags("http://a.test/old");
    assert!(flags.has_any(page_flags::ALIAS) && !flags.has_any(page_flags::ACCOUNT));
    // The target got the cash of the alias beyond its endowment.
    assert_eq!(books.cash("http://a.test/new"), new + (old - archive_math::importance::ENDOWMENT));
    let (id, target) = (books.id("http://a.test/old"), books.id("http://a.test/new"));
    assert_eq!(account_of(&books.state, id).unwrap(), Some(target));
    // A link to the alias is paid to the target.
    let before = books.cash("http://a.test/new");
    books.capture("http://a.test/", 200, 0, &[anchor("http://a.test/old")]);
    assert!(books.cash("http://a.test/new") > before);
    // With content, it is a page of its own again.
    books.capture("http://a.test/old", 200, 9, &[]);
    let flags = books.flags("http://a.test/old");
    assert!(flags.has_any(page_flags::ACCOUNT) && !flags.has_any(page_flags::ALIAS));
    assert_eq!(books.credits.pages().pages(), pages);
}

#[test]
fn redirects_in_a_circle_lose_nothing() {
    let mut books = TestBooks::new();
    books.credits.add_seeds(&mut books.state, &["http://a.test/1".to_owned()]).unwrap();
    for _ in 0..2 {
        books.capture("http://a.test/1", 302, 0, &[link("http://a.test/2", LinkKind::Redirect)]);
        books.capture("http://a.test/2", 302, 0, &[link("http://a.test/3", LinkKind::Redirect)]);
        books.capture("http://a.test/3", 302, 0, &[link("http://a.test/1", LinkKind::Redirect)]);
    }
    // One of the three keeps the account.
    assert_eq!(books.credits.pages().pages(), 1);
}

#[test]
fn a_duplicate_on_the_same_site_shares_the_account() {
    let mut books = TestBooks::new();
    books.credits.add_seeds(&mut books.state, &["http://a.test/".to_owned()]).unwrap();
    let links = ["http://a.test/x", "http://a.test/x?print", "http://b.test/x"].map(anchor);
    books.capture("http://a.test/", 200, 1, &links);
    books.capture("http://a.test/x", 200, 2, &[]);
    books.capture("http://a.test/x?print", 200, 2, &[]);
    books.capture("http://b.test/x", 200, 2, &[]);
    assert_eq!(
        account_of(&books.state, books.id("http://a.test/x?print")).unwrap(),
        Some(books.id("http://a.test/x"))
    );
    // The same bytes on another site are a page of their own.
    assert!(!books.flags("http://b.test/x").has_any(page_flags::ALIAS));
    // The original itself, fetched again unchanged, stays a page.
    books.capture("http://a.test/x", 200, 2, &[]);
    assert!(!books.flags("http://a.test/x").has_any(page_flags::ALIAS));
}

#[test]
fn what_says_nothing_new_leaves_accounts_and_links_as_they_are() {
    let mut books = TestBooks::new();
    books.credits.add_seeds(&mut books.state, &["http://a.test/".to_owned()]).unwrap();
    let links = ["http://a.test/index.html", "http://a.test/x", "http://a.test/old"].map(anchor);
    books.capture("http://a.test/", 200, 1, &links);
    books.capture("http://a.test/index.html", 200, 1, &links);
    books.capture("http://a.test/x", 200, 2, &[anchor("http://a.test/")]);
    books.capture("http://a.test/old", 301, 3, &[link("http://a.test/x", LinkKind::Redirect)]);
    let accounts = |books: &TestBooks| {
        ["http://a.test/", "http://a.test/index.html", "http://a.test/x", "http://a.test/old"]
            .map(|url| account_of(&books.state, books.id(url)).unwrap())
    };
    let before = accounts(&books);
    assert_eq!(before[1], before[0]);
    assert_eq!(before[3], before[2]);
    for _ in 0..2 {
        for (url, content) in [("http://a.test/index.html", 1), ("http://a.test/", 1), ("http://a.test/x", 2)]
        {
            books.not_modified(url, content);
            assert_eq!(accounts(&books), before, "{url} is not modified");
            let newest = books.state.visit(books.id(url)).unwrap().unwrap();
            assert_eq!(newest.status, 200);
        }
        for url in ["http://a.test/index.html", "http://a.test/", "http://a.test/x", "http://a.test/old"] {
            for (kind, status) in
                [(CaptureKind::Failed, 0), (CaptureKind::Response, 503), (CaptureKind::Response, 403)]
            {
                books.credit(url, kind, status, 0, CrawlerFacts::default());
                assert_eq!(accounts(&books), before, "{url} has failed: {status}");
            }
        }
    }
    let links = |url: &str| books.state.links(books.id(url)).unwrap().links.len();
    assert_eq!([links("http://a.test/"), links("http://a.test/x"), links("http://a.test/old")], [3, 1, 1]);
    // Payments still reach the page at the end of the redirect.
    let x = books.cash("http://a.test/x");
    books.not_modified("http://a.test/", 1);
    assert!(books.cash("http://a.test/x") > x);
}

#[test]
fn a_copy_of_what_another_page_was_is_a_page() {
    let mut books = TestBooks::new();
    books.credits.add_seeds(&mut books.state, &["http://a.test/".to_owned()]).unwrap();
    books.capture("http://a.test/", 200, 1, &["http://a.test/en", "http://a.test/de"].map(anchor));
    books.capture("http://a.test/en", 200, 2, &[]);
    books.capture("http://a.test/de", 200, 2, &[]);
    books.capture("http://a.test/en", 200, 3, &[]);
    let accounts = |books: &TestBooks| {
        ["http://a.test/en", "http://a.test/de"].map(|url| account_of(&books.state, books.id(url)).unwrap())
    };
    assert_eq!(accounts(&books)[0], accounts(&books)[1], "until it is judged again");
    books.not_modified("http://a.test/de", 2);
    assert_eq!(accounts(&books)[1], Some(books.id("http://a.test/de")));
    // Likewise if the original becomes the copy.
    books.capture("http://a.test/en", 200, 2, &[]);
    books.not_modified("http://a.test/de", 2);
    assert_eq!(accounts(&books)[0], accounts(&books)[1]);
}

/// Links out of scope lead to pages that are never fetched.
#[test]
fn cash_does_not_end_where_nobody_fetches() {
    let mut books = TestBooks::new();
    books.credits.add_seeds(&mut books.state, &["http://a.test/".to_owned()]).unwrap();
    let outside: Vec<Link> = (0..5).map(|number| anchor(&format!("http://b.test/{number}"))).collect();
    books.capture("http://a.test/", 200, 1, &[&outside[..], &[anchor("http://a.test/x")]].concat());
    books.capture("http://a.test/x", 200, 2, &[anchor("http://a.test/"), anchor("http://b.test/0")]);
    let importance = |books: &TestBooks| {
        ["http://a.test/", "http://a.test/x", "http://b.test/0", "http://b.test/1"]
            .map(|url| books.credits.importance_of(&books.state, books.id(url)).unwrap().unwrap())
    };
    books.credits.settle(&mut books.state, 1 << 20).unwrap();
    books.credits.audit(&books.state).unwrap();
    let before = importance(&books);
    for _ in 0..20 {
        books.not_modified("http://a.test/", 1);
        books.credits.settle(&mut books.state, 1 << 20).unwrap();
        books.credits.audit(&books.state).unwrap();
        for (now, before) in importance(&books).into_iter().zip(before) {
            assert!((now / before - 1.0).abs() < 0.01, "{:?}, not {before:?}", importance(&books));
        }
    }
    let read = books.cash("http://a.test/") + books.cash("http://a.test/x");
    assert!(read > archive_math::importance::ENDOWMENT, "{read} units still go round");
}

/// With this many links, rounds take longer than a tenth of a second.
#[test]
fn rounds_over_many_links_wait_until_cash_was_handed_on() {
    let mut books = TestBooks::new();
    books.credits.add_seeds(&mut books.state, &["http://a.test/".to_owned()]).unwrap();
    let links: Vec<Link> = (0..130_000).map(|number| anchor(&format!("http://a.test/{number}"))).collect();
    books.capture("http://a.test/", 200, 1, &links);
    let settle = |books: &mut TestBooks| books.credits.settle(&mut books.state, 1 << 30).unwrap();
    assert!(settle(&mut books) > 0);
    let before = books.cash("http://a.test/1");
    books.capture("http://a.test/0", 200, 2, &[]);
    assert_eq!((settle(&mut books), books.cash("http://a.test/1")), (0, before));
}

#[test]
fn redirects_with_the_same_body_lead_to_their_own_targets() {
    let mut books = TestBooks::new();
    books.credits.add_seeds(&mut books.state, &["http://a.test/".to_owned()]).unwrap();
    books.capture("http://a.test/", 200, 1, &["http://a.test/1", "http://a.test/2"].map(anchor));
    for number in 1..=2 {
        let (from, to) = (format!("http://a.test/{number}"), format!("http://a.test/to/{number}"));
        books.capture(&from, 301, 9, &[link(&to, LinkKind::Redirect)]);
        assert_eq!(account_of(&books.state, books.id(&from)).unwrap(), Some(books.id(&to)));
    }
}

#[test]
fn what_was_a_part_of_a_page_becomes_a_page_when_a_link_leads_to_it() {
    let mut books = TestBooks::new();
    let everything =
        ScopeRule { kind: ScopeKind::Any, seed: "http://a.test/".to_owned(), max_depth: 9, moved_from: None };
    books.credits.set_scope(&mut books.state, CrawlScope::from_rules(vec![everything])).unwrap();
    let (part, deep) = ("http://a.test/part", "http://a.test/deep");
    books.credits.add_seeds(&mut books.state, &["http://a.test/".to_owned()]).unwrap();
    books.capture("http://a.test/", 200, 0, &[link(part, LinkKind::Embed)]);
    let (via, document) = (Some("http://a.test/".to_owned()), Some(DocumentKind::Html));
    let facts = CrawlerFacts {
        via,
        hops: "E".to_owned(),
        document,
        links: vec![anchor(deep)],
        ..CrawlerFacts::default()
    };
    books.credit(part, CaptureKind::Response, 200, 0, facts);
    let in_scope = page_flags::ACCOUNT | page_flags::IN_SCOPE;
    assert!(!books.flags(part).has_any(in_scope));
    assert!(books.flags(part).has_any(page_flags::REQUISITE));
    let before = books.cash(deep);
    books.capture("http://a.test/", 200, 0, &[anchor(part)]);
    assert!(books.flags(part).contains(in_scope));
    assert!(page_flags::is_page(books.flags(part)));
    assert!(books.cash(deep) > before, "its links were known");
}

#[test]
fn a_vanished_page_gives_its_cash_back() {
    let mut books = TestBooks::new();
    books.credits.add_seeds(&mut books.state, &["http://a.test/".to_owned()]).unwrap();
    books.capture("http://a.test/", 200, 1, &[anchor("http://a.test/x"), anchor("http://a.test/y")]);
    books.capture("http://a.test/x", 200, 2, &[anchor("http://a.test/y")]);
    books.capture("http://a.test/", 200, 3, &[anchor("http://a.test/x")]);
    assert!(books.cash("http://a.test/x") > 0);
    let free = |books: &TestBooks| {
        (books.credits.pages().virtual_cash().units(), books.credits.pages().reserve().units())
    };
    let (cash, before, y) = (books.cash("http://a.test/x"), free(&books), books.cash("http://a.test/y"));
    books.capture("http://a.test/x", 404, 4, &[anchor("http://a.test/y")]);
    assert!(!books.flags("http://a.test/x").has_any(page_flags::ACCOUNT), "it is not a page any more");
    assert_eq!(books.cash("http://a.test/y"), y, "an error page pays nobody");
    let after = free(&books);
    assert_eq!(after.0 + after.1, before.0 + before.1 + cash, "what it had is the virtual page's");
    // Links to it are not paid: the cash of the home page goes only to the small edge and to the other link.
    let (home, y) = (books.cash("http://a.test/"), books.cash("http://a.test/y"));
    books.capture("http://a.test/", 200, 5, &[anchor("http://a.test/x"), anchor("http://a.test/y")]);
    assert!(
        books.cash("http://a.test/y") - y >= home / 2 - 64,
        "one of two links, the other is the small edge"
    );
    books.capture("http://a.test/x", 200, 6, &[]);
    assert!(books.flags("http://a.test/x").has_any(page_flags::ACCOUNT), "it came back");
    // A server error says nothing about pages.
    books.capture("http://a.test/x", 503, 7, &[]);
    assert!(books.flags("http://a.test/x").has_any(page_flags::ACCOUNT));
}

#[test]
fn cash_from_nowhere_is_noticed_without_a_look_at_the_accounts() {
    let mut books = TestBooks::new();
    books.credits.add_seeds(&mut books.state, &["http://a.test/".to_owned()]).unwrap();
    let id = books.capture("http://a.test/", 200, 1, &[anchor("http://b.test/")]);
    books.credits.balance(&books.state).unwrap();
    for by in [1, -1] {
        books.state.update_page(id, |page| page.cash += by).unwrap();
        let error = books.credits.balance(&books.state).unwrap_err();
        assert!(matches!(error, CreditError::Imbalance(Imbalance::Written { by: found }) if found == by));
        books.state.update_page(id, |page| page.cash -= by).unwrap();
        books.credits.balance(&books.state).unwrap();
    }
    // Books opened later start from the saved ones.
    books.credits.save(&mut books.state).unwrap();
    books.credits = Credits::open(&books.state).unwrap();
    books.capture("http://b.test/", 200, 2, &[anchor("http://a.test/")]);
    let site = books.credits.site(&books.state, id).unwrap().unwrap();
    books.state.update_site(site, |site| site.cash += 7).unwrap();
    let error = books.credits.balance(&books.state).unwrap_err();
    assert!(matches!(error, CreditError::Imbalance(Imbalance::Written { by: 7 })));
}

#[test]
fn a_link_not_to_be_followed_has_a_small_share() {
    let mut books = TestBooks::new();
    books.credits.add_seeds(&mut books.state, &["http://a.test/".to_owned()]).unwrap();
    let shy = Link { nofollow: true, ..anchor("http://a.test/shy") };
    let id = books.capture("http://a.test/", 200, 1, &[shy, anchor("http://a.test/plain")]);
    let gained =
        |books: &TestBooks, url: &str| (books.cash(url) - archive_math::importance::ENDOWMENT) as f64;
    let ratio = gained(&books, "http://a.test/plain") / gained(&books, "http://a.test/shy");
    assert!((ratio - 64.0 / 6.0).abs() < 0.1, "{ratio}");
    // The link log stores this, so rounds over stored links use the same weights.
    let stored = books.state.links(id).unwrap().links;
    let shy: Vec<bool> = stored.iter().map(|link| LinkCode::from_byte(link.kind).nofollow()).collect();
    assert_eq!(shy, [true, false]);
    books.credits.settle(&mut books.state, 1 << 20).unwrap();
    books.credits.audit(&books.state).unwrap();
    let importance = |url: &str| books.credits.importance_of(&books.state, books.id(url)).unwrap().unwrap();
    assert!(importance("http://a.test/plain") > 1.5 * importance("http://a.test/shy"));
}

#[test]
fn favoured_pages_get_more_and_the_total_stays() {
    let mut books = TestBooks::new();
    let rules = CashRules { favours: vec!["news*3".parse().unwrap()], ..CashRules::default() };
    books.credits.set_rules(&mut books.state, rules.clone(), &[], 0.0).unwrap();
    let seeds = ["http://a.test/", "http://b.test/end"].map(str::to_owned);
    books.credits.add_seeds(&mut books.state, &seeds).unwrap();
    // Gives the virtual page cash to pay from.
    books.capture("http://b.test/end", 200, 1, &[]);
    books.capture("http://a.test/", 200, 2, &[anchor("http://a.test/news"), anchor("http://a.test/olds")]);
    let gained =
        |books: &TestBooks, url: &str| (books.cash(url) - archive_math::importance::ENDOWMENT) as f64;
    let ratio = gained(&books, "http://a.test/news") / gained(&books, "http://a.test/olds");
    assert!(ratio > 1.2 && ratio < 4.01, "{ratio}");
    // The rules are still there after the archive is reopened.
    assert_eq!(*Credits::open(&books.state).unwrap().rules(), rules);
    // Pages found by a query get a bonus, too.
    let favoured = [books.id("http://a.test/olds")];
    books.credits.set_rules(&mut books.state, CashRules::default(), &favoured, 2.0).unwrap();
    books.capture("http://b.test/end", 200, 3, &[]);
    let before = ["http://a.test/news", "http://a.test/olds"].map(|url| books.cash(url));
    books.capture("http://a.test/", 200, 4, &[anchor("http://a.test/news"), anchor("http://a.test/olds")]);
    let after = ["http://a.test/news", "http://a.test/olds"].map(|url| books.cash(url));
    assert!(after[1] - before[1] >= after[0] - before[0]);
}

#[test]
fn favoured_sites_get_more_and_the_total_stays() {
    let mut books = TestBooks::new();
    let seeds =
        ["http://a.test/", "http://b.test/end", "http://c.test/", "http://d.test/"].map(str::to_owned);
    books.credits.add_seeds(&mut books.state, &seeds).unwrap();
    let site = |books: &TestBooks, name| books.state.find_site(name).unwrap().unwrap();
    let sites = vec![(site(&books, "c.test"), 0.6), (site(&books, "d.test"), 0.3)];
    books.credits.favour_sites(&mut books.state, sites).unwrap();
    // Gives the virtual page cash to pay from.
    books.capture("http://b.test/end", 200, 1, &[]);
    let pages = ["http://a.test/x", "http://c.test/new", "http://d.test/new"];
    // With so many links the virtual page can pay each bonus in full.
    let others: Vec<String> = (0..20).map(|page| format!("http://a.test/{page}")).collect();
    let links: Vec<_> = pages.into_iter().chain(others.iter().map(String::as_str)).map(anchor).collect();
    books.capture("http://a.test/", 200, 2, &links);
    let [plain, most, more] = pages.map(|url| books.cash(url) - archive_math::importance::ENDOWMENT);
    assert!(most > more && more > plain, "{plain} {more} {most}");
    books.credits.audit(&books.state).unwrap();
    // The sites are still there after the archive is reopened.
    let again = Credits::open(&books.state).unwrap();
    assert_eq!(again.favoured_sites.len(), 2);
    let many = (0..=FAVOURED_SITES_MAX as u32).map(|site| (archive_storage::SiteId(site), f64::from(site)));
    books.credits.favour_sites(&mut books.state, many.collect()).unwrap();
    let kept = |site| books.credits.favoured_sites.contains_key(&archive_storage::SiteId(site));
    assert!(books.credits.favoured_sites.len() == FAVOURED_SITES_MAX && kept(1) && !kept(0));
    books.credits.favour_sites(&mut books.state, Vec::new()).unwrap();
    assert!(books.credits.favoured_sites.is_empty());
    books.credits.audit(&books.state).unwrap();
}

#[test]
fn sites_are_what_the_archive_began_with() {
    let mut books = TestBooks::new();
    let by_path = CashRules { sites: SiteRule::Path(1), ..CashRules::default() };
    books.credits.set_rules(&mut books.state, by_path, &[], 0.0).unwrap();
    books.credits.add_seeds(&mut books.state, &["http://u.test/~ann/".to_owned()]).unwrap();
    let links = ["http://u.test/~bob/cv", "http://u.test/~ann/x"].map(anchor);
    let ann = books.capture("http://u.test/~ann/", 200, 1, &links);
    let bob = books.id("http://u.test/~bob/cv");
    let name = |books: &TestBooks, id| {
        let site = books.credits.site(&books.state, id).unwrap().unwrap();
        books.state.site_name(site).unwrap()
    };
    assert_eq!((name(&books, ann), name(&books, bob)), ("u.test/~ann".into(), "u.test/~bob".into()));
    // Ann's site links to Bob's on the same host, and pays it; nothing links to the host's own pages.
    let top = books.credits.top_sites(&books.state, 9).unwrap();
    let importance = |site: &str| top.iter().find(|(name, _)| name == site).unwrap().1;
    assert!(importance("u.test/~bob") > 1.9 * importance("u.test"), "{top:?}");
    let other = books.credits.set_rules(&mut books.state, CashRules::default(), &[], 0.0);
    assert!(matches!(other, Err(CreditError::Sites { .. })));
}

#[test]
fn the_balance_says_who_is_paid_by_the_virtual_page() {
    for (discovery, refresh) in [(1, 0), (0, 1)] {
        let mut books = TestBooks::new();
        let rules = CashRules { discovery, refresh, ..CashRules::default() };
        books.credits.set_rules(&mut books.state, rules, &[], 0.0).unwrap();
        let seeds = ["http://a.test/", "http://a.test/read"].map(str::to_owned);
        books.credits.add_seeds(&mut books.state, &seeds).unwrap();
        books.capture("http://a.test/", 200, 1, &[anchor("http://a.test/unread")]);
        let unread = books.cash("http://a.test/unread");
        books.capture("http://a.test/read", 200, 2, &[]);
        let given = books.cash("http://a.test/unread") > unread;
        assert_eq!(given, discovery > 0);
    }
}

#[test]
fn links_are_followed_as_the_last_crawl_required() {
    for is_set in [false, true] {
        let mut books = TestBooks::new();
        let policy = format!(r#"{{"obey_nofollow":{is_set},"robots_name":"any"}}"#);
        books.state.set_setting(POLICY_SETTING, Some(policy.as_bytes())).unwrap();
        // An import, a replay and a rebuild open the books like this.
        books.credits = Credits::open(&books.state).unwrap();
        books.capture("http://a.test/", 200, 1, &[Link { nofollow: true, ..anchor("http://a.test/b") }]);
        let refusal = Refusal::from_code(page_flags::refusal_code(books.flags("http://a.test/b")));
        assert_eq!(refusal == Some(Refusal::NoFollow), is_set);
    }
}

#[test]
fn announced_pages_wait_up_to_a_limit() {
    let mut books = TestBooks::new();
    let urls = [1, 2].map(|number| format!("http://a.test/{number}"));
    books.credits.add_seeds(&mut books.state, &urls).unwrap();
    let mut queue = vec![UrlId(0); PUBLISHED_MAX - 1];
    let mut publish =
        |url: &str| books.credits.publish(&mut books.state, &mut queue, url, 0, Utc::now()).unwrap();
    assert!(matches!(publish(&urls[0]), Published::Queued(_)));
    assert_eq!(publish(&urls[1]), Published::Full);
    // A page that already waits is recognised.
    assert!(matches!(publish(&urls[0]), Published::Waiting(_)));
}
