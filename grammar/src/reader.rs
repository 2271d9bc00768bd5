//! From pest's pairs to the tree, and the checks that a grammar cannot make: dates that exist, whole limits, clauses
//! given once.

use std::ops::Range;

use pest::iterators::Pair;

use crate::error::ParseError;
use crate::literal;
use crate::syntax::Rule;
use crate::tree::{
    Check, Comparison, Condition, Direction, Field, Literal, OrderKey, Quantifier, Query, Spanned, Target,
    Test,
};

/// Reads the pairs of one text.
pub(crate) struct Reader<'a> {
    pub(crate) text: &'a str,
}

type Parsed<T> = Result<T, ParseError>;

impl Reader<'_> {
    /// Reads the rule `query`.
    pub(crate) fn query(&self, pair: Pair<'_, Rule>) -> Parsed<Query> {
        let mut query = Query::default();
        for part in pair.into_inner() {
            let span = span(&part);
            match part.as_rule() {
                Rule::target => query.target = target(part),
                Rule::condition => query.condition = Some(self.condition(part)?),
                Rule::select_clause => {
                    self.once(query.select.is_empty(), &span, "select")?;
                    query.select = fields(part).collect();
                }
                Rule::order_clause => {
                    self.once(query.order.is_empty(), &span, "order by")?;
                    query.order = part.into_inner().filter_map(order_key).collect();
                }
                Rule::limit_clause => {
                    self.once(query.limit.is_none(), &span, "limit")?;
                    query.limit = self.count(part)?;
                }
                Rule::offset_clause => {
                    self.once(query.offset.is_none(), &span, "offset")?;
                    query.offset = self.count(part)?;
                }
                _ => {}
            }
        }
        Ok(query)
    }

    fn once(&self, first: bool, span: &Range<usize>, clause: &str) -> Parsed<()> {
        if first {
            return Ok(());
        }
        Err(ParseError::new(self.text, span.clone(), format!("`{clause}` is given twice")))
    }

    fn count(&self, pair: Pair<'_, Rule>) -> Parsed<Option<Spanned<u64>>> {
        let Some(number) = pair.into_inner().find(|part| part.as_rule() == Rule::number) else {
            return Ok(None);
        };
        let span = span(&number);
        let value = literal::number(self.text, number)?;
        // Above 2^53 a float no longer counts one by one; no archive has that many rows.
        if value < 0.0 || value.fract() != 0.0 || value > 9.0e15 {
            return Err(ParseError::new(
                self.text,
                span,
                "expected a whole number of rows, such as 20 or 10k",
            ));
        }
        Ok(Some(Spanned::new(value as u64, span)))
    }

    /// `or` of `and` of `not`; chains are flat however they were grouped.
    fn condition(&self, pair: Pair<'_, Rule>) -> Parsed<Condition> {
        let mut any = Vec::new();
        for conjunction in pair.into_inner().filter(|part| part.as_rule() == Rule::conjunction) {
            let mut all = Vec::new();
            for negation in conjunction.into_inner().filter(|part| part.as_rule() == Rule::negation) {
                match self.negation(negation)? {
                    Condition::All(parts) => all.extend(parts),
                    part => all.push(part),
                }
            }
            match one_or(all, Condition::All) {
                Condition::Any(parts) => any.extend(parts),
                part => any.push(part),
            }
        }
        Ok(one_or(any, Condition::Any))
    }

    fn negation(&self, pair: Pair<'_, Rule>) -> Parsed<Condition> {
        let mut negated = false;
        let mut condition = Condition::All(Vec::new());
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::NOT => negated = !negated,
                Rule::group => {
                    for inner in part.into_inner().filter(|inner| inner.as_rule() == Rule::condition) {
                        condition = self.condition(inner)?;
                    }
                }
                Rule::test => {
                    if let Some(test) = self.test(part)? {
                        condition = Condition::Test(test);
                    }
                }
                _ => {}
            }
        }
        Ok(match condition {
            condition if !negated => condition,
            Condition::Not(inner) => *inner,
            condition => Condition::Not(Box::new(condition)),
        })
    }

    fn test(&self, pair: Pair<'_, Rule>) -> Parsed<Option<Test>> {
        let mut named = None;
        let mut check = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::field => named = Some(field(&part)),
                Rule::check => {
                    let span = span(&part);
                    check = part.into_inner().next().map(|inner| self.check(inner)).transpose()?.flatten();
                    check = check.map(|value: Spanned<Check>| Spanned::new(value.value, span));
                }
                _ => {}
            }
        }
        Ok(named.zip(check).map(|(field, check)| Test { field, check }))
    }

    fn check(&self, pair: Pair<'_, Rule>) -> Parsed<Option<Spanned<Check>>> {
        let rule = pair.as_rule();
        let whole = span(&pair);
        let mut negated = false;
        let mut comparison = Comparison::Equal;
        let mut quantifier = Quantifier::All;
        let mut literals = Vec::new();
        let mut texts = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::NOT | Rule::UNLIKE => negated = true,
                Rule::ANY_OF => quantifier = Quantifier::Any,
                Rule::COMPARATOR => comparison = comparator(part.as_str()),
                Rule::string | Rule::bare_word if matches!(rule, Rule::glob | Rule::containment) => {
                    texts.push(Spanned::new(literal::text(self.text, &part)?, span(&part)));
                }
                Rule::string | Rule::bare_word | Rule::number | Rule::moment | Rule::ago => {
                    literals.push(Spanned::new(self.literal(part.clone())?, span(&part)));
                }
                _ => {}
            }
        }
        let mut literals_left = literals.into_iter();
        let mut next = || literals_left.next();
        let check = match rule {
            Rule::comparison => next().map(|value| Check::Compare(comparison, value)),
            Rule::identity if negated => next().map(|value| Check::Compare(Comparison::NotEqual, value)),
            Rule::identity => next().map(|value| Check::Compare(Comparison::Equal, value)),
            Rule::range => next().zip(next()).map(|(low, high)| Check::Between { negated, low, high }),
            Rule::membership => Some(Check::In { negated, values: literals_left.collect() }),
            Rule::glob => texts.pop().map(|pattern| Check::Glob { negated, pattern }),
            Rule::containment => {
                // One text is the same for `any` as for `all`: one form for both keeps the text canonical.
                let quantifier = if texts.len() == 1 { Quantifier::All } else { quantifier };
                Some(Check::Contains { negated, quantifier, texts })
            }
            Rule::emptiness => Some(Check::Empty { negated }),
            _ => None,
        };
        Ok(check.map(|check| Spanned::new(check, whole)))
    }

    fn literal(&self, pair: Pair<'_, Rule>) -> Parsed<Literal> {
        Ok(match pair.as_rule() {
            Rule::number => Literal::Number(literal::number(self.text, pair)?),
            Rule::moment => Literal::Moment(literal::moment(self.text, pair)?),
            Rule::ago => Literal::Ago(literal::ago(self.text, pair)?),
            _ => Literal::Text(literal::text(self.text, &pair)?),
        })
    }
}

