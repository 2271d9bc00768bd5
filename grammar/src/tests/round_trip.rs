//! For every tree: its printed text parses to the same tree. For every text: no panic, and lenient agrees with strict.

use chrono::{FixedOffset, NaiveDate, NaiveDateTime};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::{
    Ago, ArithmeticSign, Check, Comparison, Condition, Direction, Expr, FieldName, Literal, Moment, OrderKey,
    Others, Precision, Quantifier, Query, QueryRows, Related, Relation, ResultColumn, Sample, Spanned, Test,
    TextEnd, Unit, parse, parse_lenient, tokens,
};

/// Words of the grammar that may be names.
const UNRESERVED: [&str; 12] = [
    "group", "having", "sample", "seed", "until", "as", "count", "empty", "links", "linked", "starts", "with",
];

/// Words of the grammar that may be texts, but not names.
const NO_NAMES: [&str; 5] = ["since", "matches", "regex", "to", "distinct"];

/// Whether a word is not a name.
fn is_reserved(word: &str) -> bool {
    tokens::is_reserved(word) || NO_NAMES.contains(&word)
}

fn field() -> impl Strategy<Value = Spanned<FieldName>> {
    prop_oneof![
        Just("importance".to_owned()),
        Just("last seen".to_owned()),
        Just("site".to_owned()),
        Just("page".to_owned()),
        prop::sample::select(UNRESERVED.to_vec()).prop_map(str::to_owned),
        "[a-z_][a-z0-9_]{0,12}",
        "[a-z_][a-z0-9_]{0,4}\\.[a-z_][a-z0-9_]{0,6}",
    ]
    .prop_filter("a reserved word is not a field", |name| !name.split('.').any(is_reserved))
    .prop_map(|name| FieldName::new(&name).into())
}

fn text() -> impl Strategy<Value = String> {
    let words = UNRESERVED.iter().chain(&NO_NAMES).copied().collect::<Vec<_>>();
    let word = prop::sample::select(words).prop_map(str::to_owned);
    prop_oneof![word, "[a-z]{1,8}", "\\PC{0,12}", "[\"'\\\\*?\\n\\t\\r a-]{0,8}", Just("order".to_owned())]
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
        (0..1_000_000_000u32, unit, any::<bool>()).prop_map(|(amount, unit, is_past)| {
            let amount = Ago { amount, unit };
            if is_past { Literal::Ago(amount) } else { Literal::Span(amount) }
        }),
    ]
    .prop_map(Spanned::from)
}

/// Operands of a calculation that is more than a word.
fn operand() -> impl Strategy<Value = Spanned<Expr>> {
    let simple = prop_oneof![
        field().prop_map(|field| Expr::Field(field.value)),
        literal().prop_map(|literal| Expr::Literal(literal.value)),
    ];
    simple
        .prop_map(Spanned::from)
        .prop_recursive(3, 8, 2, |inner| prop_oneof![arithmetic(inner.clone(), inner.clone()), call(inner),])
        .boxed()
}

fn arithmetic(
    left: impl Strategy<Value = Spanned<Expr>>,
    right: impl Strategy<Value = Spanned<Expr>>,
) -> impl Strategy<Value = Spanned<Expr>> {
    let sign = prop_oneof![
        Just(ArithmeticSign::Plus),
        Just(ArithmeticSign::Minus),
        Just(ArithmeticSign::Times),
        Just(ArithmeticSign::Over)
    ];
    (left, sign, right)
        .prop_map(|(left, sign, right)| Expr::Arithmetic(Box::new(left), sign, Box::new(right)).into())
}

fn call(argument: impl Strategy<Value = Spanned<Expr>>) -> impl Strategy<Value = Spanned<Expr>> {
    let name = "[a-z_]{1,6}".prop_filter("a reserved word calls nothing", |name| !is_reserved(name));
    let second = prop_oneof![
        r#"([a-z"' .*^$\[\]]|\\[\\a-z.*])*"#.prop_map(Literal::Text),
        (-1000..1000i32).prop_map(|n| Literal::Number(f64::from(n))),
    ];
    (name, any::<bool>(), option::of((argument, option::of(second)))).prop_map(
        |(function, distinct, arguments)| {
            let distinct = distinct && arguments.is_some();
            let (argument, second) = arguments.unzip();
            let second = second.flatten().map(|second| Box::new(Spanned::from(second)));
            Expr::Call { function, distinct, argument: argument.map(Box::new), second }.into()
        },
    )
}

/// A calculation at the start of a test, which starts with a field or call.
fn left() -> impl Strategy<Value = Spanned<Expr>> {
    let field = || field().prop_map(|field| Spanned::from(Expr::Field(field.value)));
    prop_oneof![
        8 => field(),
        1 => call(operand()),
        1 => arithmetic(field(), operand()),
        1 => arithmetic(call(operand()), operand()),
    ]
    .prop_map(|expr| binding_as_read(&expr))
    .boxed()
}

/// A calculation on the right, where a single field would be a text.
fn value() -> impl Strategy<Value = Spanned<Expr>> {
    prop_oneof![
        6 => literal().prop_map(|literal| Spanned::from(Expr::Literal(literal.value))),
        1 => arithmetic(operand(), operand()),
        1 => call(operand()),
    ]
    .boxed()
}

