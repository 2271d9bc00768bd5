//! Queries over a small web held in memory.

use std::borrow::Cow;
use std::fmt::Write as _;

use archive_books::search::TextQuery;
use archive_storage::{HostId, SiteId, UrlId};
use archive_web::parse::DocumentKind;
use chrono::{DateTime, TimeZone, Utc};

use super::language::{PERIODS_MAX, Period};
use super::{
    Answer, Context, Error, FullText, Limits, PageRow, PageText, Plan, Rows, RowsError, Running, SiteRow,
    Value, Zone, score,
};

/// A page, its URL, title and text.
type Page = (PageRow, &'static str, Option<&'static str>, &'static str);

struct Web {
    pages: Vec<Page>,
    sites: Vec<SiteRow>,
    named: Vec<String>,
}

fn day(month: u32, day: u32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, month, day, 12, 0, 0).unwrap()
}

fn web() -> Web {
    let page = |id: u32, kind: DocumentKind, importance: f64, month: u32| PageRow {
        id: UrlId(id),
        host: HostId(id / 3),
        site: SiteId(id / 3),
        kind: Some(kind),
        status: Some(if id == 4 { 404 } else { 200 }),
        content_status: Some(200),
        importance,
        captures: id + 1,
        attempts: id + 1,
        versions: 1,
        first_seen: Some(day(1, 1)),
        last_seen: Some(day(month, 15)),
        last_answer: Some(day(month, 15)),
        last_attempt: Some(day(month, 15)),
        failing_since: None,
        changed: Some(day(month, 1)),
        depth: Some(id),
    };
    let unseen = PageRow {
        kind: None,
        status: None,
        content_status: None,
        captures: 0,
        attempts: 0,
        versions: 0,
        first_seen: None,
        last_seen: None,
        last_answer: None,
        last_attempt: None,
        changed: None,
        ..page(5, DocumentKind::Html, 0.5, 1)
    };
    let pages: Vec<Page> = vec![
        (
            page(0, DocumentKind::Html, 5.0, 6),
            "http://a.example/",
            Some("Open Access"),
            "open access journals",
        ),
        (page(1, DocumentKind::Xml, 2.5, 5), "http://a.example/data.xml", Some("Data"), "open data"),
        (page(2, DocumentKind::Feed, 0.1, 4), "http://a.example/archive/feed", None, "news of open access"),
        (page(3, DocumentKind::Html, 1.0, 3), "http://b.example/", Some("été"), "nothing"),
        (page(4, DocumentKind::Other, 1.0, 2), "http://b.example/Archive/x.pdf", Some("Lost"), ""),
        (unseen, "http://b.example/later", None, ""),
    ];
    let site = |id: u32, name: &str, importance: f64, pages: u64| SiteRow {
        id: SiteId(id),
        name: name.to_owned(),
        importance,
        pages,
        captures: pages * 2,
        html: 1,
        xml: 1,
        first_seen: Some(day(1, 1)),
        last_seen: None,
    };
    let sites = vec![site(0, "a.example", 1.5, 3), site(1, "b.example", 0.5, 2)];
    Web { pages, sites, named: vec!["pagerank".to_owned()] }
}

