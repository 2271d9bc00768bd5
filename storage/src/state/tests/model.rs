//! Random operations on a state and on plain maps give the same answers, also after reopening at any point.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proptest::prelude::*;

use crate::address::url_hash;
use crate::backend::{Disk, SimulatedDisk};
use crate::capture_kind::CaptureKind;
use crate::digest::Digest;
use crate::history::Capture;
use crate::ids::{CaptureId, Location, SegmentId, UrlId};
use crate::links::LinkTarget;
use crate::state::{State, StateMode, StateOptions};
use crate::validators::Validators;

#[derive(Clone, Debug)]
pub(super) enum StateAction {
    Intern(u16),
    Cash(u16, i64),
    Capture { url: u16, time: i64, digest: u8, full: bool },
    Links(u16, Vec<u16>),
    Checkpoint,
    Reopen,
}

pub(super) fn step() -> impl Strategy<Value = StateAction> {
    prop_oneof![
        8 => (0u16..2000).prop_map(StateAction::Intern),
        4 => (any::<u16>(), any::<i64>()).prop_map(|(url, cash)| StateAction::Cash(url, cash)),
        4 => (any::<u16>(), 0i64..100, 1u8..20, any::<bool>())
            .prop_map(|(url, time, digest, full)| StateAction::Capture { url, time, digest, full }),
        1 => (any::<u16>(), prop::collection::vec(any::<u16>(), 0..30)).prop_map(|(url, links)| StateAction::Links(url, links)),
        1 => Just(StateAction::Checkpoint),
        1 => Just(StateAction::Reopen),
    ]
}

/// What a state should hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StateModel {
    urls: Vec<String>,
    ids: HashMap<String, u32>,
    cash: Vec<i64>,
    captures: Vec<Capture>,
    digests: BTreeMap<u8, u32>,
    links: BTreeMap<u32, Vec<LinkTarget>>,
    pub(super) steps: u64,
}

impl StateModel {
    fn url(&self, number: u16) -> Option<UrlId> {
        let count = self.urls.len() as u32;
        (count > 0).then(|| UrlId(u32::from(number) % count))
    }

    /// Applies a step to both; the state's outcome must equal the model's.
    pub(super) fn apply(&mut self, state: &mut State, step: &StateAction) -> Result<(), crate::StateError> {
        self.steps += 1;
        match step {
            StateAction::Intern(number) => {
                let url = format!("https://host-{}.example.org/path/{number}", number % 7);
                let next = self.urls.len() as u32;
                let expected = self.ids.get(&url).map_or((next, true), |&id| (id, false));
                let (id, new) = state.intern(&url, url_hash(&url))?;
                assert_eq!((id.0, new), expected);
                if new {
                    self.ids.insert(url.clone(), next);
                    self.urls.push(url);
                    self.cash.push(0);
                }
            }
            StateAction::Cash(url, cash) => {
                if let Some(url) = self.url(*url) {
                    state.update_page(url, |page| page.cash = *cash)?;
                    self.cash[url.index()] = *cash;
                }
            }
            StateAction::Capture { url, time, digest, full } => {
                if let Some(url) = self.url(*url) {
                    let capture = capture(url, *time, *digest, *full, self.captures.len() as u64);
                    let id = state.append_capture(&capture, validators(*digest).as_ref())?;
                    assert_eq!(id, CaptureId(self.captures.len() as u32));
                    if *full {
                        self.digests.entry(*digest).or_insert(id.0);
                    }
                    self.captures.push(capture);
                }
            }
            StateAction::Links(url, links) => {
                if let Some(source) = self.url(*url) {
                    let links: Vec<LinkTarget> = links
                        .iter()
                        .filter_map(|&link| Some(LinkTarget { target: self.url(link)?, kind: link as u8 }))
                        .collect();
                    state.append_links(source, &links)?;
                    self.links.insert(source.0, links);
                }
            }
            StateAction::Checkpoint | StateAction::Reopen => {}
        }
        Ok(())
    }

