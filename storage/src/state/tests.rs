//! The state against plain maps, through checkpoints and reopenings, and with a concurrent reader.

mod crash;
mod model;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::small::SETTING_BYTES_MAX;
use super::{Checkpointed, State, StateMode, StateOptions};
use crate::address::url_hash;
use crate::backend::RealDisk;
use crate::capture_kind::CaptureKind;
use crate::checkpoint::StateError;
use crate::history::{Capture, MimeId};
use crate::ids::{CaptureId, HostId, Location, SegmentId, SiteId, UrlId, Watermark, Watermarks};
use crate::links::LinkTarget;
use crate::pages::{Page, PageFlags, Visit};
use crate::warc::MEDIA_TYPE_BYTES_MAX;

fn open(folder: &Path, mode: StateMode) -> Result<State, StateError> {
    let options = StateOptions { cache_bytes: Some(1 << 20), reader_wait: Duration::ZERO };
    State::open_with(Arc::new(RealDisk), folder, mode, options)
}

fn intern(state: &mut State, url: &str) -> UrlId {
    state.intern(url, url_hash(url)).unwrap().0
}

fn watermarks(captures: u64) -> Watermarks {
    Watermarks {
        captures,
        next: SegmentId(3),
        open: vec![Watermark { segment: SegmentId(1), offset: captures }],
    }
}

#[test]
fn a_state_is_shared_between_threads() {
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<State>();
}

/// Two names that unseeded XXH3-64 cannot distinguish: anyone can construct such pairs.
const SAME_XXH3: [&str; 2] = ["http://www.test/l9dy_qFDD_sLDu4B", "http://www.test/U0c1IB-4V*+T@jP!"];

#[test]
fn no_attacker_can_make_names_that_collide() {
    let [victim, other] = SAME_XXH3;
    assert_eq!(xxhash_rust::xxh3::xxh3_64(victim.as_bytes()), xxhash_rust::xxh3::xxh3_64(other.as_bytes()));
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    for (number, name) in (0..).zip(SAME_XXH3) {
        assert_eq!(intern(&mut state, name), UrlId(number));
        assert_eq!(state.intern_site(name).unwrap(), (SiteId(number), true));
        assert_eq!(state.intern_host(name, SiteId(number)).unwrap(), (HostId(number), true));
    }
    state.checkpoint(watermarks(0)).unwrap();
    drop(state);
    let state = open(folder.path(), StateMode::Read).unwrap();
    for (number, name) in (0..).zip(SAME_XXH3) {
        assert_eq!(state.find(name).unwrap(), Some(UrlId(number)));
        assert_eq!(state.find_site(name).unwrap(), Some(SiteId(number)));
        assert_eq!(state.find_host(name).unwrap(), Some(HostId(number)));
    }
}

#[test]
fn what_was_not_checkpointed_is_gone_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    let kept = intern(&mut state, "https://example.org/kept");
    state.update_page(kept, |page| page.cash = 5).unwrap();
    assert_eq!(state.checkpoint(watermarks(10)).unwrap(), Checkpointed::Done);
    state.update_page(kept, |page| page.cash = 6).unwrap();
    intern(&mut state, "https://example.org/lost");
    drop(state);
    let state = open(folder.path(), StateMode::Own).unwrap();
    assert_eq!(state.watermarks(), watermarks(10));
    assert_eq!(state.checkpoint_number(), 1);
    assert_eq!(state.url_count(), 1);
    assert_eq!(state.page(kept).unwrap().cash, 5);
    assert_eq!(state.find("https://example.org/lost").unwrap(), None);
}