impl Rows for Web {
    fn pages(&self) -> Box<dyn Iterator<Item = Result<PageRow, RowsError>> + '_> {
        Box::new(self.pages.iter().map(|(row, ..)| Ok(*row)))
    }

    fn page(&self, id: UrlId) -> Result<Option<PageRow>, RowsError> {
        Ok(self.pages.get(id.index()).map(|(row, ..)| *row))
    }

    fn text(&self, page: &PageRow, text: PageText) -> Result<Option<Cow<'_, str>>, RowsError> {
        let (_, url, title, _) = self.pages[page.id.index()];
        Ok(match text {
            PageText::Url => Some(url.into()),
            PageText::Host if page.id.0 == 4 => Some("b.example:8080".into()),
            PageText::Host | PageText::Site => Some(url[7..16].into()),
            PageText::Title => title.map(Cow::Borrowed),
            PageText::Language => None,
            PageText::ContentType => page.kind.map(|kind| format!("text/{}", kind.name()).into()),
        })
    }

    fn sites(&self) -> Box<dyn Iterator<Item = Result<SiteRow, RowsError>> + '_> {
        Box::new(self.sites.iter().cloned().map(Ok))
    }

    fn page_columns(&self) -> &[String] {
        &self.named
    }

    fn page_number(&self, page: UrlId, _: usize) -> Result<Option<f64>, RowsError> {
        Ok((page.0 != 3).then(|| f64::from(page.0) / 10.0))
    }
}

/// Finds texts anywhere; its BM25 is the share of the page's text.
impl FullText for Web {
    fn hits(&self, query: &TextQuery) -> Result<Vec<(UrlId, f32)>, RowsError> {
        let found = self.pages.iter().rev().filter(|(.., text)| match query.all {
            true => query.texts.iter().all(|wanted| text.contains(wanted)),
            false => query.texts.iter().any(|wanted| text.contains(wanted)),
        });
        Ok(found.map(|(row, .., text)| (row.id, 10.0 / text.len() as f32)).collect())
    }
}

fn context(web: &Web) -> Context<'_> {
    Context { now: day(6, 20), zone: Zone::Utc, ..Context::of(web) }
}

fn ask(text: &str) -> Answer {
    let web = web();
    let plan = Plan::parse(text, &context(&web)).unwrap_or_else(|e| panic!("{text}\n{e}"));
    plan.run(&web, Some(&web)).unwrap()
}

/// The ids of the pages found, in order; taken from their depth, which equals the id here.
fn ids(text: &str) -> Vec<u64> {
    let rows = ask(&format!("{text} select depth")).rows;
    rows.iter().map(|row| if let Value::Integer(id) = row[0] { id } else { panic!("{row:?}") }).collect()
}

#[test]
fn filters_pages() {
    for (text, expected) in [
        ("page", &[0, 1, 3, 4, 2, 5][..]),
        ("importance > 1", &[0, 1]),
        ("importance >= 1", &[0, 1, 3, 4]),
        ("importance between 0.1 and 1", &[3, 4, 2, 5]),
        ("importance not between 0.5 and 5", &[2]),
        ("status = 404", &[4]),
        ("status != 404", &[0, 1, 3, 2, 5]),
        ("not status = 404 and captures > 0", &[0, 1, 3, 2]),
        ("status in (404, 500) or captures = 0", &[4, 5]),
        ("type = xml", &[1, 2]),
        ("type = feed", &[2]),
        ("type in (feed, other)", &[4, 2]),
        ("type is not html", &[1, 4, 2, 5]),
        ("type = \"text/feed\"", &[2]),
        ("type ~ \"text/*\" and type is empty", &[]),
        ("type is empty", &[5]),
        ("host = A.EXAMPLE", &[0, 1, 2]),
        ("host = b.example", &[3, 4, 5]),
        ("host = \"b.example:8080\"", &[4]),
        ("host != b.example", &[0, 1, 2]),
        ("host in (\"b.example:8080\", a.example)", &[0, 1, 4, 2]),
        ("host ~ \"b.exa?ple\"", &[3, 4, 5]),
        ("host = \"b.example:80\"", &[]),
        ("site in (\"b.example\")", &[3, 4, 5]),
        ("url ~ \"*/archive/*\"", &[2]),
        ("url !~ \"*/archive/*\" and host = \"a.example\"", &[0, 1]),
        ("url contains \"Archive\"", &[4]),
        ("title = \"OPEN access\"", &[0]),
        ("title = ÉTÉ", &[3]),
        ("title contains any (\"open\", data)", &[0, 1]),
        ("title contains all (open, access)", &[0]),
        ("title is empty", &[2, 5]),
        ("title = \"\"", &[2, 5]),
        ("title != \"\"", &[0, 1, 3, 4]),
        ("title in (\"\", data)", &[1, 2, 5]),
        ("title between a and f", &[1]),
        ("last seen >= 2026-05-15", &[0, 1]),
        ("last seen > 2026-05-15", &[0]),
        ("last seen = 2026-05-15", &[1]),
        ("last seen <= 2026-03-15", &[3, 4]),
        ("last seen < 2026-03", &[4]),
        ("last seen = 2026", &[0, 1, 3, 4, 2]),
        ("last seen > 30 days ago", &[0]),
        ("last seen between 2026-03 and 2026-05-15T12:00Z", &[1, 3, 2]),
        ("last seen in (2026-05, 2026-06)", &[0, 1]),
        ("last seen is empty", &[5]),
        ("changed < yesterday and changed > 1 month ago", &[0]),
        ("pagerank > 0.15", &[4, 2, 5]),
        ("pagerank is empty", &[3]),
    ] {
        assert_eq!(ids(text), expected, "{text}");
    }
}

