//! For every tree: what prints parses to the same tree. For every text: no panic, and lenient agrees with strict.

use chrono::{FixedOffset, NaiveDate, NaiveDateTime};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::{
    Ago, Check, Comparison, Condition, Direction, Field, Literal, Moment, OrderKey, Precision, Quantifier,
    Query, Spanned, Target, Test, Unit, parse, parse_lenient, tokens,
};

fn field() -> impl Strategy<Value = Spanned<Field>> {
    prop_oneof![
        Just("importance".to_owned()),
        Just("last seen".to_owned()),
        Just("site".to_owned()),
        Just("page".to_owned()),
        "[a-z_][a-z0-9_]{0,12}",
    ]
    .prop_filter("a reserved word is no field", |name| !tokens::is_reserved(name))
    .prop_map(|name| Field::new(&name).into())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", "\\PC{0,12}", "[\"'\\\\*?\\n\\t\\r a-]{0,8}", Just("order".to_owned())]
}

fn moment() -> impl Strategy<Value = Moment> {
    let precision = prop_oneof![
        Just(Precision::Month),
        Just(Precision::Day),
        Just(Precision::Minute),
        Just(Precision::Second)
    ];
    let zone = option::of((-1439..=1439i32).prop_map(|minutes| FixedOffset::east_opt(minutes * 60).unwrap()));
    (0..4_000_000i32, 0..86_400u32, precision, zone).prop_map(|(day, second, precision, zone)| {
        let date = NaiveDate::from_num_days_from_ce_opt(day % 3_652_000).unwrap();
        let date = date.max(NaiveDate::from_ymd_opt(1, 1, 1).unwrap());
        let (date, second, zone) = match precision {
            Precision::Month => (chrono::Datelike::with_day(&date, 1).unwrap(), 0, None),
            Precision::Day => (date, 0, None),
            Precision::Minute => (date, second / 60 * 60, zone),
            Precision::Second => (date, second, zone),
        };
        let start = NaiveDateTime::from(date) + chrono::TimeDelta::seconds(i64::from(second));
        Moment { start, precision, zone }
    })
}

fn literal() -> impl Strategy<Value = Spanned<Literal>> {
    let unit = prop_oneof![
        Just(Unit::Second),
        Just(Unit::Minute),
        Just(Unit::Hour),
        Just(Unit::Day),
        Just(Unit::Week),
        Just(Unit::Month),
        Just(Unit::Year)
    ];
    prop_oneof![
        prop::num::f64::NORMAL.prop_map(Literal::Number),
        (-1000..1000i32).prop_map(|n| Literal::Number(f64::from(n))),
        text().prop_map(Literal::Text),
        moment().prop_map(Literal::Moment),
        (0..1_000_000_000u32, unit).prop_map(|(amount, unit)| Literal::Ago(Ago { amount, unit })),
    ]
    .prop_map(Spanned::from)
}

fn check() -> impl Strategy<Value = Spanned<Check>> {
    let comparison = prop_oneof![
        Just(Comparison::Equal),
        Just(Comparison::NotEqual),
        Just(Comparison::Less),
        Just(Comparison::LessOrEqual),
        Just(Comparison::Greater),
        Just(Comparison::GreaterOrEqual)
    ];
    prop_oneof![
        4 => (comparison, literal()).prop_map(|(comparison, value)| Check::Compare(comparison, value)),
        1 => (any::<bool>(), text())
            .prop_map(|(negated, pattern)| Check::Glob { negated, pattern: pattern.into() }),
        1 => (any::<bool>(), vec(literal(), 1..4)).prop_map(|(negated, values)| Check::In { negated, values }),
        1 => (any::<bool>(), literal(), literal())
            .prop_map(|(negated, low, high)| Check::Between { negated, low, high }),
        1 => (any::<bool>(), any::<bool>(), vec(text().prop_map(Spanned::from), 1..4)).prop_map(
            |(negated, all, texts)| {
                let quantifier = if all || texts.len() == 1 { Quantifier::All } else { Quantifier::Any };
                Check::Contains { negated, quantifier, texts }
            }
        ),
        1 => any::<bool>().prop_map(|negated| Check::Empty { negated }),
    ]
    .prop_map(Spanned::from)
}

/// Trees as the parser gives them: flat chains of at least two, no double negation.
fn condition() -> impl Strategy<Value = Condition> {
    let test = (field(), check()).prop_map(|(field, check)| Condition::Test(Test { field, check }));
    test.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(|parts| {
                Condition::Any(
                    parts
                        .into_iter()
                        .flat_map(|part| match part {
                            Condition::Any(parts) => parts,
                            part => vec![part],
                        })
                        .collect(),
                )
            }),
            vec(inner.clone(), 2..4).prop_map(|parts| {
                Condition::All(
                    parts
                        .into_iter()
                        .flat_map(|part| match part {
                            Condition::All(parts) => parts,
                            part => vec![part],
                        })
                        .collect(),
                )
            }),
            inner.prop_map(|part| match part {
                Condition::Not(inner) => *inner,
                part => Condition::Not(Box::new(part)),
            }),
        ]
    })
}

fn query() -> impl Strategy<Value = Query> {
    let direction =
        prop_oneof![Just(None), Just(Some(Direction::Ascending)), Just(Some(Direction::Descending))];
    let key = (field(), direction).prop_map(|(field, direction)| OrderKey { field, direction });
    let count = || option::of((0..9_000_000_000_000_000u64).prop_map(Spanned::from));
    (
        prop_oneof![Just(Target::Pages), Just(Target::Sites)],
        option::of(condition()),
        vec(field(), 0..3),
        vec(key, 0..3),
        count(),
        count(),
    )
        .prop_map(|(target, condition, select, order, limit, offset)| Query {
            target,
            condition,
            select,
            order,
            limit,
            offset,
        })
}

proptest! {
    #[test]
    fn what_prints_parses_to_the_same_tree(query in query()) {
        let printed = query.to_string();
        let parsed = parse(&printed);
        prop_assert_eq!(parsed.as_ref(), Ok(&query), "{}", printed);
        prop_assert_eq!(parse_lenient(&printed), (query, Vec::new()));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,60}") {
        agree(&text)?;
    }

    #[test]
    fn no_broken_query_panics(query in query(), cut in any::<prop::sample::Index>(), junk in "[()\"',<>=~!a-z0-9 -]{0,4}") {
        let printed = query.to_string();
        let at = printed.char_indices().map(|(at, _)| at).nth(cut.index(printed.chars().count())).unwrap_or(0);
        agree(&format!("{}{junk}{}", &printed[..at], &printed[at..]))?;
        agree(&printed[..at])?;
    }
}

/// Strict and lenient see the same mistakes, whose places lie in the text.
fn agree(text: &str) -> Result<(), TestCaseError> {
    let (query, mistakes) = parse_lenient(text);
    match parse(text) {
        Ok(strict) => prop_assert_eq!((strict, Vec::new()), (query, mistakes)),
        Err(mistake) => {
            prop_assert!(!mistake.to_string().is_empty());
            prop_assert!(text.get(mistake.span()).is_some());
            if let Some(first) = mistakes.first() {
                prop_assert_eq!(first, &mistake);
            } else {
                prop_assert_eq!(query, Query::default());
            }
            prop_assert!(mistakes.iter().all(|mistake| text.get(mistake.span()).is_some()));
        }
    }
    Ok(())
}
