//! The link log against a plain list of lists.

use proptest::prelude::*;

use super::{LINKS_PER_PAGE_MAX, LinkKinds, LinkList, LinkLog, LinkTarget, decode, search};
use crate::backend::{OpenMode, RealDisk};
use crate::checkpoint::StateError;
use crate::ids::UrlId;
use crate::pages::LinksPosition;

fn log(folder: &std::path::Path) -> LinkLog {
    LinkLog::open(&RealDisk, &folder.join("links"), 0, Vec::new(), OpenMode::Create).unwrap()
}

fn target((target, kind): (u32, u8)) -> LinkTarget {
    LinkTarget { target: UrlId(target), kind }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn lists_come_back_in_order_and_by_position(
        lists in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<(u32, u8)>(), 0..400)), 0..120),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log(folder.path());
        let mut expected = Vec::new();
        for (source, links) in lists {
            let links: Vec<LinkTarget> = links.into_iter().map(target).collect();
            let position = log.push(UrlId(source), &links).unwrap();
            expected.push(LinkList { position: Some(position), source: Some(UrlId(source)), links });
        }
        log.log_mut().write().unwrap();
        let blocks = log.log().len();
        let log = LinkLog::open(
            &RealDisk, &folder.path().join("links"), blocks, log.open_block().to_vec(), OpenMode::Read,
        ).unwrap();
        let (mut scan, mut list) = (log.scan(LinksPosition(0)), LinkList::default());
        for expected in &expected {
            prop_assert!(scan.read_next(&mut list).unwrap());
            prop_assert_eq!(&list, expected);
        }
        prop_assert!(!scan.read_next(&mut list).unwrap());
        for (place, first) in expected.iter().enumerate() {
            let mut scan = log.scan(first.position.unwrap());
            for expected in expected.iter().skip(place).take(2) {
                prop_assert!(scan.read_next(&mut list).unwrap());
                prop_assert_eq!(&list, expected);
            }
        }
        // Half of all targets, and half of all kinds or a few of them.
        let counts = |target: UrlId| target.0.count_ones().is_multiple_of(2);
        for every in [2, 50] {
            let (is_wanted, mut expected) = (|kind: u8| kind.is_multiple_of(every), expected.iter());
            let is_found = |link: &&LinkTarget| is_wanted(link.kind) && counts(link.target);
            let mut found = Vec::new();
            let kinds = LinkKinds::new(is_wanted);
            let visit = |source, position, first| found.push((source, position, first));
            log.search(0..log.blocks(), &kinds, counts, visit).unwrap();
            for found in found {
                let list = expected.next().unwrap();
                let first = list.links.iter().find(is_found).map(|link| link.target);
                prop_assert_eq!(found, (list.source.unwrap(), list.position.unwrap(), first));
            }
            prop_assert!(expected.next().is_none());
        }
        let mut cursor = log.cursor(None);
        for expected in expected.iter().rev() {
            cursor.get(expected.position.unwrap(), &mut list).unwrap();
            prop_assert_eq!(&list, expected);
        }
    }

    #[test]
    fn foreign_bytes_are_refused_not_trusted(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut list = LinkList::default();
        if let Some(length) = decode(&bytes, &mut list) {
            prop_assert!(length <= bytes.len());
            let all = (list.source.unwrap(), list.links.first().map(|link| link.target), length);
            prop_assert_eq!(search(&bytes, &LinkKinds::new(|_| true), |_| true), Some(all));
        } else {
            prop_assert_eq!(search(&bytes, &LinkKinds::new(|_| true), |_| true), None);
        }
        // Lists without such a kind are skipped.
        let found = search(&bytes, &LinkKinds::new(|kind| kind == 0), |_| true);
        prop_assert!(found.is_none_or(|(_, _, length)| length <= bytes.len()));
    }
}

#[test]
fn a_list_has_a_largest_length() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = log(folder.path());
    let mut links = vec![target((5, 1)); LINKS_PER_PAGE_MAX];
    let position = log.push(UrlId(1), &links).unwrap();
    let mut list = LinkList::default();
    log.cursor(None).get(position, &mut list).unwrap();
    assert_eq!(list.links, links);
    links.push(target((6, 1)));
    assert!(matches!(log.push(UrlId(1), &links), Err(StateError::TooLong { .. })));
}