#[test]
fn there_is_one_owner_and_its_name_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let _owner = open(folder.path(), StateMode::Own).unwrap();
    match open(folder.path(), StateMode::Own) {
        Err(StateError::Locked { holder, .. }) => {
            assert!(holder.contains(&std::process::id().to_string()), "{holder}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_owner_that_has_not_written_its_name_yet_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), StateMode::Own).unwrap());
    let path = folder.path().join("archive.lock");
    let owner = std::fs::File::options().write(true).open(&path).unwrap();
    owner.lock().unwrap();
    owner.set_len(0).unwrap();
    let holder = || match open(folder.path(), StateMode::Own) {
        Err(StateError::Locked { holder, .. }) => holder,
        other => panic!("{other:?}"),
    };
    std::thread::scope(|scope| {
        let second = scope.spawn(holder);
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::fs::write(&path, "process 7 (archive crawl)\n").unwrap();
        assert_eq!(second.join().unwrap(), "process 7 (archive crawl)");
    });
    owner.set_len(0).unwrap();
    assert_eq!(holder(), "another process");
    // An unterminated name is not read to its end.
    owner.set_len(1 << 40).unwrap();
    assert!(holder().len() <= 4096);
}

#[test]
fn readers_need_a_checkpoint_and_may_not_change_anything() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(open(folder.path(), StateMode::Read), Err(StateError::Missing { .. })));
    let mut owner = open(folder.path(), StateMode::Own).unwrap();
    assert!(matches!(open(folder.path(), StateMode::Read), Err(StateError::Missing { .. })));
    owner.checkpoint(watermarks(0)).unwrap();
    let mut reader = open(folder.path(), StateMode::Read).unwrap();
    assert!(matches!(reader.intern("https://example.org/", 1), Err(StateError::ReadOnly)));
    assert!(matches!(reader.set_setting("a", None), Err(StateError::ReadOnly)));
    assert!(matches!(reader.checkpoint(watermarks(1)), Err(StateError::ReadOnly)));
}

#[test]
fn a_reader_sees_one_checkpoint_and_holds_the_next_one_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut owner = open(folder.path(), StateMode::Own).unwrap();
    let url = intern(&mut owner, "https://example.org/");
    owner.update_page(url, |page| page.cash = 1).unwrap();
    owner.checkpoint(watermarks(1)).unwrap();
    let mut reader = open(folder.path(), StateMode::Read).unwrap();
    owner.update_page(url, |page| page.cash = 2).unwrap();
    let other = intern(&mut owner, "https://example.org/other");
    assert_eq!(owner.checkpoint(watermarks(2)).unwrap(), Checkpointed::Deferred);
    assert_eq!(reader.page(url).unwrap().cash, 1);
    assert_eq!(reader.find("https://example.org/").unwrap(), Some(url));
    assert_eq!(reader.url_count(), 1);
    reader.pause().unwrap();
    assert_eq!(owner.checkpoint(watermarks(2)).unwrap(), Checkpointed::Done);
    reader.refresh().unwrap();
    assert_eq!(reader.watermarks(), watermarks(2));
    assert_eq!(reader.page(url).unwrap().cash, 2);
    assert_eq!(reader.find("https://example.org/other").unwrap(), Some(other));
}

#[test]
fn a_refreshed_reader_finds_old_and_new() {
    let folder = tempfile::tempdir().unwrap();
    let mut owner = open(folder.path(), StateMode::Own).unwrap();
    let mut reader: Option<State> = None;
    for number in 0..5 {
        for url in 0..300 {
            intern(&mut owner, &format!("https://example.org/{number}/{url}"));
        }
        if let Some(reader) = &mut reader {
            reader.pause().unwrap();
        }
        owner.checkpoint(watermarks(number)).unwrap();
        let reader = match &mut reader {
            Some(reader) => {
                reader.refresh().unwrap();
                reader
            }
            None => reader.insert(open(folder.path(), StateMode::Read).unwrap()),
        };
        for number in 0..=number {
            assert!(reader.find(&format!("https://example.org/{number}/7")).unwrap().is_some());
        }
        assert_eq!(reader.find("https://example.org/5/7").unwrap(), None);
        reader.refresh().unwrap();
        assert_eq!(reader.url_count(), 300 * (number as u32 + 1));
    }
}

