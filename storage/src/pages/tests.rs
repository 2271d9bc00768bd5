//! Every record survives a round trip through its bytes, fills them exactly, and has the layout that FORMAT.md
//! specifies.

use proptest::prelude::*;

use super::{Host, Page, PageFlags, Site, TextPosition, Visit, VisitId, VisitRecord};
use crate::checkpoint::{FieldReader, FieldWriter, TableRecord};
use crate::ids::{CaptureId, HostId, SiteId, UrlId};
use crate::pages::{LinksPosition, ValidatorsPosition};

fn bytes_of<R: TableRecord>(record: &R) -> Vec<u8> {
    let mut bytes = vec![0xff; R::BYTES];
    let mut fields = FieldWriter(&mut bytes);
    record.encode(&mut fields);
    assert!(fields.0.is_empty(), "the record fills its bytes");
    bytes
}

fn again<R: TableRecord>(record: &R) -> R {
    let bytes = bytes_of(record);
    let mut fields = FieldReader(&bytes);
    let copy = R::decode(&mut fields);
    assert!(fields.0.is_empty());
    copy
}

proptest! {
    #[test]
    fn pages_come_back(
        cash: i64, host: u32, depth: u8, hop: u8, flags: u16,
        visit in prop::option::of(0..u32::MAX - 1), via in prop::option::of(0..u32::MAX - 1),
    ) {
        let page = Page {
            cash, host: HostId(host), via: via.map(UrlId), depth, hop, flags: PageFlags(flags), visit: visit.map(VisitId),
        };
        prop_assert_eq!(again(&page), page);
    }

    #[test]
    fn visits_come_back(
        url: u32, seen: [u32; 9], capture in prop::option::of(0..u32::MAX - 1), status: u16, [kind, language]: [u8; 2],
        credit: [u8; 16], position in prop::option::of(0..u64::MAX - 1), fill: u8,
        signature: u64, announced: u32, counts: [u16; 3],
    ) {
        let [first_seen, last_seen, last_changed, captures, versions, contents, last_answer, last_attempt, failing_since] =
            seen;
        let visit = Visit {
            first_seen, last_seen, last_answer, last_attempt, failing_since, last_changed, captures, contents, versions,
            last_capture: capture.map(CaptureId), status,
            content_status: counts[2], kind,
            language, credit, title: position.map(TextPosition), links: position.map(LinksPosition),
            signature, announced, announcements: counts[0], announcements_confirmed: counts[1],
            extension: [fill; 48], version: capture.map(CaptureId), validators: position.map(ValidatorsPosition),
        };
        let copy = again(&VisitRecord { url: UrlId(url), visit });
        prop_assert_eq!(copy.url, UrlId(url));
        prop_assert_eq!(copy.visit, visit);
    }

    #[test]
    fn hosts_and_sites_come_back(numbers: [u32; 7], bytes: u64, cash: i64, credit: [u8; 16], flags: u16, fill: u8) {
        let [site, urls, fetched, captures, contents, failures, robots_time] = numbers;
        let host = Host {
            site: SiteId(site), urls, fetched, captures, contents, failures, bytes, robots: Some(CaptureId(1)), robots_time,
            extension: [fill; 64],
        };
        prop_assert_eq!(again(&host), host);
        let site = Site {
            cash, credit, hosts: 1, urls, fetched, captures, bytes, flags, extension: [fill; 64],
        };
        prop_assert_eq!(again(&site), site);
    }
}

#[test]
fn a_page_has_the_documented_bytes() {
    let page = Page {
        cash: -2,
        host: HostId(0x0102),
        via: None,
        depth: 7,
        hop: b'L',
        flags: PageFlags(0x0304),
        visit: Some(VisitId(5)),
    };
    let expected = [0xfe, 255, 255, 255, 255, 255, 255, 255, 2, 1, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 4, 3, 7, 76];
    assert_eq!(bytes_of(&page), expected);
}

#[test]
fn flags_are_set_and_cleared_together() {
    let (low, high) = (PageFlags(1), PageFlags(0x8000));
    let mut flags = PageFlags::default();
    flags.set(low | high, true);
    assert!(flags.contains(low | high));
    flags.set(low, false);
    assert!(flags.contains(high) && !flags.contains(low | high));
}
