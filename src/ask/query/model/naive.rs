//! The evaluator without any cleverness.

use std::collections::{BTreeMap, BTreeSet};

use archive_grammar::{
    ArithmeticSign, Check, Comparison, Condition, Direction, Expr, Literal, Others, Query, QueryRows,
    Related, Relation, TextEnd,
};
use chrono::{TimeZone, Utc};

use super::super::{PageRow, Value};
use super::{Capture, Model, at, digest, is_content, row_of, url};

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
                let is_meant = |capture: &&&Capture| {
                    capture.kind != "not-modified" && (row.captures == 0 || is_content(capture))
                };
                let newest = self.captures.iter().rev().find(is_meant);
                match newest.filter(|capture| capture.kind != "failed") {
                    Some(capture) => Value::Integer(capture.size.into()),
                    None => Value::Empty,
                }
            }
            ("page.captures" | "captures", _) => Value::Integer(row.captures.into()),
            ("versions", _) => Value::Integer(row.versions.into()),
            ("depth" | "depth_today", _) => Value::Integer((self.page % 4) as u64),
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
            Expr::Arithmetic(left, ArithmeticSign::Minus, right) => {
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
                    Check::Affix { negated, end: TextEnd::End, text } => {
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
            let status = row_of(page, &captures).content_status?;
            let newest =
                captures.iter().rfind(|capture| capture.kind != "not-modified" && is_content(capture));
            newest.filter(|_| (200..300).contains(&status)).map(|newest| digest(newest))
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
                    // The model has no texts.
                    Relation::Near => false,
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
            QueryRows::Pages if cut.is_some() && captures.is_empty() => {}
            QueryRows::Pages => offer(None),
            _ => captures
                .iter()
                .filter(|capture| query.target == QueryRows::Captures || capture.bytes)
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
pub(super) fn answer(model: &Model, query: &Query) -> Vec<Vec<Value>> {
    let cut = query.as_of.as_ref().map(|time| first_day(&Expr::Literal(time.value.clone())).unwrap());
    let found = rows(model, query, cut);
    let of_group = |group: &[Seen<'_>], expr: &Expr| match expr {
        Expr::Field(field) if field.name() == "count" => Value::Integer(group.len() as u64),
        Expr::Call { function, distinct, argument, .. } if function != "month" => {
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

pub(super) fn as_float(value: Value) -> Value {
    value.as_number().map_or(value, Value::Number)
}