/// A calculation on the left may not start with a parenthesis: its signs bind as they are read there.
fn binding_as_read(expr: &Spanned<Expr>) -> Spanned<Expr> {
    match parse(&format!("{} = 1", expr.value)) {
        Ok(Query { condition: Some(Condition::Test(test)), .. }) => test.left,
        other => panic!("{}: {other:?}", expr.value),
    }
}

fn relation() -> impl Strategy<Value = Related> {
    let relation = prop_oneof![
        Just(Relation::LinksTo),
        Just(Relation::LinkedFrom),
        Just(Relation::RedirectsTo),
        Just(Relation::SameContentAs),
        Just(Relation::Near)
    ];
    let inner = option::of(field()).prop_map(|field| {
        let test = |field: Spanned<FieldName>| {
            let left = Spanned::from(Expr::Field(field.value));
            Condition::Test(Test { left, check: Check::Empty { negated: false }.into() })
        };
        Others::Query(Box::new(Query { condition: field.map(test), ..Query::default() }))
    });
    let others = prop_oneof![text().prop_map(|url| Others::Url(url.into())), inner];
    prop_oneof![
        (relation, others).prop_map(|(relation, others)| Related::To(relation, others)),
        Just(Related::Duplicate),
    ]
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
        4 => (comparison, value()).prop_map(|(comparison, value)| Check::Compare(comparison, value)),
        1 => (any::<bool>(), text())
            .prop_map(|(negated, pattern)| Check::Glob { negated, pattern: pattern.into() }),
        1 => (any::<bool>(), vec(literal(), 1..4)).prop_map(|(negated, values)| Check::In { negated, values }),
        1 => (any::<bool>(), value(), value())
            .prop_map(|(negated, low, high)| Check::Between { negated, low, high }),
        1 => (any::<bool>(), any::<bool>(), vec(text().prop_map(Spanned::from), 1..4)).prop_map(
            |(negated, all, texts)| {
                let quantifier = if all || texts.len() == 1 { Quantifier::All } else { Quantifier::Any };
                Check::Contains { negated, quantifier, texts }
            }
        ),
        1 => any::<bool>().prop_map(|negated| Check::Empty { negated }),
        1 => (any::<bool>(), any::<bool>(), text()).prop_map(|(negated, start, text)| {
            Check::Affix { negated, end: if start { TextEnd::Start } else { TextEnd::End }, text: text.into() }
        }),
        1 => (any::<bool>(), r#"([a-z"' .*^$\[\]]|\\[\\a-z.*])*"#).prop_map(|(negated, pattern)| {
            Check::Pattern { negated, pattern: pattern.into() }
        }),
        1 => (value(), option::of(value())).prop_map(|(from, until)| Check::Since { from, until }),
    ]
    .prop_map(Spanned::from)
    .boxed()
}

/// Trees as the parser produces them: flat chains of at least two parts, no double negation.
fn condition() -> impl Strategy<Value = Condition> {
    let test = prop_oneof![
        9 => (left(), check()).prop_map(|(left, check)| Condition::Test(Test { left, check })),
        1 => relation().prop_map(|related| Condition::Related(related.into())),
    ];
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
    .boxed()
}

/// The key of a series, as `per month of first seen` gives it.
fn of_period((function, field): (String, Spanned<FieldName>)) -> Spanned<Expr> {
    let argument = Some(Box::new(Spanned::from(Expr::Field(field.value))));
    Spanned::from(Expr::Call { function, distinct: false, argument, second: None })
}

fn query() -> impl Strategy<Value = Query> {
    let direction =
        prop_oneof![Just(None), Just(Some(Direction::Ascending)), Just(Some(Direction::Descending))];
    let key = (left(), direction).prop_map(|(expr, direction)| OrderKey { expr, direction });
    let selection = (left(), option::of(field())).prop_map(|(expr, name)| ResultColumn {
        expr,
        name: name.filter(|name| !name.value.name().contains('.')),
    });
    let count = || option::of((0..9_000_000_000_000_000u64).prop_map(Spanned::from));
    let target = prop_oneof![
        Just(QueryRows::Pages),
        Just(QueryRows::Sites),
        Just(QueryRows::Hosts),
        Just(QueryRows::Captures),
        Just(QueryRows::Versions),
        Just(QueryRows::Links)
    ];
    let sample =
        option::of((0..1000u64, 0..1000u64).prop_map(|(rows, seed)| Sample { rows: rows.into(), seed }));
    let series = option::of(("by_(day|week|month|year)", field()));
    (
        (target, option::of(condition()), vec(selection, 0..3), series),
        (vec(left(), 0..3), option::of(condition()), vec(key, 0..3)),
        (count(), count(), sample, option::of(literal())),
    )
        .prop_map(
            |(
                (target, condition, select, series),
                (group, having, order),
                (limit, offset, sample, as_of),
            )| Query {
                target,
                condition,
                select,
                is_series: series.is_some(),
                group: series.into_iter().map(of_period).chain(group).collect(),
                having,
                order,
                limit,
                offset,
                sample,
                as_of,
            },
        )
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

/// Checks that strict and lenient see the same mistakes, whose spans lie in the text.
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
