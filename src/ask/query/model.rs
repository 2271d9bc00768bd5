//! The engine against an evaluator without any cleverness, over random archives and queries.
//!
//! The evaluator reads the syntax tree and knows of an archive only the captures of each page and the links: what a page
//! is at a time it finds by going through its captures from the first to the last, as a crawl made them.

mod naive;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use archive_storage::{CaptureId, HostId, SiteId, UrlId};
use archive_web::parse::DocumentKind;
use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use proptest::collection::vec;
use proptest::prelude::*;

use self::naive::{answer, as_float};
use super::{
    CaptureRow, Context, Error, Limits, LinkRow, MEMORY_USUAL, PageRow, PageText, Plan, Rows, RowsError,
    Running, SiteRow, Value, Zone,
};

#[derive(Clone, Debug)]
struct Capture {
    day: i64,
    kind: &'static str,
    status: u16,
    size: u32,
    content: bool,
    bytes: bool,
}

#[derive(Clone, Debug)]
struct Model {
    pages: Vec<Vec<Capture>>,
    links: Vec<(usize, usize, bool)>,
    running: Arc<Running>,
}

fn at(day: i64) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 1, 1, 12, 0, 0).unwrap() + TimeDelta::days(day)
}

fn url(page: usize) -> String {
    format!("http://h{}.test/{page}", page % 3)
}

/// What is known of a page after some of its captures.
fn row_of(page: usize, captures: &[&Capture]) -> PageRow {
    let mut row = PageRow {
        id: UrlId(page as u32),
        host: HostId(page as u32 % 3),
        site: SiteId(0),
        kind: None,
        status: None,
        content_status: None,
        importance: page as f64 / 4.0,
        captures: 0,
        attempts: 0,
        versions: 0,
        first_seen: None,
        last_seen: None,
        last_answer: None,
        last_attempt: None,
        failing_since: None,
        changed: None,
        depth: Some(page as u32 % 4),
    };
    for capture in captures {
        let time = Some(at(capture.day));
        row.attempts += 1;
        row.last_attempt = time;
        row.versions += u32::from(capture.bytes);
        if capture.content {
            row.changed = time;
        }
        if capture.kind != "failed" {
            row.last_answer = time;
            row.status = match capture.kind {
                "not-modified" => row.content_status,
                _ => Some(capture.status).filter(|status| *status > 0),
            };
        }
        if !is_content(capture) {
            row.failing_since = row.failing_since.or(time);
            continue;
        }
        row.captures += 1;
        row.first_seen = row.first_seen.or(time);
        (row.last_seen, row.failing_since) = (time, None);
        row.kind = Some(DocumentKind::Html);
        if capture.kind != "not-modified" {
            row.content_status = row.status;
        }
    }
    row
}

/// Whether a capture shows what stood at its URL.
fn is_content(capture: &Capture) -> bool {
    capture.kind != "failed" && capture.status < 400
}

fn digest(capture: &Capture) -> [u8; 16] {
    if capture.kind == "failed" { [0; 16] } else { [1 + (capture.size % 5) as u8; 16] }
}

impl Model {
    fn capture(&self, page: usize, index: usize) -> CaptureRow {
        let capture = &self.pages[page][index];
        let has_answer = capture.kind != "failed";
        CaptureRow {
            id: CaptureId((page * 100 + index) as u32),
            page: UrlId(page as u32),
            time: at(capture.day),
            is_content: is_content(capture),
            kind: capture.kind,
            status: Some(capture.status).filter(|status| *status > 0),
            content_type: if has_answer { "text/html".to_owned() } else { String::new() },
            size: has_answer.then_some(capture.size),
            stored: capture.size / 2,
            digest: digest(capture),
            content_changed: capture.content,
            bytes_changed: capture.bytes,
        }
    }
}

impl Rows for Model {
    fn running(&self) -> &Running {
        &self.running
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Result<PageRow, RowsError>> + '_> {
        let pages = self.pages.iter().enumerate();
        Box::new(pages.map(|(page, captures)| Ok(row_of(page, &captures.iter().collect::<Vec<_>>()))))
    }