#[test]
fn readers_always_see_one_whole_checkpoint() {
    const URLS: u32 = 2000;
    const CASH: i64 = 1 << 40;
    let folder = tempfile::tempdir().unwrap();
    let mut owner = open(folder.path(), StateMode::Own).unwrap();
    owner.options.reader_wait = Duration::from_secs(30);
    for number in 0..URLS {
        intern(&mut owner, &format!("http://a/{number}"));
    }
    owner.update_page(UrlId(0), |page| page.cash = CASH).unwrap();
    owner.checkpoint(watermarks(0)).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = || {
            let mut seen = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) || seen == 0 {
                let reader = open(folder.path(), StateMode::Read).unwrap();
                let cash: i64 = reader.pages(UrlId(0)).map(|page| page.unwrap().1.cash).sum();
                assert_eq!(cash, CASH, "at checkpoint {}", reader.checkpoint_number());
                reader.check(&mut |found| panic!("{found}")).unwrap();
                seen += 1;
                drop(reader);
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        for round in 1..=15 {
            for step in 0..300 {
                let (from, to) = (UrlId(step * 7919 % URLS), UrlId(step * 104_729 % URLS));
                let cash = owner.update_page(from, |page| std::mem::take(&mut page.cash)).unwrap();
                owner.update_page(to, |page| page.cash += cash).unwrap();
                owner.append_links(from, &[LinkTarget { target: to, kind: 1 }]).unwrap();
            }
            intern(&mut owner, &format!("http://b/{round}"));
            assert_eq!(owner.checkpoint(watermarks(round)).unwrap(), Checkpointed::Done);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_reader_learns_that_a_checkpoint_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut owner = open(folder.path(), StateMode::Own).unwrap();
    owner.options.reader_wait = Duration::from_millis(100);
    owner.checkpoint(watermarks(0)).unwrap();
    for number in 1..=2 {
        let mut reader = open(folder.path(), StateMode::Read).unwrap();
        assert!(!reader.is_awaited());
        intern(&mut owner, &format!("http://a/{number}"));
        assert_eq!(owner.checkpoint(watermarks(number)).unwrap(), Checkpointed::Deferred);
        assert!(reader.is_awaited());
        reader.pause().unwrap();
        assert_eq!(owner.checkpoint(watermarks(number)).unwrap(), Checkpointed::Done);
        reader.refresh().unwrap();
        assert!(!reader.is_awaited() && reader.checkpoint_number() == owner.checkpoint_number());
    }
}

#[test]
fn a_check_finds_what_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    let urls: Vec<UrlId> = (0..3).map(|number| intern(&mut state, &format!("http://a/{number}"))).collect();
    state.append_links(urls[0], &[LinkTarget { target: UrlId(3), kind: 1 }]).unwrap();
    state.update_page(urls[1], |page| page.host = crate::HostId(0)).unwrap();
    state.intern_site("a").unwrap();
    state.intern_host("b", SiteId(1)).unwrap();
    let mut found = Vec::new();
    state.check(&mut |inconsistency| found.push(inconsistency.to_string())).unwrap();
    assert_eq!(
        found,
        ["visit 0: a link leads to a URL that does not exist", "host 0: its site does not exist"]
    );
}

#[test]
fn a_discarded_state_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    state.set_setting("scope", Some(b"all")).unwrap();
    state.checkpoint(watermarks(77)).unwrap();
    drop(state);
    assert_eq!(open(folder.path(), StateMode::Own).unwrap().setting("scope"), Some(b"all".as_slice()));
    State::discard(Arc::new(RealDisk), folder.path()).unwrap();
    assert!(matches!(open(folder.path(), StateMode::Read), Err(StateError::Missing { .. })));
    assert_eq!(open(folder.path(), StateMode::Own).unwrap().setting("scope"), None);
}