/// `parts` joined by `join`, or the only one of them alone.
fn one_or(mut parts: Vec<Condition>, join: fn(Vec<Condition>) -> Condition) -> Condition {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
        None => join(parts),
    }
}

fn target(pair: Pair<'_, Rule>) -> Target {
    match pair.into_inner().next() {
        Some(word) if word.as_rule() == Rule::SITES => Target::Sites,
        _ => Target::Pages,
    }
}

fn comparator(sign: &str) -> Comparison {
    match sign {
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        "!=" | "<>" => Comparison::NotEqual,
        _ => Comparison::Equal,
    }
}

fn fields(pair: Pair<'_, Rule>) -> impl Iterator<Item = Spanned<Field>> {
    pair.into_inner().filter(|part| part.as_rule() == Rule::field).map(|part| field(&part))
}

fn field(pair: &Pair<'_, Rule>) -> Spanned<Field> {
    Spanned::new(Field::new(pair.as_str()), span(pair))
}

fn order_key(pair: Pair<'_, Rule>) -> Option<OrderKey> {
    let mut named = None;
    let mut direction = None;
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::field => named = Some(field(&part)),
            Rule::ASC => direction = Some(Direction::Ascending),
            Rule::DESC => direction = Some(Direction::Descending),
            _ => {}
        }
    }
    named.map(|field| OrderKey { field, direction })
}

fn span(pair: &Pair<'_, Rule>) -> Range<usize> {
    let span = pair.as_span();
    span.start()..span.start() + pair.as_str().trim_end().len()
}