    fn page(&self, id: UrlId) -> Result<Option<PageRow>, RowsError> {
        let captures = self.pages.get(id.index());
        Ok(captures.map(|captures| row_of(id.index(), &captures.iter().collect::<Vec<_>>())))
    }

    fn text(&self, page: &PageRow, text: PageText) -> Result<Option<Cow<'_, str>>, RowsError> {
        Ok(match text {
            PageText::Url => Some(url(page.id.index()).into()),
            PageText::Host => Some(format!("h{}.test", page.host.0).into()),
            PageText::ContentType => {
                let newest = self.pages[page.id.index()].last();
                newest.filter(|newest| newest.kind != "failed").map(|_| "text/html".into())
            }
            _ => None,
        })
    }

    fn sites(&self) -> Box<dyn Iterator<Item = Result<SiteRow, RowsError>> + '_> {
        Box::new(std::iter::empty())
    }

    fn captures(&self) -> Box<dyn Iterator<Item = Result<CaptureRow, RowsError>> + '_> {
        let pages = self.pages.iter().enumerate();
        Box::new(pages.flat_map(move |(page, captures)| {
            (0..captures.len()).map(move |index| Ok(self.capture(page, index)))
        }))
    }

    fn history(
        &self,
        page: UrlId,
    ) -> Result<Box<dyn Iterator<Item = Result<CaptureRow, RowsError>> + '_>, RowsError> {
        let page = page.index();
        Ok(Box::new((0..self.pages[page].len()).rev().map(move |index| Ok(self.capture(page, index)))))
    }

    fn links(&self, visit: &mut dyn FnMut(LinkRow) -> Result<(), RowsError>) -> Result<(), RowsError> {
        for (id, (source, target, is_redirect)) in self.links.iter().enumerate() {
            visit(LinkRow {
                id: id as u64,
                source: UrlId(*source as u32),
                target: UrlId(*target as u32),
                hop: if *is_redirect { 'R' } else { 'L' },
                context: "a/@href",
                nofollow: false,
                template: false,
            })?;
        }
        Ok(())
    }
}

fn model() -> impl Strategy<Value = Model> {
    let capture = (1..9i64, 0..8u8, 0..40u32, any::<bool>(), any::<bool>());
    let pages = vec(vec(capture, 0..5), 1..7).prop_map(|pages| {
        pages.into_iter().map(|captures| {
            let mut day = 0;
            let mut has_version = false;
            let captures = captures.into_iter().map(|(later, kind, size, content, bytes)| {
                day += later;
                let (kind, status) = match kind {
                    0 => ("failed", 0),
                    1 if has_version => ("not-modified", 304),
                    2 if has_version => ("identical", 200),
                    3 => ("response", 404),
                    _ => ("response", 200),
                };
                let is_version = (kind, status) == ("response", 200);
                // The first version has both kinds of change, and what changes its content changes its bytes.
                let content = is_version && (content || !has_version);
                let bytes = content || is_version && bytes;
                has_version |= is_version;
                Capture { day, kind, status, size, content, bytes }
            });
            captures.collect::<Vec<_>>()
        })
    });
    (pages.prop_map(Iterator::collect::<Vec<_>>), vec((0..7usize, 0..7usize, any::<bool>()), 0..8)).prop_map(
        |(pages, mut links)| {
            links.retain(|(source, target, _)| *source < pages.len() && *target < pages.len());
            Model { pages, links, running: Arc::default() }
        },
    )
}

fn comparison() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("="), Just("!="), Just("<"), Just("<="), Just(">"), Just(">=")]
}

fn day() -> impl Strategy<Value = String> {
    (0..30i64).prop_map(|day| at(day).format("%Y-%m-%d").to_string())
}