#[test]
fn orders_and_cuts() {
    for (text, expected) in [
        ("page order by importance asc", &[2, 5, 3, 4, 1, 0][..]),
        ("page order by importance limit 3", &[0, 1, 3]),
        ("page order by importance limit 2 offset 1", &[1, 3]),
        ("page limit 0", &[]),
        ("page offset 9", &[]),
        ("page order by host desc, last seen", &[4, 3, 5, 0, 1, 2]),
        ("page order by title", &[1, 4, 0, 3, 2, 5]),
        ("page order by title desc", &[3, 0, 4, 1, 2, 5]),
        ("page order by pagerank desc", &[5, 4, 2, 1, 0, 3]),
        ("page order by last_seen asc limit 1", &[4]),
    ] {
        assert_eq!(ids(text), expected, "{text}");
    }
    let answer = ask("page importance > 0.2 limit 2");
    assert_eq!((answer.rows.len(), answer.matched), (2, Some(5)));
}

#[test]
fn searches_text() {
    for (text, expected) in [
        ("text contains \"open access\"", &[0, 2][..]),
        ("text contains open", &[1, 0, 2]),
        ("text contains open order by importance", &[0, 1, 2]),
        ("text contains open and type = xml", &[1, 2]),
        ("text contains any (journals, data)", &[1, 0]),
        ("text contains all (open, data)", &[1]),
        ("text contains open and not text contains access", &[1]),
        ("text contains open and text not contains data order by depth", &[2, 0]),
        ("text contains news or importance >= 5", &[2, 0]),
        ("text contains nothing or text contains data", &[1, 3]),
        ("text contains open and score > 2.5", &[1]),
        ("score < 1.5 and text contains open", &[0, 2]),
    ] {
        assert_eq!(ids(text), expected, "{text}");
    }
    let answer = ask("text contains \"open access\" select score, importance, url limit 1");
    let expected = score::combined(f64::from(10.0 / 20.0_f32), 5.0);
    assert_eq!(
        answer.rows,
        [vec![Value::Number(expected), Value::Number(5.0), Value::Text("http://a.example/".to_owned())]]
    );
}

