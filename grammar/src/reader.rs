//! Converts pest's pairs to the tree, and makes the checks that a grammar cannot make: dates exist, limits are whole
//! numbers, clauses occur once.

use std::ops::Range;

use pest::iterators::Pair;

use crate::error::ParseError;
use crate::literal;
use crate::syntax::Rule;
use crate::tree::{
    ArithmeticSign, Check, Comparison, Condition, Direction, Expr, FieldName, Literal, OrderKey, Others,
    Path, Quantifier, Query, QueryRows, Related, Relation, ResultColumn, Sample, Spanned, Step, Test,
    TextEnd,
};

/// Reads the pairs of one text.
pub(crate) struct PairReader<'a> {
    pub(crate) text: &'a str,
}

type ParseResult<T> = Result<T, ParseError>;

impl PairReader<'_> {
    /// Reads the rule `query` or `subquery`.
    pub(crate) fn query(&self, pair: Pair<'_, Rule>) -> ParseResult<Query> {
        let mut query = Query::default();
        let (mut counted, mut totalled, mut series) = (false, false, None);
        for part in pair.into_inner() {
            let span = span(&part);
            match part.as_rule() {
                Rule::COUNTED => counted = true,
                Rule::totals => {
                    totalled = true;
                    query.select = self.each(part, Rule::selection, Self::selection)?;
                }
                Rule::target => query.target = target(part),
                Rule::condition => query.condition = Some(self.condition(part)?),
                Rule::select_clause => {
                    self.once(query.select.is_empty(), &span, "select")?;
                    query.select = self.each(part, Rule::selection, Self::selection)?;
                }
                Rule::group_clause => {
                    self.once(query.group.is_empty(), &span, "group by")?;
                    query.group = self.each(part, Rule::left, Self::sum)?;
                }
                Rule::per_clause => {
                    self.once(series.is_none(), &span, "per")?;
                    series = Some(part);
                }
                Rule::having_clause => {
                    self.once(query.having.is_none(), &span, "having")?;
                    query.having = self.each(part, Rule::condition, Self::condition)?.pop();
                }
                Rule::order_clause => {
                    self.once(query.order.is_empty(), &span, "order by")?;
                    query.order = self.each(part, Rule::order_key, Self::order_key)?;
                }
                Rule::limit_clause => {
                    self.once(query.limit.is_none(), &span, "limit")?;
                    query.limit = self.counts(part)?.into_iter().next();
                }
                Rule::offset_clause => {
                    self.once(query.offset.is_none(), &span, "offset")?;
                    query.offset = self.counts(part)?.into_iter().next();
                }
                Rule::sample_clause => {
                    self.once(query.sample.is_none(), &span, "sample")?;
                    let mut numbers = self.counts(part)?.into_iter();
                    query.sample = numbers.next().map(|rows| {
                        let seed = numbers.next().map_or(0, |seed| seed.value);
                        Sample { rows, seed }
                    });
                }
                Rule::as_of_clause => {
                    self.once(query.as_of.is_none(), &span, "as of")?;
                    for value in part.into_inner().filter(|value| value.as_rule() != Rule::AS_OF) {
                        query.as_of = Some(Spanned::new(self.literal(value.clone())?, self::span(&value)));
                    }
                }
                _ => {}
            }
        }
        if let Some(part) = series {
            query.group.insert(0, self.series(part, query.target)?);
            query.is_series = true;
        }
        // Groups are counted unless the query selects something else.
        if counted && query.select.is_empty() && query.group.is_empty() {
            let expr = Spanned::from(Expr::Field(FieldName::new("count")));
            query.select.push(ResultColumn { expr, name: None });
        }
        // Totals of groups come after the expressions that identify the groups.
        if totalled {
            let groups = query.group.iter().cloned().map(|expr| ResultColumn { expr, name: None });
            query.select.splice(0..0, groups);
        }
        Ok(query)
    }

    fn each<T>(
        &self,
        pair: Pair<'_, Rule>,
        rule: Rule,
        read: impl Fn(&Self, Pair<'_, Rule>) -> ParseResult<T>,
    ) -> ParseResult<Vec<T>> {
        pair.into_inner().filter(|part| part.as_rule() == rule).map(|part| read(self, part)).collect()
    }

    fn once(&self, first: bool, span: &Range<usize>, clause: &str) -> ParseResult<()> {
        if first {
            return Ok(());
        }
        Err(ParseError::new(self.text, span.clone(), format!("`{clause}` is given twice")))
    }

    /// The whole numbers in a clause.
    fn counts(&self, pair: Pair<'_, Rule>) -> ParseResult<Vec<Spanned<u64>>> {
        self.each(pair, Rule::number, |reader, number| {
            let span = span(&number);
            let value = literal::number(reader.text, number)?;
            // Above 2^53, floats cannot represent all whole numbers; no archive has that many rows.
            if value < 0.0 || value.fract() != 0.0 || value > 9.0e15 {
                let message = "expected a whole number of rows, such as 20 or 10k";
                return Err(ParseError::new(reader.text, span, message));
            }
            Ok(Spanned::new(value as u64, span))
        })
    }

    /// Reads `per month of first seen` as the key `by_month(first seen)`; captures have one time only.
    fn series(&self, pair: Pair<'_, Rule>, target: QueryRows) -> ParseResult<Spanned<Expr>> {
        let whole = span(&pair);
        let (mut function, mut time) = (String::new(), None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::period => function = format!("by_{}", part.as_str().to_ascii_lowercase()),
                Rule::left => time = Some(self.sum(part)?),
                _ => {}
            }
        }
        let is_of_captures = matches!(target, QueryRows::Captures | QueryRows::Versions);
        let usual =
            || is_of_captures.then(|| Spanned::new(Expr::Field(FieldName::new("time")), whole.clone()));
        let Some(time) = time.or_else(usual) else {
            let message = "say which time is meant";
            let suggestion = "as in `per month of first seen`; captures and versions have one time only";
            return Err(
                ParseError::new(self.text, whole, message).with_suggestion(Some(suggestion.to_owned()))
            );
        };
        let argument = Some(Box::new(time));
        Ok(Spanned::new(Expr::Call { function, distinct: false, argument, second: None }, whole))
    }

    /// Reads an `or` of `and` of `not`; chains are flattened however they were grouped.
    fn condition(&self, pair: Pair<'_, Rule>) -> ParseResult<Condition> {
        let mut any = Vec::new();
        for conjunction in pair
            .into_inner()
            .filter(|part| matches!(part.as_rule(), Rule::conjunction | Rule::path_conjunction))
        {
            let mut all = Vec::new();
            for negation in conjunction
                .into_inner()
                .filter(|part| matches!(part.as_rule(), Rule::negation | Rule::path_negation))
            {
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

    fn negation(&self, pair: Pair<'_, Rule>) -> ParseResult<Condition> {
        let mut negated = false;
        let mut condition = Condition::All(Vec::new());
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::NOT => negated = !negated,
                Rule::group | Rule::path_group => {
                    let is_inner = |inner: &Pair<'_, Rule>| {
                        matches!(inner.as_rule(), Rule::condition | Rule::path_condition)
                    };
                    for inner in part.into_inner().filter(is_inner) {
                        condition = self.condition(inner)?;
                    }
                }
                Rule::relation => {
                    let span = span(&part);
                    condition = Condition::Related(Spanned::new(self.relation(part)?, span));
                }
                Rule::test | Rule::path_test => {
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

    fn relation(&self, pair: Pair<'_, Rule>) -> ParseResult<Related> {
        let mut relation = Relation::LinksTo;
        let mut others = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::LINKED_FROM => relation = Relation::LinkedFrom,
                Rule::REDIRECTS_TO => relation = Relation::RedirectsTo,
                Rule::SAME_CONTENT => relation = Relation::SameContentAs,
                Rule::NEAR => relation = Relation::Near,
                Rule::subquery => others = Some(Others::Query(Box::new(self.query(part)?))),
                Rule::string | Rule::bare_word => {
                    others = Some(Others::Url(Spanned::new(literal::text(self.text, &part)?, span(&part))));
                }
                _ => {}
            }
        }
        Ok(others.map_or(Related::Duplicate, |others| Related::To(relation, others)))
    }

    fn test(&self, pair: Pair<'_, Rule>) -> ParseResult<Option<Test>> {
        let mut left = None;
        let mut check = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::left => left = Some(self.sum(part)?),
                Rule::path | Rule::relative => {
                    let span = span(&part);
                    let exists = Spanned::new(Check::Empty { negated: true }, span.clone());
                    check = Some(exists);
                    left = Some(Spanned::new(Expr::Path(self.path(part)?), span));
                }
                Rule::flag => {
                    let span = span(&part);
                    left = Some(Spanned::new(Expr::Field(FieldName::new(part.as_str())), span.clone()));
                    let yes = Spanned::new(Expr::Literal(Literal::Text("yes".to_owned())), span.clone());
                    check = Some(Spanned::new(Check::Compare(Comparison::Equal, yes), span));
                }
                Rule::check => {
                    let span = span(&part);
                    check = part.into_inner().next().map(|inner| self.check(inner)).transpose()?.flatten();
                    check = check.map(|value: Spanned<Check>| Spanned::new(value.value, span));
                }
                _ => {}
            }
        }
        Ok(left.zip(check).map(|(left, check)| Test { left, check }))
    }

    /// Reads a calculation in which words are fields.
    fn sum(&self, pair: Pair<'_, Rule>) -> ParseResult<Spanned<Expr>> {
        self.calculation(pair, false)
    }

    /// Reads a calculation: `left`, `value`, or one of their products. With `is_text`, a single word is a text.
    fn calculation(&self, pair: Pair<'_, Rule>, is_text: bool) -> ParseResult<Spanned<Expr>> {
        let whole = span(&pair);
        let parts: Vec<_> = pair.into_inner().collect();
        let is_text = is_text && parts.len() == 1;
        let mut result: Option<Spanned<Expr>> = None;
        let mut sign = ArithmeticSign::Plus;
        for part in parts {
            let operand = match part.as_rule() {
                Rule::PLUS => {
                    sign = ArithmeticSign::Plus;
                    continue;
                }
                Rule::MINUS => {
                    sign = ArithmeticSign::Minus;
                    continue;
                }
                Rule::TIMES => {
                    sign = ArithmeticSign::Times;
                    continue;
                }
                Rule::OVER => {
                    sign = ArithmeticSign::Over;
                    continue;
                }
                Rule::left_product | Rule::product | Rule::value | Rule::operand | Rule::nested => {
                    self.calculation(part, is_text)?
                }
                Rule::OPEN | Rule::CLOSE => continue,
                _ => self.operand(part, is_text)?,
            };
            result = Some(match result {
                None => operand,
                Some(left) => {
                    let span = left.span.start..operand.span.end;
                    Spanned::new(Expr::Arithmetic(Box::new(left), sign, Box::new(operand)), span)
                }
            });
        }
        // The grammar guarantees an operand.
        Ok(result.unwrap_or_else(|| Spanned::new(Expr::Literal(Literal::Text(String::new())), whole)))
    }

    fn operand(&self, pair: Pair<'_, Rule>, is_text: bool) -> ParseResult<Spanned<Expr>> {
        let span = span(&pair);
        let expr = match pair.as_rule() {
            Rule::field | Rule::two_words => Expr::Field(FieldName::new(pair.as_str())),
            Rule::path => Expr::Path(self.path(pair)?),
            Rule::bare_word if !is_text => Expr::Field(FieldName::new(pair.as_str())),
            Rule::call => {
                let (mut function, mut distinct, mut argument, mut second) =
                    (String::new(), false, None, None);
                for part in pair.into_inner() {
                    match part.as_rule() {
                        Rule::function => function = part.as_str().to_ascii_lowercase(),
                        Rule::DISTINCT => distinct = true,
                        Rule::value => argument = Some(Box::new(self.sum(part)?)),
                        Rule::second => second = self.second(part)?,
                        _ => {}
                    }
                }
                Expr::Call { function, distinct, argument, second }
            }
            _ => Expr::Literal(self.literal(pair)?),
        };
        Ok(Spanned::new(expr, span))
    }

    /// Reads the second argument of a call.
    fn second(&self, pair: Pair<'_, Rule>) -> ParseResult<Option<Box<Spanned<Literal>>>> {
        let Some(part) = pair.into_inner().next() else { return Ok(None) };
        let span = span(&part);
        let literal = match part.as_rule() {
            Rule::string => Literal::Text(literal::pattern(part.as_str())),
            _ => self.literal(part)?,
        };
        Ok(Some(Box::new(Spanned::new(literal, span))))
    }

    /// Reads the rule `path` or `relative`.
    fn path(&self, pair: Pair<'_, Rule>) -> ParseResult<Path> {
        let mut path = Path { is_relative: pair.as_rule() == Rule::relative, steps: Vec::new() };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::path_step => path.steps.push(self.step(part)?),
                Rule::path_name => path.steps.push(Step::to(part.as_str())),
                Rule::predicate => {
                    let predicate = self.predicate(part)?;
                    if let Some(step) = path.steps.last_mut() {
                        step.predicates.extend(predicate);
                    }
                }
                _ => {}
            }
        }
        Ok(path)
    }

    fn step(&self, pair: Pair<'_, Rule>) -> ParseResult<Step> {
        let mut step = Step::to("");
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::DEEP => step.is_deep = true,
                Rule::path_name => part.as_str().clone_into(&mut step.name),
                Rule::predicate => step.predicates.extend(self.predicate(part)?),
                _ => {}
            }
        }
        Ok(step)
    }

    fn predicate(&self, pair: Pair<'_, Rule>) -> ParseResult<Option<Condition>> {
        Ok(self.each(pair, Rule::path_condition, Self::condition)?.pop())
    }

    fn selection(&self, pair: Pair<'_, Rule>) -> ParseResult<ResultColumn> {
        let mut expr = Spanned::from(Expr::Field(FieldName::new("")));
        let mut name = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::left => expr = self.sum(part)?,
                Rule::alias => name = Some(Spanned::new(FieldName::new(part.as_str()), span(&part))),
                _ => {}
            }
        }
        Ok(ResultColumn { expr, name })
    }

    fn order_key(&self, pair: Pair<'_, Rule>) -> ParseResult<OrderKey> {
        let mut expr = Spanned::from(Expr::Field(FieldName::new("")));
        let mut direction = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::left => expr = self.sum(part)?,
                Rule::ASC => direction = Some(Direction::Ascending),
                Rule::DESC => direction = Some(Direction::Descending),
                _ => {}
            }
        }
        Ok(OrderKey { expr, direction })
    }

    fn check(&self, pair: Pair<'_, Rule>) -> ParseResult<Option<Spanned<Check>>> {
        let rule = pair.as_rule();
        let whole = span(&pair);
        let mut negated = false;
        let mut comparison = Comparison::Equal;
        let mut quantifier = Quantifier::All;
        let mut values = Vec::new();
        let mut literals = Vec::new();
        let mut texts = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::NOT | Rule::UNLIKE => negated = true,
                Rule::ANY_OF => quantifier = Quantifier::Any,
                Rule::COMPARATOR => comparison = comparator(part.as_str()),
                Rule::value => values.push(self.calculation(part, true)?),
                Rule::string if rule == Rule::pattern => {
                    texts.push(Spanned::new(literal::pattern(part.as_str()), span(&part)));
                }
                Rule::string | Rule::bare_word if !matches!(rule, Rule::membership | Rule::identity) => {
                    texts.push(Spanned::new(literal::text(self.text, &part)?, span(&part)));
                }
                Rule::string | Rule::bare_word | Rule::number | Rule::moment | Rule::ago | Rule::span => {
                    literals.push(Spanned::new(self.literal(part.clone())?, span(&part)));
                }
                _ => {}
            }
        }
        let mut values = values.into_iter();
        let mut next = || values.next();
        let check = match rule {
            Rule::comparison => next().map(|value| Check::Compare(comparison, value)),
            Rule::identity => literals.pop().map(|literal| {
                let comparison = if negated { Comparison::NotEqual } else { Comparison::Equal };
                Check::Compare(comparison, Spanned::new(Expr::Literal(literal.value), literal.span))
            }),
            Rule::nearness => literals.pop().map(|literal| {
                let span = Spanned::new(Expr::Literal(literal.value), literal.span);
                Check::Compare(Comparison::LessOrEqual, span)
            }),
            Rule::range => next().zip(next()).map(|(low, high)| Check::Between { negated, low, high }),
            Rule::since => next().map(|from| Check::Since { from, until: next() }),
            Rule::membership => Some(Check::In { negated, values: literals }),
            Rule::glob => texts.pop().map(|pattern| Check::Glob { negated, pattern }),
            Rule::pattern => texts.pop().map(|pattern| Check::Pattern { negated, pattern }),
            Rule::beginning => texts.pop().map(|text| Check::Affix { negated, end: TextEnd::Start, text }),
            Rule::ending => texts.pop().map(|text| Check::Affix { negated, end: TextEnd::End, text }),
            Rule::containment => {
                // With a single text, `any` and `all` mean the same: one form for both keeps the text canonical.
                let quantifier = if texts.len() == 1 { Quantifier::All } else { quantifier };
                Some(Check::Contains { negated, quantifier, texts })
            }
            Rule::emptiness => Some(Check::Empty { negated }),
            _ => None,
        };
        Ok(check.map(|check| Spanned::new(check, whole)))
    }

    fn literal(&self, pair: Pair<'_, Rule>) -> ParseResult<Literal> {
        Ok(match pair.as_rule() {
            Rule::number => Literal::Number(literal::number(self.text, pair)?),
            Rule::moment => Literal::Moment(literal::moment(self.text, pair)?),
            Rule::ago => Literal::Ago(literal::amount(self.text, pair)?),
            Rule::span => Literal::Span(literal::amount(self.text, pair)?),
            _ => Literal::Text(literal::text(self.text, &pair)?),
        })
    }
}

/// `parts` joined by `join`, or the only part itself.
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

impl Step {
    fn to(name: &str) -> Self {
        Self { is_deep: false, name: name.to_owned(), predicates: Vec::new() }
    }
}

fn target(pair: Pair<'_, Rule>) -> QueryRows {
    match pair.into_inner().next().map(|word| word.as_rule()) {
        Some(Rule::SITES) => QueryRows::Sites,
        Some(Rule::HOSTS) => QueryRows::Hosts,
        Some(Rule::VERSIONS) => QueryRows::Versions,
        Some(Rule::CAPTURES) => QueryRows::Captures,
        Some(Rule::LINKS) => QueryRows::Links,
        _ => QueryRows::Pages,
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

fn span(pair: &Pair<'_, Rule>) -> Range<usize> {
    let span = pair.as_span();
    span.start()..span.start() + pair.as_str().trim_end().len()
}
