//! The engine against an evaluator without any cleverness, over random archives and queries.
//!
//! The evaluator reads the syntax tree and knows of an archive only the captures of each page and the links: what a page
//! is at a time it finds by going through its captures from the first to the last, as a crawl made them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use archive_grammar::{
    Check, Comparison, Condition, Direction, End, Expr, Literal, Others, Query, Related, Relation, Sign,
    Target,
};
use archive_storage::{CaptureId, HostId, SiteId, UrlId};
use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{
    CaptureRow, Context, LinkRow, PageRow, PageText, PageType, Plan, Rows, RowsError, SiteRow, Value, Zone,
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
        importance: page as f64 / 4.0,
        captures: 0,
        versions: 0,
        first_seen: None,
        last_seen: None,
        changed: None,
        depth: Some(page as u32 % 4),
    };
    for capture in captures {
        row.captures += 1;
        row.first_seen = row.first_seen.or(Some(at(capture.day)));
        row.last_seen = Some(at(capture.day));
        row.kind = Some(PageType::Html);
        row.versions += u32::from(capture.bytes);
        if capture.content {
            row.changed = Some(at(capture.day));
        }
        if capture.kind != "not-modified" {
            row.status = Some(capture.status).filter(|status| *status > 0);
        }
    }
    row
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

/// What the evaluator sees of a row: a page, or one of its captures, at a time.
struct Seen<'a> {
    model: &'a Model,
    page: usize,
    captures: Vec<&'a Capture>,
    capture: Option<&'a Capture>,
}