/// The first rows of a search are the same as those of all that it finds.
#[test]
fn a_limit_keeps_the_best_of_a_search() {
    struct Many;
    impl Many {
        fn row(id: u32) -> PageRow {
            let importance = f64::from(id.wrapping_mul(2_654_435_761) % 1000) / 100.0;
            PageRow { id: UrlId(id), importance, depth: Some(id), ..web().pages[0].0 }
        }
    }
    impl Rows for Many {
        fn pages(&self) -> Box<dyn Iterator<Item = Result<PageRow, RowsError>> + '_> {
            Box::new((0..2000).map(|id| Ok(Self::row(id))))
        }
        fn page(&self, id: UrlId) -> Result<Option<PageRow>, RowsError> {
            Ok(Some(Self::row(id.0)))
        }
        fn text(&self, _: &PageRow, _: PageText) -> Result<Option<Cow<'_, str>>, RowsError> {
            Ok(None)
        }
        fn sites(&self) -> Box<dyn Iterator<Item = Result<SiteRow, RowsError>> + '_> {
            Box::new(std::iter::empty())
        }
    }
    impl FullText for Many {
        fn hits(&self, _: &TextQuery) -> Result<Vec<(UrlId, f32)>, RowsError> {
            Ok((0..2000).map(|id| (UrlId(id), 1.0 + (id * 7919 % 1999) as f32 / 50.0)).collect())
        }
    }
    let run = |text: &str| {
        let plan = Plan::parse(text, &Context::of(&Many)).unwrap();
        plan.run(&Many, Some(&Many)).unwrap()
    };
    let all = run("text contains x select depth, score");
    let first = run("text contains x select depth, score limit 10");
    assert_eq!(first.rows, all.rows[..10]);
    assert_eq!((first.matched, all.matched), (Some(2000), Some(2000)));
}

/// The search leaves out scores where only a few are shown; these are looked up afterwards.
#[test]
fn scores_are_looked_up_where_a_few_are_shown() {
    let rows = |text: &str| ask(&format!("text contains e {text}")).rows;
    let all = rows("order by url select url, score");
    assert!(all.len() > 2 && all.iter().all(|row| row[1].as_number().is_some_and(|score| score > 0.0)));
    assert_eq!(rows("order by url select url, score limit 2"), all[..2]);
    let tested = rows("and score + 0 > 0 order by url select url, score limit 2");
    assert_eq!(tested, all[..2]);
    let ordered = rows("order by score + 0, url select url, score limit 3");
    assert_eq!(ordered, rows("order by score, url select url, score")[..3]);
    let grouped = rows("select max(score), count limit 1");
    let most = all.iter().filter_map(|row| row[1].as_number()).fold(0.0, f64::max);
    assert_eq!(grouped[0][0].as_number(), Some(most));
}