#[test]
fn what_the_store_keeps_can_not_be_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    let url = intern(&mut state, "https://example.org/");
    let links = [LinkTarget { target: url, kind: 3 }];
    let position = state.append_links(url, &links).unwrap();
    assert_eq!(state.append_links(url, &links).unwrap(), position, "the same links are stored once");
    state.set_visit(url, &Visit { status: 200, captures: 99, ..Visit::default() }).unwrap();
    let page = Page { cash: 3, depth: 2, flags: PageFlags(9), ..Page::NEW };
    state.set_page(url, &page).unwrap();
    let visit = state.visit(url).unwrap().unwrap();
    assert_eq!((visit.status, visit.captures, visit.links), (200, 0, Some(position)));
    assert_eq!(state.page(url).unwrap(), Page { visit: state.page(url).unwrap().visit, ..page });
    assert_eq!(state.links(url).unwrap().links, links);
    assert_eq!(state.totals().links, 1);
}

#[test]
fn only_the_newest_lists_of_links_are_ranked() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    let urls: Vec<UrlId> = (0..50).map(|number| intern(&mut state, &format!("http://a/{number}"))).collect();
    let link = |target: usize| LinkTarget { target: urls[target], kind: 1 };
    for &source in &urls {
        state.append_links(source, &[link(1)]).unwrap();
    }
    state.append_links(urls[7], &[link(2), link(3)]).unwrap();
    let mut seen = Vec::new();
    state
        .newest_links(|(source, ..), links| {
            seen.push((source, links.len()));
            Ok::<_, StateError>(())
        })
        .unwrap();
    assert_eq!(seen.len(), 50);
    assert_eq!(seen.last(), Some(&(urls[7], 2)));
    let mut scan = state.all_links();
    let mut list = crate::links::LinkList::default();
    let mut all = 0;
    while scan.read_next(&mut list).unwrap() {
        all += 1;
    }
    assert_eq!(all, 51);
}

#[test]
fn media_types_and_settings_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    let longest = "x".repeat(MEDIA_TYPE_BYTES_MAX);
    assert_eq!(state.intern_mime(&longest).unwrap().0, 1);
    assert_eq!(state.intern_mime(&format!("{longest}x")).unwrap().0, 0);
    // 4096 including the empty one.
    for number in 2..4096 {
        assert_eq!(state.intern_mime(&format!("text/{number}")).unwrap().0, number);
    }
    assert_eq!(state.intern_mime("text/4096").unwrap().0, 0);
    assert_eq!(state.intern_mime("text/4095").unwrap().0, 4095);
    assert_eq!(state.intern_mime("text/html").unwrap().0, 4096);
    assert_eq!(state.mime(crate::MimeId(4096)), "text/html");

    let longest = vec![0; SETTING_BYTES_MAX + 1];
    state.set_setting("scope", Some(&longest[1..])).unwrap();
    assert!(matches!(state.set_setting("scope", Some(&longest)), Err(StateError::TooLong { .. })));
}

