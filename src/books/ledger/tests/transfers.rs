//! What one partition reports about the same pages to another, repeatedly.

use super::*;
use crate::cluster::{self, Batch, Partition, Route};

fn partition(number: u16) -> Partition {
    Partition {
        cluster: "c".to_owned(),
        number,
        count: 2,
        mode: cluster::Mode::Exchange,
        by: cluster::Division::Site,
    }
}

/// Returns the home page of a site in a partition.
fn home(number: u16) -> String {
    let site = (0..).map(|site| format!("s{site}.test")).find(|site| partition(1).of_site(site) == number);
    format!("http://{}/", site.unwrap())
}

fn books(number: u16) -> TestBooks {
    let mut books = TestBooks::new();
    Credits::join_cluster(&mut books.state, Some(&partition(number))).unwrap();
    books.credits = Credits::open(&books.state).unwrap();
    let everything = ScopeRule {
        kind: ScopeKind::Any,
        seed: "http://a.test/".to_owned(),
        max_depth: u8::MAX,
        moved_from: None,
    };
    books.credits.set_scope(&mut books.state, CrawlScope::from_rules(vec![everything])).unwrap();
    books
}

/// Returns what the first partition reports now.
fn said(books: &mut TestBooks) -> Batch {
    books.credits.seal(&mut books.state).unwrap();
    books.credits.audit(&books.state).unwrap();
    let (to, number, bytes) = Credits::outbox(&books.state).last().unwrap();
    let route = Route { cluster: "c".to_owned(), from: 1, to, number };
    Batch::read(bytes, &route, &partition(to)).unwrap()
}

fn hear(books: &mut TestBooks, batch: &Batch) {
    assert!(books.credits.receive(&mut books.state, batch, 0, &mut Vec::new()).unwrap());
    books.credits.audit(&books.state).unwrap();
}

fn named(batch: &Batch) -> [Vec<&str>; 2] {
    let [mut pages, mut again]: [Vec<&str>; 2] = [
        batch.pages.iter().map(|page| page.url.as_str()).collect(),
        batch.again.iter().map(|(url, _)| url.as_str()).collect(),
    ];
    pages.sort_unstable();
    again.sort_unstable();
    [pages, again]
}

#[test]
fn everything_is_said_of_a_page_once_and_again_when_it_has_changed_or_is_forgotten() {
    let (mut one, mut two, own) = (books(1), books(2), home(1));
    let other = ["", "b", "c"].map(|path| format!("{}{path}", home(2)));
    let [first, second, deep] = other.each_ref().map(String::as_str);
    one.credits.add_seeds(&mut one.state, std::slice::from_ref(&own)).unwrap();
    let inner = format!("{own}inner");
    one.capture(&own, 200, 0, &[anchor(first), anchor(second), anchor(&inner)]);
    let batch = said(&mut one);
    assert_eq!(named(&batch), [vec![first, second], vec![]]);
    hear(&mut two, &batch);
    let before = two.cash(first);

    // Further cash is reported without the other fields.
    let facts = CrawlerFacts {
        links: vec![anchor(first), anchor(deep)],
        document: Some(DocumentKind::Html),
        via: Some(own.clone()),
        hops: "L".to_owned(),
        ..CrawlerFacts::default()
    };
    one.credit(&inner, CaptureKind::Response, 200, 0, facts);
    let batch = said(&mut one);
    assert_eq!((named(&batch), batch.pages[0].depth), ([vec![deep], vec![first]], 2));
    hear(&mut two, &batch);
    assert!(two.cash(first) > before && two.cash(first) == before + batch.again[0].1);

    // A page with a smaller depth is reported again; a rebuilt archive gets everything again.
    one.capture(&own, 200, 0, &[anchor(first), anchor(deep)]);
    let batch = said(&mut one);
    assert_eq!(named(&batch), [vec![deep], vec![first]]);
    assert_eq!((batch.pages[0].depth, batch.pages[0].via.as_deref()), (1, Some(own.as_str())));
    hear(&mut two, &batch);
    one.credits.name_again(&one.state, &[(2, 1)].into()).unwrap();
    assert_eq!(named(&said(&mut one)), [vec![first, second, deep], vec![]]);

    // Cash for a page that a rebuilt archive does not know is not lost.
    let mut again = books(2);
    let route = Route { cluster: "c".to_owned(), from: 1, to: 2, number: 1 };
    let unknown = vec![(first.to_owned(), batch.again[0].1)];
    hear(&mut again, &Batch { route, epoch: 1, pages: Vec::new(), again: unknown });
    assert!(!again.flags(first).has_any(page_flags::ACCOUNT));
}

#[test]
fn little_waits_for_more_unless_a_partition_is_hungry_and_a_restart_forgets_none_of_it() {
    let (mut one, own) = (books(1), home(1));
    one.credits.add_seeds(&mut one.state, std::slice::from_ref(&own)).unwrap();
    let batches = |one: &mut TestBooks, hungry: &[u16]| {
        one.credits.hold_back(&hungry.iter().copied().collect());
        one.credits.seal(&mut one.state).unwrap();
        one.credits.audit(&one.state).unwrap();
        one.credits.save(&mut one.state).unwrap();
        Credits::outbox(&one.state).count()
    };
    let links = |from: usize, count: usize| -> Vec<Link> {
        (from..from + count).map(|page| anchor(&format!("{}{page}", home(2)))).collect()
    };
    one.capture(&own, 200, 0, &links(0, 31));
    let leaves_for = |hungry: &[u16]| one.credits.leaves_for(&hungry.iter().copied().collect());
    assert_eq!([leaves_for(&[2, 3]), leaves_for(&[3]), leaves_for(&[])], [true, false, false]);
    assert_eq!((batches(&mut one, &[]), batches(&mut one, &[3])), (0, 0));
    assert_eq!(batches(&mut one, &[2]), 1, "the other one has nothing to do");
    one.capture(&own, 200, 0, &links(31, 31));
    assert_eq!(batches(&mut one, &[]), 1);
    one.credits = Credits::open(&one.state).unwrap();
    assert!(one.credits.has_leaving());
    one.capture(&own, 200, 0, &links(62, 1));
    assert_eq!(batches(&mut one, &[]), 2, "there are enough");
    one.credits = Credits::open(&one.state).unwrap();
    assert!(!one.credits.has_leaving());
    one.capture(&own, 200, 0, &links(63, 1));
    assert_eq!((batches(&mut one, &[]), said(&mut one).named()), (2, 1), "nothing is held back at an end");
}