#[test]
fn asks_for_sites() {
    let names = |text: &str| -> Vec<Value> {
        ask(&format!("{text} select site")).rows.into_iter().map(|mut row| row.remove(0)).collect()
    };
    let (a, b) = (Value::Text("a.example".to_owned()), Value::Text("b.example".to_owned()));
    assert_eq!(names("site"), [a.clone(), b.clone()]);
    assert_eq!(names("site order by importance asc"), [b.clone(), a.clone()]);
    assert_eq!(names("site importance > 1"), std::slice::from_ref(&a));
    assert_eq!(names("site site ~ \"b.*\" and last seen is empty"), [b]);
    assert_eq!(names("site pages >= 3 and other = 1"), [a]);
    let answer = ask("site limit 1");
    let headings: Vec<&str> = answer.headings.iter().map(|heading| heading.name.as_str()).collect();
    assert_eq!(headings, ["importance", "site", "pages", "captures", "html", "xml", "other", "last_seen"]);
    assert_eq!(serde_json::to_string(&answer.rows[0]).unwrap(), r#"[1.5,"a.example",3,6,1,1,1,null]"#);
}

#[test]
fn explains_what_does_not_fit() {
    let web = web();
    let mut report = String::new();
    for text in [
        "page importanse > 10",
        "page colour = red",
        "page lastseen > 2026",
        "page pagerang > 1",
        "site url = x",
        "page pages > 1",
        "site text contains x",
        "page importance > high",
        "page importance > \"10\"",
        "page importance > 2026-01-31",
        "page importance ~ \"1*\"",
        "page importance contains x",
        "page importance between 5 and 1",
        "page last seen > 30",
        "page last seen > soon",
        "page last seen > 3 days",
        "page importance > 3 days",
        "page last seen - first seen > 3",
        "page last seen + first seen > today",
        "page captures > titel",
        "page captures > title",
        "page title = versions * 2",
        "page year(title) = 2026",
        "page yaer(changed) = 2026",
        "page header(server) = x",
        "page header() = x",
        "site header(\"server\") = x",
        "page url matches \"(\"",
        "page url matches \"\\w{999}\"",
        "page title since 2026",
        "page importance matches \"1\"",
        "page size starts with \"1\"",
        "page refusal = robot",
        "capture kind = revisit",
        "capture site.url = x",
        "page page.url = x",
        "site host.url = x",
        "page pages > 3",
        "page time > 2026",
        "count > 3",
        "page sum(size) > 3",
        "page select url, count",
        "page select host, count",
        "page group by host order by url",
        "page select sum(title)",
        "page select sum(count)",
        "page select median(distinct size)",
        "site links to \"http://a.example/\"",
        "page links to \"http://\"",
        "page links to (link)",
        "page links to (page select count)",
        "page same content as (page as of 2026)",
        "host as of 2026",
        "page refusal = robots as of 2026",
        "page as of xml",
        "page linked from \"http://a.example/\" as of 2026",
        "page last seen ~ \"2026*\"",
        "page host = 3",
        "page title = 2026-01-31",
        "page title = 1.50",
        "page type = htlm",
        "page type = picture",
        "page type > xml",
        "page type = 3",
        "page part(url, \"(\") = x",
        "page label(host, com) = x",
        "page first_said(\"…\") is empty",
        "page depth > 1 as of 2026-01-01",
        "page host.failures > 1 as of 2026-01-01",
        "count pages per month",
        "page text contains \"…\"",
        "page text contains all (a, \"-\")",
        "page score > 1",
        "page not text contains x order by score",
        "page order by score",
        "count pages per month of title",
        "page order by importnce",
        "page select url, txt",
    ] {
        let mistake = Plan::parse(text, &context(&web)).expect_err(text);
        writeln!(report, "{mistake}\n").unwrap();
    }
    insta::assert_snapshot!(report);
}

/// Groups and calculations over the web of these tests; the expected answers were counted by hand.
#[test]
fn groups_and_calculates() {
    for (text, expected) in [
        ("page select count", "[[6]]"),
        ("count pages status = 404", "[[1]]"),
        ("count pages status = 500", "[[0]]"),
        (
            "page select sum(captures), avg(depth), min(title), max(last seen), median(importance)",
            "[[15,2.5,\"Data\",\"2026-06-15T12:00:00Z\",1]]",
        ),
        ("count pages group by host", "[[\"a.example\",3],[\"b.example\",2],[\"b.example:8080\",1]]"),
        (
            "count pages group by host having count < 3 order by host desc",
            "[[\"b.example:8080\",1],[\"b.example\",2]]",
        ),
        (
            "page select host as name, sum(captures) as total group by host order by total asc, name limit 1",
            "[[\"b.example\",4]]",
        ),
        (
            "page select type, count(distinct host) group by type having count(title) > 0 order by type",
            "[[\"html\",2],[\"other\",1],[\"xml\",1]]",
        ),
        ("page select count(title), count(*), count + 1", "[[4,6,7]]"),
        (
            "page select site.importance, count group by site.importance order by count(title) desc, site.importance",
            "[[1.5,3],[0.5,3]]",
        ),
        (
            "page captures > 0 group by month(last seen) select month(last seen), count order by month(last seen) asc limit 2",
            "[[2,1],[3,1]]",
        ),
        (
            "page depth = 4 select captures - versions, captures / versions, lower(title), length(url), last seen - changed",
            "[[4,5,\"lost\",30,1209600]]",
        ),
        (
            "page depth = 5 select captures / versions, year(changed), last seen - changed",
            "[[null,null,null]]",
        ),
        (
            "page last seen - changed > 1 week and year(changed) = 2026 and depth > 3 select date(changed)",
            "[[\"2026-02-01\"]]",
        ),
        ("page changed + 20 days >= last seen and captures > versions * 4 select depth", "[[4]]"),
        ("page now - last seen < 10 days select depth", "[[0]]"),
        ("page url matches \"^http://[^/]+/\\w+/\" select depth order by depth asc", "[[2],[4]]"),
        (
            "page title matches \"^open\" and url starts with \"http:\" and not url ends with \".pdf\" select depth",
            "[[0]]",
        ),
        (
            "page site.pages > 2 and depth < 2 select site, site.pages order by depth",
            "[[\"a.example\",3],[\"a.example\",3]]",
        ),
        ("page group by host having count > 99", "[]"),
    ] {
        assert_eq!(serde_json::to_string(&ask(text).rows).unwrap(), expected, "{text}");
    }
}

#[test]
fn groups_have_a_limit() {
    use super::language::aggregate::{Aggregate, Gather};
    use super::language::expr::PlannedExpr;
    use super::rows::Row;
    use super::rows::subject::World;
    use super::run::groups::Groups;

    let (web, hits) = (web(), super::rows::hits::Hits::default());
    let world = World::new(&web, &hits);
    let column = |column| PlannedExpr::Field(super::language::fields::FieldPath::from(column));
    let keys = [column(super::language::fields::Column::Url)];
    let aggregates =
        [Aggregate { gather: Gather::Median, of: Some(column(super::language::fields::Column::Depth)) }];
    let needed = |memory, disk| {
        let running = Running::new(Limits { memory, disk, ..Limits::USUAL }, true);
        let mut groups = Groups::new(&keys, &aggregates, &running);
        web.pages().try_for_each(|row| {
            groups.add(&world.subject(&Row::Page(row.unwrap())))?;
            groups.make_room()
        })?;
        assert_eq!(groups.finish()?.count(), 6);
        Ok::<_, Error>(running.seen().unwrap().spilled_bytes)
    };
    let memory = (0..10_000).find(|memory| needed(*memory, 0).is_ok()).unwrap();
    assert!(memory > 6 * 320, "{memory}");
    assert_eq!(needed(memory, 0).unwrap(), 0);
    let spilled = needed(memory - 1, u64::MAX).unwrap();
    assert_eq!(needed(memory - 1, spilled).unwrap(), spilled);
    let refused = needed(memory - 1, spilled - 1).unwrap_err();
    assert!(matches!(refused, Error::TooMuch { .. }), "{refused}");
}

#[test]
fn needs_an_index_to_search() {
    let web = web();
    let plan = Plan::parse("text contains open", &context(&web)).unwrap();
    assert!(matches!(plan.run(&web, None), Err(Error::NoIndex)));
    assert!(plan.searches_text());
}

#[test]
fn labels_and_series_have_limits() {
    let web = web();
    let is_plan = |text: &str| Plan::parse(text, &context(&web)).is_ok();
    assert!(is_plan("page label(host, 127) = x") && is_plan("page label(host, -127) = x"));
    assert!(!is_plan("page label(host, 128) = x") && !is_plan("page label(host, 1.5) = x"));
    let first = chrono::NaiveDate::from_ymd_opt(1990, 1, 1).unwrap();
    let last = |days: usize| Period::Day.of(first + chrono::Days::new(days as u64 - 1));
    let days = |number: usize| Period::Day.each("1990-01-01", &last(number));
    assert_eq!(days(PERIODS_MAX).unwrap().len(), PERIODS_MAX);
    assert_eq!(days(PERIODS_MAX + 1), None);
    assert_eq!(Period::Week.each("2020-W52", "2021-W01").unwrap(), ["2020-W52", "2020-W53", "2021-W01"]);
    assert_eq!(Period::Month.each("2025-12", "2026-01").unwrap(), ["2025-12", "2026-01"]);
}