impl Seen<'_> {
    fn row(&self) -> PageRow {
        row_of(self.page, &self.captures)
    }

    fn field(&self, name: &str) -> Value {
        let row = self.row();
        let status = |status: u16| if status > 0 { Value::Integer(status.into()) } else { Value::Empty };
        match (name, self.capture) {
            ("url", _) => Value::Text(url(self.page)),
            ("host", _) => Value::Text(format!("h{}.test", self.page % 3)),
            ("time", Some(capture)) => Value::Time(at(capture.day)),
            ("kind", Some(capture)) => Value::Text(capture.kind.to_owned()),
            ("status", Some(capture)) => status(capture.status),
            ("size", Some(capture)) if capture.kind == "failed" => Value::Empty,
            ("size", Some(capture)) => Value::Integer(capture.size.into()),
            ("change", Some(Capture { content: true, .. })) => Value::Text("content".to_owned()),
            ("change", Some(Capture { bytes: true, .. })) => Value::Text("bytes".to_owned()),
            ("change", Some(_)) => Value::Empty,
            ("size", None) => {
                let newest = self.captures.iter().rev().find(|capture| capture.kind != "not-modified");
                match newest.filter(|capture| capture.kind != "failed") {
                    Some(capture) => Value::Integer(capture.size.into()),
                    None => Value::Empty,
                }
            }
            ("page.captures" | "captures", _) => Value::Integer(row.captures.into()),
            ("versions", _) => Value::Integer(row.versions.into()),
            ("depth", _) => Value::Integer((self.page % 4) as u64),
            ("status", None) => row.status.map_or(Value::Empty, |status| Value::Integer(status.into())),
            ("first_seen", _) => row.first_seen.into(),
            ("last_seen", _) => row.last_seen.into(),
            ("changed", _) => row.changed.into(),
            other => panic!("{other:?}"),
        }
    }

    fn value(&self, expr: &Expr) -> Value {
        match expr {
            Expr::Field(field) => self.field(field.name()),
            Expr::Literal(Literal::Number(number)) => Value::Number(*number),
            Expr::Literal(Literal::Text(word)) => self.field(word),
            Expr::Arithmetic(left, Sign::Minus, right) => {
                match (self.value(&left.value), self.value(&right.value)) {
                    (Value::Integer(left), Value::Integer(right)) => {
                        Value::Number(left as f64 - right as f64)
                    }
                    _ => Value::Empty,
                }
            }
            Expr::Call { function, argument: Some(argument), .. } if function == "month" => {
                match self.value(&argument.value) {
                    Value::Time(time) => Value::Integer(chrono::Datelike::month(&time).into()),
                    _ => Value::Empty,
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn holds(&self, condition: &Condition, cut: Option<i64>) -> bool {
        match condition {
            Condition::All(parts) => parts.iter().all(|part| self.holds(part, cut)),
            Condition::Any(parts) => parts.iter().any(|part| self.holds(part, cut)),
            Condition::Not(part) => !self.holds(part, cut),
            Condition::Related(related) => self.is_related(&related.value, cut),
            Condition::Test(test) => {
                let left = self.value(&test.left.value);
                match &test.check.value {
                    Check::Empty { negated } => (left == Value::Empty) != *negated,
                    Check::Compare(Comparison::NotEqual, right) => {
                        !self.compares(&left, Comparison::Equal, &right.value)
                    }
                    Check::Compare(comparison, right) => self.compares(&left, *comparison, &right.value),
                    Check::Affix { negated, end: End::End, text } => {
                        matches!(&left, Value::Text(left) if left.ends_with(&text.value)) != *negated
                    }
                    Check::In { negated, values } => {
                        values.iter().any(|value| {
                            self.compares(&left, Comparison::Equal, &Expr::Literal(value.value.clone()))
                        }) != *negated
                    }
                    Check::Between { negated, low, high } => {
                        (self.compares(&left, Comparison::GreaterOrEqual, &low.value)
                            && self.compares(&left, Comparison::LessOrEqual, &high.value))
                            != *negated
                    }
                    Check::Since { from, until } => {
                        let day = |expr: &Expr| first_day(expr).unwrap();
                        let until = until.as_ref().map_or(i64::MAX, |until| day(&until.value));
                        // The first version is not a change.
                        let versions = self.captures.iter().filter(|capture| capture.content).skip(1);
                        let days: Vec<i64> = versions.map(|version| version.day).collect();
                        days.iter().any(|changed| (day(&from.value)..=until).contains(changed))
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn compares(&self, left: &Value, comparison: Comparison, right: &Expr) -> bool {
        let order = match (left, right) {
            (Value::Empty, _) => return false,
            (Value::Text(left), Expr::Literal(Literal::Text(right))) => left.cmp(right),
            (Value::Time(left), right) => {
                // A day is all of it.
                let Some(day) = first_day(right) else { return false };
                ((*left - at(0)).num_days()).cmp(&day)
            }
            (left, right) => {
                let right = match right {
                    Expr::Literal(Literal::Number(number)) => Some(*number),
                    right => self.value(right).as_number(),
                };
                match left.as_number().zip(right) {
                    Some((left, right)) => left.total_cmp(&right),
                    None => return false,
                }
            }
        };
        match comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }

    fn is_related(&self, related: &Related, cut: Option<i64>) -> bool {
        let links = |from: usize, to: usize, only: bool| {
            self.model
                .links
                .iter()
                .any(|(source, target, redirect)| (*source, *target) == (from, to) && (!only || *redirect))
        };
        let content = |page: usize| {
            let captures = upto(&self.model.pages[page], cut);
            let status = row_of(page, &captures).status?;
            let newest = captures.last().filter(|_| (200..300).contains(&status))?;
            (newest.kind != "failed").then(|| digest(newest))
        };
        match related {
            Related::Duplicate => (0..self.model.pages.len()).any(|other| {
                other != self.page && content(other).is_some() && content(other) == content(self.page)
            }),
            Related::To(relation, Others::Query(query)) => {
                let others = rows(self.model, query, cut);
                others.iter().any(|other| match relation {
                    Relation::LinksTo => links(self.page, other.page, false),
                    Relation::LinkedFrom => links(other.page, self.page, false),
                    Relation::RedirectsTo => links(self.page, other.page, true),
                    Relation::SameContentAs => {
                        content(self.page).is_some() && content(other.page) == content(self.page)
                    }
                })
            }
            Related::To(..) => panic!("{related:?}"),
        }
    }
}

/// The day that a moment names, counted from the first.
fn first_day(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(Literal::Moment(moment)) => {
            Some((moment.start.and_utc() - Utc.with_ymd_and_hms(2026, 1, 1, 0, 0, 0).unwrap()).num_days())
        }
        _ => None,
    }
}

/// The captures until a day.
fn upto(captures: &[Capture], cut: Option<i64>) -> Vec<&Capture> {
    captures.iter().filter(|capture| cut.is_none_or(|cut| capture.day <= cut)).collect()
}

/// The rows that fit, by rising id.
fn rows<'a>(model: &'a Model, query: &Query, cut: Option<i64>) -> Vec<Seen<'a>> {
    let mut found = Vec::new();
    for (page, captures) in model.pages.iter().enumerate() {
        let captures = upto(captures, cut);
        let mut offer = |capture: Option<&'a Capture>| {
            let seen = Seen { model, page, captures: captures.clone(), capture };
            if query.condition.as_ref().is_none_or(|condition| seen.holds(condition, cut)) {
                found.push(seen);
            }
        };
        match query.target {
            Target::Pages if cut.is_some() && captures.is_empty() => {}
            Target::Pages => offer(None),
            _ => captures
                .iter()
                .filter(|capture| query.target == Target::Captures || capture.bytes)
                .for_each(|capture| offer(Some(capture))),
        }
    }
    found
}

/// A number of a group.
fn gathered(group: &[Seen<'_>], function: &str, distinct: bool, of: Option<&Expr>) -> Value {
    let Some(of) = of else { return Value::Integer(group.len() as u64) };
    let values: Vec<Value> =
        group.iter().map(|row| row.value(of)).filter(|value| *value != Value::Empty).collect();
    let mut numbers: Vec<f64> = values.iter().filter_map(Value::as_number).collect();
    numbers.sort_by(f64::total_cmp);
    let of_numbers = |number: f64| if numbers.is_empty() { Value::Empty } else { Value::Number(number) };
    match function {
        "count" if distinct => Value::Integer(
            values.iter().map(|value| format!("{value:?}")).collect::<BTreeSet<_>>().len() as u64,
        ),
        "count" => Value::Integer(values.len() as u64),
        "sum" => of_numbers(numbers.iter().sum()),
        "avg" => of_numbers(numbers.iter().sum::<f64>() / numbers.len() as f64),
        "max" => values.into_iter().max_by(Value::compare).unwrap_or(Value::Empty),
        "median" if numbers.is_empty() => Value::Empty,
        "median" => {
            let half = numbers.len() / 2;
            let lower = if numbers.len().is_multiple_of(2) { numbers[half - 1] } else { numbers[half] };
            of_numbers((lower + numbers[half]) / 2.0)
        }
        other => panic!("{other}"),
    }
}

/// The answer without any cleverness, numbers as floats.
fn answer(model: &Model, query: &Query) -> Vec<Vec<Value>> {
    let cut = query.as_of.as_ref().map(|time| first_day(&Expr::Literal(time.value.clone())).unwrap());
    let found = rows(model, query, cut);
    let of_group = |group: &[Seen<'_>], expr: &Expr| match expr {
        Expr::Field(field) if field.name() == "count" => Value::Integer(group.len() as u64),
        Expr::Call { function, distinct, argument } if function != "month" => {
            gathered(group, function, *distinct, argument.as_ref().map(|argument| &argument.value))
        }
        expr => group[0].value(expr),
    };
    let mut answers: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
    let is_grouped =
        !query.group.is_empty() || query.select.iter().any(|column| column.expr.value.to_string() == "count");
    let select =
        |row: &dyn Fn(&Expr) -> Value| query.select.iter().map(|column| row(&column.expr.value)).collect();
    let keys = |row: &dyn Fn(&Expr) -> Value| query.order.iter().map(|key| row(&key.expr.value)).collect();
    if is_grouped {
        let mut groups: BTreeMap<String, Vec<Seen<'_>>> = BTreeMap::new();
        for row in found {
            let key: Vec<Value> = query.group.iter().map(|key| row.value(&key.value)).collect();
            groups.entry(format!("{key:?}")).or_default().push(row);
        }
        if query.group.is_empty() {
            groups.entry("[]".to_owned()).or_default();
        }
        for group in groups.values() {
            let row = |expr: &Expr| of_group(group, expr);
            answers.push((keys(&row), select(&row)));
        }
    } else {
        for seen in &found {
            let row = |expr: &Expr| seen.value(expr);
            answers.push((keys(&row), select(&row)));
        }
    }
    answers.sort_by(|(left, _), (right, _)| {
        let mut orders =
            left.iter().zip(right).zip(&query.order).map(|((left, right), key)| match (left, right) {
                (Value::Empty, Value::Empty) => std::cmp::Ordering::Equal,
                (Value::Empty, _) => std::cmp::Ordering::Greater,
                (_, Value::Empty) => std::cmp::Ordering::Less,
                _ if key.direction == Some(Direction::Ascending) => left.compare(right),
                _ => right.compare(left),
            });
        orders.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    let offset = query.offset.as_ref().map_or(0, |offset| offset.value as usize);
    let limit = query.limit.as_ref().map_or(usize::MAX, |limit| limit.value as usize);
    answers
        .into_iter()
        .skip(offset)
        .take(limit)
        .map(|(_, row)| row.into_iter().map(as_float).collect())
        .collect()
}

fn as_float(value: Value) -> Value {
    value.as_number().map_or(value, Value::Number)
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
            Model { pages, links }
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
            Just("depth"),
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
        let first = if is_page { "depth" } else { "status" };
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_engine_answers_as_the_evaluator(model in model(), text in query()) {
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