/// A condition; on pages those that are of pages alone, and with `links` those that need links.
fn condition(is_page: bool, links: bool) -> BoxedStrategy<String> {
    let number = if is_page {
        prop_oneof![
            Just("captures"),
            Just("versions"),
            Just(if links { "depth" } else { "depth_today" }),
            Just("status"),
            Just("size"),
            Just("captures - versions")
        ]
        .boxed()
    } else {
        prop_oneof![Just("status"), Just("size"), Just("page.captures")].boxed()
    };
    let time = if is_page {
        prop_oneof![Just("first seen"), Just("last seen"), Just("changed")].boxed()
    } else {
        Just("time").boxed()
    };
    let any = prop_oneof![
        (number.clone(), comparison(), prop_oneof![0..5u32, Just(200), Just(404)])
            .prop_map(|(field, sign, number)| format!("{field} {sign} {number}")),
        (number.clone(), 0..20u32, 0..30u32)
            .prop_map(|(field, low, more)| format!("{field} between {low} and {}", low + more)),
        number.prop_map(|field| if field.contains(' ') {
            "status in (200, 404)".to_owned()
        } else {
            format!("{field} is empty")
        }),
        (time.clone(), comparison(), day()).prop_map(|(field, sign, day)| format!("{field} {sign} {day}")),
        (0..7u32).prop_map(|page| format!("url ends with \"/{page}\"")),
        (0..3u32).prop_map(|host| format!("host = \"h{host}.test\"")),
    ];
    let special = if is_page {
        let inner = (0..3u32).prop_map(|captures| format!("page captures > {captures}"));
        let relation = if links {
            prop_oneof![Just("links to"), Just("linked from"), Just("redirects to"), Just("same content as")]
                .boxed()
        } else {
            Just("same content as").boxed()
        };
        prop_oneof![
            Just("captures > versions".to_owned()),
            day().prop_map(|from| format!("changed since {from}")),
            (day(), day()).prop_map(|(from, until)| format!("changed since {from} until {until}")),
            Just("duplicates".to_owned()),
            (relation, inner).prop_map(|(relation, inner)| format!("{relation} ({inner})")),
        ]
        .boxed()
    } else {
        prop_oneof![
            Just("kind = response".to_owned()),
            Just("kind in (failed, identical)".to_owned()),
            Just("change is empty".to_owned())
        ]
        .boxed()
    };
    prop_oneof![3 => any, 1 => special]
        .prop_recursive(3, 8, 3, |inner| {
            prop_oneof![
                vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" and "))),
                vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" or "))),
                inner.prop_map(|part| format!("not ({part})")),
            ]
        })
        .boxed()
}

fn query() -> impl Strategy<Value = String> {
    let target = prop_oneof![Just("page"), Just("capture"), Just("version")];
    (target, any::<bool>()).prop_flat_map(|(target, is_past)| {
        let is_page = target == "page";
        let first = match (is_page, is_past) {
            (true, true) => "depth_today",
            (true, false) => "depth",
            (false, _) => "status",
        };
        let shape = prop_oneof![
            Just(format!("select url, {first}, size order by {first} desc, size asc, url desc limit 4")),
            Just(format!("select url, {first} order by {first} asc, url asc limit 5 offset 1")),
            Just("select count, sum(size), median(size), count(distinct host), avg(size)".to_owned()),
            Just(
                "select host, count, max(size), count(size) group by host order by count desc, host asc"
                    .to_owned()
            ),
            Just(format!(
                "select host, {first}, count group by host, {first} order by {first} asc, host asc"
            )),
            Just(match is_page {
                true => "select month(changed), count group by month(changed) order by month(changed) asc"
                    .to_owned(),
                false => "select kind, count, sum(size) group by kind order by kind asc".to_owned(),
            }),
        ];
        let end = if is_past {
            day().prop_map(|day| format!(" as of {day}")).boxed()
        } else {
            Just(String::new()).boxed()
        };
        (proptest::option::of(condition(is_page, !is_past)), shape, end).prop_map(
            move |(condition, shape, end)| format!("{target} {} {shape}{end}", condition.unwrap_or_default()),
        )
    })
}