    /// Checks that the state gives the same answers as the model.
    pub(super) fn assert_is(&self, state: &State) {
        assert_eq!(state.url_count() as usize, self.urls.len());
        let mut urls = Vec::new();
        state
            .scan_urls(0..u32::MAX, |_, url| {
                urls.push(url.to_owned());
                Ok(())
            })
            .unwrap();
        assert_eq!(urls, self.urls);
        let cash: Vec<i64> = state.pages(UrlId(0)).map(|page| page.unwrap().1.cash).collect();
        assert_eq!(cash, self.cash);
        let captures: Vec<Capture> = state.captures().map(|capture| capture.unwrap().1).collect();
        assert_eq!(captures, self.captures);
        let mut histories: BTreeMap<u32, Vec<(i64, usize)>> = BTreeMap::new();
        for (number, capture) in self.captures.iter().enumerate() {
            histories.entry(capture.url.0).or_default().push((capture.time, number));
        }
        for (number, url) in self.urls.iter().enumerate() {
            let id = UrlId(number as u32);
            assert_eq!(state.find(url).unwrap(), Some(id));
            assert_eq!(state.page(id).unwrap().cash, self.cash[number]);
            assert_eq!(state.links(id).unwrap().links, self.links.get(&id.0).cloned().unwrap_or_default());
            let mut expected = histories.remove(&id.0).unwrap_or_default();
            expected.sort_unstable();
            let found = state.history(id).unwrap().map(|capture| capture.unwrap());
            assert!(found.map(|(id, capture)| (capture.time, id.index())).eq(expected.iter().rev().copied()));
            assert_eq!(state.visit(id).unwrap().map_or(0, |visit| visit.captures) as usize, expected.len());
            let newest = expected.iter().rev().find(|(_, number)| self.captures[*number].status == 200);
            let version = state.newest_version(id).unwrap().map(|(id, _)| id.index());
            assert_eq!(version, newest.map(|(_, number)| *number));
            let given = version.and_then(|number| validators(self.captures[number].digest[0]));
            assert_eq!(state.validators(id).unwrap(), given);
        }
        for digest in 1..20 {
            let expected = self.digests.get(&digest).copied().map(CaptureId);
            assert_eq!(state.by_digest(&[digest; 16]).unwrap(), expected);
        }
        let mut ranked = BTreeMap::new();
        state
            .newest_links(|(source, ..), links| {
                assert!(ranked.insert(source.0, links.to_vec()).is_none());
                Ok::<_, crate::StateError>(())
            })
            .unwrap();
        assert_eq!(ranked, self.links);
        state.check(&mut |found| panic!("{found}")).unwrap();
        let totals = state.totals();
        assert_eq!(totals.captures, self.captures.len() as u64);
        let bytes: u64 = self.captures.iter().map(|capture| u64::from(capture.length)).sum();
        assert_eq!(totals.payload_bytes, bytes);
    }
}

fn capture(url: UrlId, time: i64, digest: u8, full: bool, number: u64) -> Capture {
    Capture {
        url,
        time,
        location: Location { segment: SegmentId(0), offset: number * 100, length: 100 },
        digest: [digest; 16],
        status: if digest.is_multiple_of(5) { 404 } else { 200 },
        mime: crate::MimeId(0),
        kind: if full { CaptureKind::Response } else { CaptureKind::Identical },
        length: 1000 + u32::from(digest),
        flags: 0,
        original: None,
    }
}

/// The validators sent with some content; none for some contents.
fn validators(digest: u8) -> Option<Validators> {
    let etag = (!digest.is_multiple_of(4)).then(|| format!("\"{digest}\""));
    let given = Validators { digest: Digest::sha1(&[digest]), etag, last_modified: None };
    (!digest.is_multiple_of(3)).then_some(given)
}

pub(super) fn open(
    disk: &Arc<dyn Disk>,
    folder: &std::path::Path,
    mode: StateMode,
) -> Result<State, crate::StateError> {
    // The minimum of memory, so that blocks are evicted and read again.
    let options = StateOptions { cache_bytes: Some(0), ..StateOptions::default() };
    State::open_with(disk.clone(), folder, mode, options)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_state_is_what_was_put_in(steps in prop::collection::vec(step(), 0..600)) {
        let folder = std::path::Path::new("/archive");
        let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(0));
        let mut state = open(&disk, folder, StateMode::Own).unwrap();
        let mut model = StateModel::default();
        let mut committed = StateModel::default();
        for step in &steps {
            model.apply(&mut state, step).unwrap();
            match step {
                StateAction::Checkpoint => {
                    state.checkpoint(super::watermarks(model.steps)).unwrap();
                    committed = model.clone();
                }
                StateAction::Reopen => {
                    drop(state);
                    state = open(&disk, folder, StateMode::Own).unwrap();
                    model = committed.clone();
                    prop_assert_eq!(state.watermarks().captures, model.steps);
                }
                _ => {}
            }
        }
        model.assert_is(&state);
        state.checkpoint(super::watermarks(model.steps)).unwrap();
        drop(state);
        model.assert_is(&open(&disk, folder, StateMode::Own).unwrap());
        model.assert_is(&open(&disk, folder, StateMode::Read).unwrap());
    }
}