#[test]
fn small_things_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    state.set_counter("fetches", 12).unwrap();
    let html = state.intern_mime("text/html").unwrap();
    assert_eq!(state.intern_mime("").unwrap().0, 0);
    for (name, value) in [("seed/1", "a"), ("seed/2", "b"), ("scope", "c")] {
        state.set_setting(name, Some(value.as_bytes())).unwrap();
    }
    let (site, _) = state.intern_site("example.org").unwrap();
    let (host, new) = state.intern_host("www.example.org", site).unwrap();
    assert!(new);
    state.update_host(host, |host| host.urls = 7).unwrap();
    state.update_site(site, |site| site.cash = 8).unwrap();
    let title = state.append_title("Ein schöner Titel").unwrap();
    let long = state.append_title(&"ü".repeat(4000)).unwrap();
    state.checkpoint(watermarks(1)).unwrap();
    drop(state);
    for mode in [StateMode::Own, StateMode::Read] {
        let mut state = open(folder.path(), mode).unwrap();
        assert_eq!((state.counter("fetches"), state.counter("other")), (12, 0));
        assert_eq!(state.mime(html), "text/html");
        if mode == StateMode::Own {
            assert_eq!(state.intern_mime("text/html").unwrap(), html);
        }
        assert_eq!(state.settings("seed/").map(|(name, _)| name).collect::<Vec<_>>(), ["seed/1", "seed/2"]);
        assert_eq!(state.setting("scope"), Some(b"c".as_slice()));
        let hosts: Vec<_> = state.hosts().map(Result::unwrap).collect();
        assert_eq!(
            (hosts.len(), hosts[0].1.as_str(), hosts[0].2.urls, hosts[0].2.site),
            (1, "www.example.org", 7, site)
        );
        let sites: Vec<_> = state.sites().map(Result::unwrap).collect();
        assert_eq!((sites[0].1.as_str(), sites[0].2.cash), ("example.org", 8));
        assert_eq!(
            (state.find_host("www.example.org").unwrap(), state.find_site("x").unwrap()),
            (Some(host), None)
        );
        assert_eq!(
            (state.host_name(host).unwrap().as_str(), state.site_name(site).unwrap().as_str()),
            ("www.example.org", "example.org")
        );
        assert!(matches!(state.site(SiteId(1)), Err(StateError::Unknown { .. })));
        assert_eq!(state.title(title).unwrap(), "Ein schöner Titel");
        assert_eq!(state.title(long).unwrap(), "ü".repeat(2048));
        let totals = state.totals();
        assert_eq!((totals.hosts, totals.sites, totals.urls), (1, 1, 0));
    }
}

#[test]
fn what_is_read_together_is_what_is_read_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    let ids: Vec<UrlId> =
        (0..20_000).map(|it| intern(&mut state, &format!("http://www.test/{it}"))).collect();
    // Two thirds are fetched, in an order of their own.
    let fetched = || (0..ids.len()).map(|place| ids[place * 7919 % ids.len()]).filter(|id| id.0 % 3 > 0);
    for (time, id) in (1..).zip(fetched()) {
        state.update_visit(id, |visit| visit.last_seen = time).unwrap();
    }
    state.checkpoint(watermarks(0)).unwrap();
    let same = |state: &State| {
        let all: Vec<_> = state.pages_with_visits().map(Result::unwrap).collect();
        assert_eq!(all.len(), ids.len());
        for (id, page, visit) in &all {
            assert_eq!((page, visit), (&state.page(*id).unwrap(), &state.visit(*id).unwrap()));
        }
        let some: Vec<UrlId> = fetched().step_by(17).collect();
        let found: Vec<_> = state.visits_of(some.iter().copied()).map(|found| found.unwrap().0).collect();
        assert!(found == some);
        for step in [1, 5, 400] {
            let visits: Vec<_> = state.visits_with_pages((0..).step_by(step)).map(Result::unwrap).collect();
            let expected: Vec<UrlId> = fetched().step_by(step).collect();
            assert!(visits.iter().map(|(id, ..)| *id).eq(expected));
            for (id, page, visit) in visits {
                assert_eq!((page, Some(visit)), (state.page(id).unwrap(), state.visit(id).unwrap()));
            }
        }
        assert!(state.visits_of([UrlId(20_000)].into_iter()).next().unwrap().is_err());
        all
    };
    let before = same(&state);
    // Blocks that were read are not updated by later changes, nor when these are written.
    for id in fetched().step_by(50) {
        state.update_page(id, |page| page.cash = 9).unwrap();
        state.update_visit(id, |visit| visit.status = 404).unwrap();
    }
    let changed = same(&state);
    assert!(before != changed);
    state.checkpoint(watermarks(1)).unwrap();
    assert!(same(&state) == changed);
    drop(state);
    assert!(same(&open(folder.path(), StateMode::Read).unwrap()) == changed);
}