/// As usual, or so little that rows and groups wait in temporary files.
fn memory() -> impl Strategy<Value = usize> {
    prop_oneof![Just(MEMORY_USUAL), 0..4000usize]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_engine_answers_as_the_evaluator(mut model in model(), text in query(), memory in memory()) {
        model.running = Arc::new(Running::new(Limits { memory, ..Limits::USUAL }, false));
        let query = archive_grammar::parse(&text).unwrap_or_else(|mistake| panic!("{mistake}"));
        let context = Context { now: at(100), zone: Zone::Utc, ..Context::of(&model) };
        let plan = Plan::new(&query, &text, &context).unwrap_or_else(|mistake| panic!("{mistake}"));
        let found = plan.run(&model, None).unwrap();
        let found: Vec<Vec<Value>> =
            found.rows.into_iter().map(|row| row.into_iter().map(as_float).collect()).collect();
        prop_assert_eq!(found, answer(&model, &query), "{}", text);
    }

    #[test]
    fn a_sample_is_of_what_fits(model in model(), condition in condition(true, true), rows in 0..5usize, seed in 0..9u32) {
        let run = |text: &str| {
            let plan = Plan::parse(text, &Context { zone: Zone::Utc, ..Context::of(&model) }).unwrap();
            plan.run(&model, None).unwrap().rows
        };
        let all = run(&format!("page {condition} select url order by url"));
        let text = format!("page {condition} select url order by url sample {rows} seed {seed}");
        let drawn = run(&text);
        prop_assert_eq!(drawn.len(), rows.min(all.len()));
        prop_assert!(drawn.iter().all(|row| all.contains(row)));
        prop_assert!(drawn.is_sorted_by(|left, right| left[0].compare(&right[0]).is_lt()));
        prop_assert_eq!(run(&text), drawn);
    }
}

fn linked(links: usize, limits: Limits, explained: bool) -> Model {
    let links = (0..links).map(|link| (link % 2, 1 - link % 2, false)).collect();
    Model { pages: vec![Vec::new(); 2], links, running: Arc::new(Running::new(limits, explained)) }
}

fn plan(model: &Model, text: &str) -> Plan {
    Plan::parse(text, &Context { now: at(100), zone: Zone::Utc, ..Context::of(model) }).unwrap()
}

/// Rows in the order of the links are passed on as they come: those before the end of the time are there.
#[test]
fn rows_that_came_in_time_stay() {
    let model = linked(1000, Limits::USUAL.within(Duration::from_millis(60)), false);
    let mut rows = 0;
    let late = plan(&model, "link select source, target")
        .run_each(&model, None, &mut |_| {
            rows += 1;
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        })
        .unwrap_err();
    assert!(matches!(&late, Error::Late(_)) && late.to_string().contains("timed out after 0.06 s"), "{late}");
    assert!((1..1000).contains(&rows), "{rows}");
    for text in ["link order by target", "count links group by source", "page links to (page depth = 0)"] {
        let model = linked(1000, Limits::USUAL.within(Duration::ZERO), false);
        assert!(matches!(plan(&model, text).run(&model, None), Err(Error::Late(_))), "{text}");
    }
}

#[test]
fn an_explanation_counts_what_was_seen() {
    let model = linked(1000, Limits { memory: 2000, ..Limits::USUAL }, true);
    let text = "link source.depth = 0 and target.depth > 0 order by target limit 900 offset 1";
    assert_eq!(plan(&model, text).run(&model, None).unwrap().rows.len(), 499);
    let seen = model.running.seen().unwrap();
    let steps: Vec<_> = seen.steps.iter().map(|step| (step.step, step.rows_in, step.rows_out)).collect();
    assert_eq!(
        steps,
        [
            ("start", None, 1000),
            ("check", Some(1000), 500),
            ("check", Some(500), 500),
            ("order", Some(500), 499)
        ]
    );
    assert_eq!(seen.steps[1].what, "source.depth = 0");
    assert!(seen.spilled_bytes > 10_000, "{seen:?}");

    let model = linked(10, Limits::USUAL, true);
    plan(&model, "page linked from (page depth = 0) select depth, count group by depth having count > 0")
        .run(&model, None)
        .unwrap();
    let seen = model.running.seen().unwrap();
    let steps: Vec<_> = seen.steps.iter().map(|step| (step.level, step.step, step.rows_out)).collect();
    let expected = [
        (1, "start", 2),
        (1, "check", 1),
        (0, "search", 1),
        (0, "start", 1),
        (0, "check", 1),
        (0, "group", 1),
        (0, "having", 1),
        (0, "order", 1),
    ];
    assert_eq!(steps, expected);
    assert_eq!(seen.spilled_bytes, 0);
}