/// For captures that confirm others, batched lookups find the same contents as single ones.
#[test]
fn contents_are_those_before_confirmations() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    let kinds =
        [CaptureKind::Response, CaptureKind::NotModified, CaptureKind::Failed, CaptureKind::Identical];
    let mut newest = Vec::new();
    // Every history of up to five captures of these kinds; in some, later captures come first.
    for number in 0..1 << 10 {
        let url = intern(&mut state, &format!("http://www.test/{number}"));
        for place in 0..number % 5 + 1 {
            let kind = kinds[number >> (2 * place) & 3];
            let time = if number % 3 == 0 { 10 - place as i64 } else { place as i64 / 2 };
            state.append_capture(&capture_of(url, time, kind), None).unwrap();
        }
        newest.push(state.history(url).unwrap().next().unwrap().unwrap());
    }
    let is_content = |capture: &Capture| capture.kind != CaptureKind::NotModified;
    let one_by_one = |(id, _): &(CaptureId, Capture)| {
        state.history_from(*id).map(Result::unwrap).find(|(_, capture)| is_content(capture))
    };
    let expected: Vec<_> = newest.iter().map(one_by_one).collect();
    assert!(expected.contains(&None));
    assert_eq!(state.contents_of(&newest, is_content).unwrap(), expected);
}

fn capture_of(url: UrlId, time: i64, kind: CaptureKind) -> Capture {
    let location = Location { segment: SegmentId(0), offset: 0, length: 1 };
    let (digest, status, mime) = ([1; 16], 200, MimeId(0));
    Capture { url, time, location, digest, status, mime, kind, length: 1, flags: 0, original: None }
}

#[test]
fn what_changed_since_the_state_was_opened_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    let url = intern(&mut state, "http://www.test/");
    let ids: Vec<CaptureId> = (0..1000)
        .map(|time| state.append_capture(&capture_of(url, time, CaptureKind::Response), None).unwrap())
        .collect();
    state.checkpoint(watermarks(1000)).unwrap();
    let checkpoint = state.checkpoint_number();
    assert!(!state.are_as_at(checkpoint, 0..1), "it was not opened at this one");
    drop(state);

    let mut state = open(folder.path(), StateMode::Own).unwrap();
    assert!(state.are_as_at(checkpoint, 0..1000) && !state.are_as_at(checkpoint + 1, 0..1000));
    assert!(!state.are_as_at(checkpoint, 0..1001), "it is not there yet");
    state.set_capture_flags(ids[500], 8).unwrap();
    state.append_capture(&capture_of(url, 1000, CaptureKind::Response), None).unwrap();
    let as_they_were = |state: &State| {
        let all = (0..1001).filter(|id| state.are_as_at(checkpoint, *id..*id + 1)).collect::<Vec<u32>>();
        assert!(all.contains(&0) && all.contains(&400) && all.contains(&600));
        assert!(!all.contains(&500) && !all.contains(&1000));
        assert!(!state.are_as_at(checkpoint, 400..600));
    };
    as_they_were(&state);
    state.checkpoint(watermarks(1001)).unwrap();
    as_they_were(&state);
    drop(state);
    assert!(
        !open(folder.path(), StateMode::Read).unwrap().are_as_at(checkpoint + 1, 0..1),
        "a reader knows nothing"
    );
}

#[test]
fn all_titles_are_read_where_they_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path(), StateMode::Own).unwrap();
    let title = |number: usize| format!("Überschrift {number} {}", "x".repeat(number % 300));
    let positions: Vec<_> = (0..2000).map(|number| state.append_title(&title(number)).unwrap()).collect();
    state.checkpoint(watermarks(0)).unwrap();
    drop(state);
    let state = open(folder.path(), StateMode::Read).unwrap();
    let mut found = Vec::new();
    assert!(state.title_blocks() > 5);
    for first in (0..state.title_blocks()).step_by(2) {
        let blocks = first..state.title_blocks().min(first + 2);
        state.scan_titles(blocks, |position, title| found.push((position, title.to_owned()))).unwrap();
    }
    assert!(found.into_iter().eq(positions.into_iter().zip((0..2000).map(title))));
}
