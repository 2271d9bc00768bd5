//! Type checking of expressions: which fields exist, and which types fit together.

use std::ops::Range;

use archive_books::ledger::canonical_of;
use archive_books::search::Phrase;
use archive_grammar::{ArithmeticSign, Expr as Written, Literal, ParseError, QueryRows, Spanned, nearest};
use regex::{Regex, RegexBuilder};
use url::Url;

use crate::query::language::aggregate::{Aggregate, Gather};
use crate::query::language::checks::Checker;
use crate::query::language::expr::{Function, Pattern, PlannedExpr};
use crate::query::language::fields::{Column, ColumnKind, FieldPath, TODAY, Via, shown};
use crate::query::language::names::FieldNames;
use crate::query::language::plan::Context;
use crate::query::language::value::Value;
use crate::query::language::{help, times};

/// Maximum size of a compiled regular expression in bytes.
pub(crate) const REGEX_BYTES_MAX: usize = 1 << 20;

/// Maximum number of labels of a host (RFC 1035, section 2.3.4: of 255 bytes).
const LABELS_MAX: f64 = 127.0;

/// A checked expression with the type of its result.
#[derive(Clone, Debug)]
pub(crate) struct TypedExpr {
    pub(crate) expr: PlannedExpr,
    pub(crate) kind: ColumnKind,
    pub(crate) folds_case: bool,
    /// The type in words.
    pub(crate) shown: String,
    pub(crate) span: Range<usize>,
}

impl TypedExpr {
    /// The field, if the expression is nothing else.
    pub(crate) fn path(&self) -> Option<FieldPath> {
        if let PlannedExpr::Field(path) = self.expr { Some(path) } else { None }
    }
}

/// The parts of a grouped query.
pub(crate) struct Grouping {
    /// The expressions after `group by`, as written and checked.
    pub(crate) keys: Vec<(Written, TypedExpr)>,
    /// The aggregates of each group.
    pub(crate) aggregates: Vec<Aggregate>,
    /// Names given in `select`.
    pub(crate) names: Vec<(String, TypedExpr)>,
}

/// Checks expressions.
pub(crate) struct Typing<'a> {
    pub(crate) text: &'a str,
    pub(crate) columns: FieldNames<'a>,
    pub(crate) context: &'a Context<'a>,
    /// Where `score` was first used: whether there is a score is only known at the end of the query.
    pub(crate) score_used: Option<Range<usize>>,
    /// Whether the query uses the document structure of pages.
    pub(crate) asks_structure: bool,
    /// Whether the query has `as of`.
    pub(crate) is_past: bool,
    /// The groups, while checking a part of the query that is about groups, not rows.
    pub(crate) grouping: Option<Grouping>,
}

pub(crate) type Checked<T> = Result<T, ParseError>;

impl Typing<'_> {
    pub(crate) fn expr(&mut self, written: &Spanned<Written>) -> Checked<TypedExpr> {
        let span = written.span.clone();
        if let Some(found) = self.of_group(&written.value) {
            return Ok(TypedExpr { span, ..found });
        }
        match &written.value {
            Written::Field(field) => self.field(field.name(), span),
            Written::Literal(literal) => {
                let (value, kind) = self.constant(literal, &span)?;
                Ok(TypedExpr {
                    expr: PlannedExpr::Value(value),
                    kind,
                    folds_case: true,
                    shown: literal.to_string(),
                    span,
                })
            }
            Written::Path(path) => {
                if self.grouping.is_some() {
                    let message = "the documents of a group differ in their elements: group by them, too";
                    return Err(self.mistake(&span, message));
                }
                // Conditions inside the path are on elements, and add no search.
                Checker::new(self.text, self.columns, self.context, self.is_past).texts(path, written)
            }
            Written::Call { function, distinct, argument, second } => match second {
                Some(second) => self.call_of_two(function, argument.as_deref(), second, span),
                None => self.call(function, *distinct, argument.as_deref(), span),
            },
            Written::Arithmetic(left, sign, right) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                let Some(kind) = calculated(left.kind, *sign, right.kind) else {
                    let message = format!("{} {sign} {} makes no sense", sort(left.kind), sort(right.kind),);
                    return Err(self.mistake(&span, message));
                };
                let shown = written.value.to_string();
                let expr = PlannedExpr::Arithmetic(Box::new(left.expr), *sign, Box::new(right.expr));
                Ok(TypedExpr { expr, kind, folds_case: true, shown, span })
            }
        }
    }

    /// The group column with this name or expression.
    fn of_group(&self, written: &Written) -> Option<TypedExpr> {
        let grouping = self.grouping.as_ref()?;
        let named = grouping
            .names
            .iter()
            .find(|(name, _)| matches!(written, Written::Field(field) if field.name() == name.as_str()));
        if let Some((_, typed)) = named {
            return Some(typed.clone());
        }
        let index = grouping.keys.iter().position(|(key, _)| key == written)?;
        let (_, key) = grouping.keys.get(index)?;
        Some(TypedExpr { expr: PlannedExpr::Key(index), ..key.clone() })
    }

    fn field(&mut self, name: &str, span: Range<usize>) -> Checked<TypedExpr> {
        if name == "count" && self.grouping.is_some() {
            return self.call(name, false, None, span);
        }
        let of_now = name.strip_suffix(TODAY);
        let of_now = of_now.filter(|now| self.columns.find(now).is_ok_and(FieldPath::is_of_today));
        let path = match self.columns.find(of_now.unwrap_or(name)) {
            Ok(path) => path,
            Err(unknown) => {
                if let Some(time) = times::word(name, self.context.now, self.context.zone) {
                    let (expr, kind) = (PlannedExpr::Value(Value::Time(time.start)), ColumnKind::Time);
                    return Ok(TypedExpr { expr, kind, folds_case: true, shown: name.to_owned(), span });
                }
                if name == "count" {
                    return Err(self.counted_of_a_row(name, &span));
                }
                return Err(self.mistake(&span, unknown.message).with_suggestion(unknown.suggestion));
            }
        };
        if self.grouping.is_some() {
            let message = format!("the rows of a group differ in `{}`", shown(name));
            let suggestion = format!(
                "group by it too, or ask for max({0}), count(distinct {0}) and the like",
                shown(name)
            );
            return Err(self.mistake(&span, message).with_suggestion(Some(suggestion)));
        }
        self.asks_structure |= path.column.is_of_structure();
        if path.column == Column::Score {
            self.score_used.get_or_insert_with(|| span.clone());
        }
        if self.is_past && path.is_of_today() && of_now.is_none() {
            let message = format!("`{}` is not known as of another time", shown(name));
            let today = format!("`{name}{TODAY}` is that of today");
            return Err(self.mistake(&span, message).with_suggestion(Some(today)));
        }
        if self.context.of_several && path.column.is_of_one_archive() {
            let message =
                format!("`{}` differs between archives: query a single archive for it", shown(name));
            return Err(self.mistake(&span, message));
        }
        let is_of_target = path.via == Some(Via::Target)
            && !matches!(path.column, Column::Url | Column::Host | Column::Site);
        if self.context.elsewhere && is_of_target {
            let message = format!(
                "the archive that has the link does not know `{}`: query local folders instead",
                shown(name)
            );
            return Err(self.mistake(&span, message));
        }
        let expr = match path.column {
            Column::Tld => top_level_domain(path, self.columns.target),
            _ => PlannedExpr::Field(path),
        };
        Ok(TypedExpr {
            expr,
            kind: path.column.kind(),
            folds_case: path.column.folds_case(),
            shown: shown(name),
            span,
        })
    }

    fn call(
        &mut self,
        name: &str,
        distinct: bool,
        argument: Option<&Spanned<Written>>,
        span: Range<usize>,
    ) -> Checked<TypedExpr> {
        if let Some(gather) = Gather::named(name, distinct, argument.is_some()) {
            return self.aggregate(gather, argument, span);
        }
        if let Some(argument) = argument.filter(|_| name == "header") {
            return self.header(argument, span);
        }
        if let Some(argument) = argument.filter(|_| matches!(name, "first_said" | "last_said")) {
            return self.said(argument, name == "last_said", span);
        }
        if let Some(argument) = argument.filter(|_| name == "topic") {
            return self.topic(argument, span);
        }
        if let "part" | "label" = name {
            let example = if name == "part" { "part(url, \"id=(\\d+)\")" } else { "label(host, 1)" };
            return Err(self.mistake(&span, format!("`{name}` takes two arguments, as in {example}")));
        }
        if let Some(argument) = argument.filter(|_| name == "shared") {
            return self.shared(argument, span);
        }
        if (distinct || argument.is_none()) && help::functions().any(|(known, _)| known == name) {
            let example = match name {
                "header" => "one argument, as in header(\"server\")",
                "first_said" | "last_said" => "one argument, as in first_said(\"opening hours\")",
                _ => &format!("one argument, as in {name}(x)"),
            };
            return Err(self.mistake(&span, format!("`{name}` takes {example}")));
        }
        let Some((function, argument)) = Function::named(name, self.context.zone).zip(argument) else {
            return Err(self.unknown_function(name, &span));
        };
        let argument = self.expr(argument)?;
        let (wanted, kind, folds_case) = match function {
            Function::Year(_) | Function::Month(_) | Function::Day(_) => {
                (ColumnKind::Time, ColumnKind::Number, true)
            }
            Function::Period(..) => (ColumnKind::Time, ColumnKind::Text, true),
            Function::Lower | Function::Label(_) | Function::Part(_) => {
                (ColumnKind::Text, ColumnKind::Text, true)
            }
            Function::Length => (ColumnKind::Text, ColumnKind::Number, true),
        };
        if !same_sort(argument.kind, wanted) {
            let message =
                format!("`{name}` takes {}, but {} is {}", sort(wanted), argument.shown, sort(argument.kind));
            return Err(self.mistake(&argument.span, message));
        }
        let shown = format!("{name}({})", argument.shown);
        Ok(TypedExpr {
            expr: PlannedExpr::Call(function, Box::new(argument.expr)),
            kind,
            folds_case,
            shown,
            span,
        })
    }

    /// Checks `label(host, 1)` and `part(url, "id=(\d+)")`.
    fn call_of_two(
        &mut self,
        name: &str,
        argument: Option<&Spanned<Written>>,
        second: &Spanned<Literal>,
        span: Range<usize>,
    ) -> Checked<TypedExpr> {
        let Some(argument) = argument.filter(|_| matches!(name, "label" | "part")) else {
            return Err(match help::functions().any(|(known, _)| known == name) {
                true => self.mistake(&second.span, format!("`{name}` takes one argument")),
                false => self.unknown_function(name, &span),
            });
        };
        let argument = self.expr(argument)?;
        if !same_sort(argument.kind, ColumnKind::Text) {
            let message = format!("`{name}` takes text, but {} is {}", argument.shown, sort(argument.kind));
            return Err(self.mistake(&argument.span, message));
        }
        let function = match (name, &second.value) {
            ("part", Literal::Text(pattern)) => {
                let pattern = Spanned::new(pattern.clone(), second.span.clone());
                Function::Part(Pattern(self.regex(&pattern, argument.folds_case)?))
            }
            ("label", Literal::Number(number)) if number.fract() == 0.0 && number.abs() <= LABELS_MAX => {
                Function::Label(*number as i32)
            }
            ("part", _) => {
                return Err(self.mistake(&second.span, "put a regular expression in quotes"));
            }
            _ => return Err(self.mistake(&second.span, "give the number of a label, as in label(host, 1)")),
        };
        let shown =
            format!("{name}({}, {})", argument.shown, self.text.get(second.span.clone()).unwrap_or_default());
        let expr = PlannedExpr::Call(function, Box::new(argument.expr));
        Ok(TypedExpr { expr, kind: ColumnKind::Text, folds_case: argument.folds_case, shown, span })
    }

    /// Checks `first_said("opening hours")`.
    fn said(&mut self, argument: &Spanned<Written>, is_last: bool, span: Range<usize>) -> Checked<TypedExpr> {
        let Written::Literal(Literal::Text(phrase)) = &argument.value else {
            return Err(self.mistake(&argument.span, "put the words that are looked for in quotes"));
        };
        if Phrase::of(phrase).is_none() {
            return Err(self.mistake(&argument.span, "there is no word to search for in this text"));
        }
        self.expect_captured(&span, "say something", "what they say")?;
        let shown = self.text.get(span.clone()).unwrap_or_default().to_owned();
        let expr = PlannedExpr::Said { phrase: phrase.clone(), is_last };
        Ok(TypedExpr { expr, kind: ColumnKind::Time, folds_case: true, shown, span })
    }

    /// A regular expression of bounded size.
    pub(crate) fn regex(&self, pattern: &Spanned<String>, folds_case: bool) -> Checked<Regex> {
        let built = RegexBuilder::new(&pattern.value)
            .case_insensitive(folds_case)
            .size_limit(REGEX_BYTES_MAX)
            .build();
        built.map_err(|error| self.unusable(pattern, "this is not a regular expression", &error))
    }

    pub(crate) fn unusable(&self, pattern: &Spanned<String>, what: &str, error: &regex::Error) -> ParseError {
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        self.mistake(&pattern.span, format!("{what}: {reason}"))
    }

    /// Checks that each row stands for a page or a capture, which have something that others lack.
    fn expect_captured(&self, span: &Range<usize>, have: &str, what: &str) -> Checked<()> {
        if !matches!(self.columns.target, QueryRows::Pages | QueryRows::Captures | QueryRows::Versions) {
            return Err(self.mistake(span, format!("only pages, captures and versions {have}")));
        }
        if self.grouping.is_some() {
            return Err(self.mistake(span, format!("the rows of a group differ in {what}: group by it too")));
        }
        Ok(())
    }

    fn header(&mut self, argument: &Spanned<Written>, span: Range<usize>) -> Checked<TypedExpr> {
        let Written::Literal(Literal::Text(name)) = &argument.value else {
            return Err(self
                .mistake(&argument.span, "put the name of a header in quotes")
                .with_suggestion(Some("as in header(\"content-type\")".to_owned())));
        };
        self.expect_captured(&span, "have headers", "their headers")?;
        let shown = format!("header(\"{name}\")");
        let expr = PlannedExpr::Header(name.to_lowercase());
        Ok(TypedExpr { expr, kind: ColumnKind::Text, folds_case: true, shown, span })
    }

    fn topic(&mut self, argument: &Spanned<Written>, span: Range<usize>) -> Checked<TypedExpr> {
        let name = match &argument.value {
            Written::Field(field) => field.name(),
            Written::Literal(Literal::Text(name)) => name,
            _ => {
                return Err(self.mistake(&argument.span, "give the name of a topic, as in topic(maps)"));
            }
        };
        let Some(name) = self.context.topics.iter().find(|known| *known == name) else {
            let suggestion = match self.context.topics {
                [] => "`archive topic learn` makes one".to_owned(),
                topics => format!("the topics are {}", topics.join(", ")),
            };
            let message = format!("there is no topic `{name}`");
            return Err(self.mistake(&argument.span, message).with_suggestion(Some(suggestion)));
        };
        if !matches!(self.columns.target, QueryRows::Pages) {
            return Err(self.mistake(&span, "only pages have topics"));
        }
        if self.grouping.is_some() {
            return Err(self.mistake(&span, "the rows of a group differ in their topics: group by it too"));
        }
        if self.is_past {
            return Err(self.mistake(&span, "topics are not known as of another time"));
        }
        let shown = format!("topic({name})");
        let expr = PlannedExpr::Topic(name.clone());
        Ok(TypedExpr { expr, kind: ColumnKind::Number, folds_case: true, shown, span })
    }

    fn shared(&mut self, argument: &Spanned<Written>, span: Range<usize>) -> Checked<TypedExpr> {
        let Written::Literal(Literal::Text(url)) = &argument.value else {
            return Err(self.mistake(&argument.span, "put the URL of the other page in quotes"));
        };
        let url = self.url(url, &argument.span)?;
        self.expect_captured(&span, "have texts", "their texts")?;
        let shown = format!("shared({url})");
        Ok(TypedExpr {
            expr: PlannedExpr::Shared(url),
            kind: ColumnKind::Number,
            folds_case: true,
            shown,
            span,
        })
    }

    /// The canonical form of a URL in a query.
    pub(crate) fn url(&self, written: &str, span: &Range<usize>) -> Checked<String> {
        let whole = if written.contains("://") { written.to_owned() } else { format!("http://{written}") };
        if Url::parse(&whole).is_err() {
            let suggestion = "write it whole, as in \"https://www.example.org/\"".to_owned();
            let message = format!("{} is not a URL", self.text.get(span.clone()).unwrap_or_default());
            return Err(self.mistake(span, message).with_suggestion(Some(suggestion)));
        }
        Ok(canonical_of(&whole))
    }

    fn aggregate(
        &mut self,
        gather: Gather,
        argument: Option<&Spanned<Written>>,
        span: Range<usize>,
    ) -> Checked<TypedExpr> {
        let Some(grouping) = self.grouping.take() else {
            return Err(self.counted_of_a_row(gather.name(), &span));
        };
        // The argument of an aggregate is about rows again.
        let argument = argument.map(|argument| self.expr(argument)).transpose();
        self.grouping = Some(grouping);
        let argument = argument?;
        let of = argument.as_ref().map_or(ColumnKind::Number, |argument| argument.kind);
        if gather.needs_numbers() && !matches!(of, ColumnKind::Number | ColumnKind::Span) {
            let message = format!("`{}` takes numbers, but this is {}", gather.name(), sort(of));
            return Err(self.mistake(argument.as_ref().map_or(&span, |argument| &argument.span), message));
        }
        let kind = match gather {
            Gather::Count | Gather::Known | Gather::Distinct => ColumnKind::Number,
            Gather::Min | Gather::Max if of == ColumnKind::Choice => ColumnKind::Text,
            _ => of,
        };
        let shown = match (&argument, gather) {
            (None, _) => gather.name().to_owned(),
            (Some(argument), Gather::Distinct) => format!("count(distinct {})", argument.shown),
            (Some(argument), _) => format!("{}({})", gather.name(), argument.shown),
        };
        let aggregate = Aggregate { gather, of: argument.map(|argument| argument.expr) };
        let grouping = self.grouping.get_or_insert_with(|| Grouping {
            keys: Vec::new(),
            aggregates: Vec::new(),
            names: Vec::new(),
        });
        let index = grouping.aggregates.iter().position(|known| *known == aggregate).unwrap_or_else(|| {
            grouping.aggregates.push(aggregate);
            grouping.aggregates.len() - 1
        });
        Ok(TypedExpr { expr: PlannedExpr::Aggregate(index), kind, folds_case: true, shown, span })
    }

    fn counted_of_a_row(&self, name: &str, span: &Range<usize>) -> ParseError {
        let message = format!("`{name}` summarises many rows, but here there is one row");
        self.mistake(span, message).with_suggestion(Some("use it in select, having or order by".to_owned()))
    }

    fn unknown_function(&self, name: &str, span: &Range<usize>) -> ParseError {
        let suggestion = match nearest(name, help::functions().map(|(name, _)| name)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => {
                let names: Vec<&str> = help::functions().map(|(name, _)| name).collect();
                format!("the functions are {}", names.join(", "))
            }
        };
        self.mistake(span, format!("there is no function `{name}`")).with_suggestion(Some(suggestion))
    }

    /// The value of a literal; for a period of time, its start.
    fn constant(&self, literal: &Literal, span: &Range<usize>) -> Checked<(Value, ColumnKind)> {
        Ok(match literal {
            Literal::Number(number) => (Value::Number(*number), ColumnKind::Number),
            Literal::Text(text) => (Value::Text(text.clone()), ColumnKind::Text),
            Literal::Span(amount) => (Value::Number(times::seconds(*amount)), ColumnKind::Span),
            Literal::Moment(_) | Literal::Ago(_) => {
                let time = self.time(literal).ok_or_else(|| self.mistake(span, "there is no such time"))?;
                (Value::Time(time.start), ColumnKind::Time)
            }
        })
    }

    /// The time that a literal names.
    pub(crate) fn time(&self, literal: &Literal) -> Option<Range<chrono::DateTime<chrono::Utc>>> {
        let (now, zone) = (self.context.now, self.context.zone);
        match literal {
            Literal::Moment(moment) => Some(times::moment(*moment, zone)),
            Literal::Ago(ago) => {
                let time = times::ago(*ago, now);
                Some(time..time)
            }
            Literal::Number(number) => times::year(*number, zone),
            Literal::Text(word) => times::word(word, now, zone),
            Literal::Span(_) => None,
        }
    }

    pub(crate) fn mistake(&self, span: &Range<usize>, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, span.clone(), message)
    }
}

/// The last label of a host, or of the name of a site where rows have no host.
fn top_level_domain(FieldPath { via, .. }: FieldPath, target: QueryRows) -> PlannedExpr {
    let is_site = via == Some(Via::Site) || via.is_none() && target == QueryRows::Sites;
    let column = if is_site { Column::Site } else { Column::Host };
    PlannedExpr::Call(Function::Label(1), Box::new(PlannedExpr::Field(FieldPath { via, column })))
}

/// The type of an operation's result; `None` if the operand types do not fit.
fn calculated(left: ColumnKind, sign: ArithmeticSign, right: ColumnKind) -> Option<ColumnKind> {
    use ColumnKind::{Number, Span, Time};
    Some(match (left, sign, right) {
        (Number, _, Number) | (Span, ArithmeticSign::Over, Span) => Number,
        (Span, ArithmeticSign::Plus | ArithmeticSign::Minus, Span)
        | (Span, ArithmeticSign::Times | ArithmeticSign::Over, Number)
        | (Number, ArithmeticSign::Times, Span)
        | (Time, ArithmeticSign::Minus, Time) => Span,
        (Time, ArithmeticSign::Plus | ArithmeticSign::Minus, Span) | (Span, ArithmeticSign::Plus, Time) => {
            Time
        }
        _ => return None,
    })
}

/// Whether two values can be compared: choices are compared as texts.
pub(crate) fn same_sort(left: ColumnKind, right: ColumnKind) -> bool {
    let is_text = |kind| matches!(kind, ColumnKind::Text | ColumnKind::Choice);
    left == right || is_text(left) && is_text(right)
}

/// A type in words.
pub(crate) fn sort(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Text => "text",
        ColumnKind::Choice => "a word",
        ColumnKind::Number => "a number",
        ColumnKind::Span => "an amount of time",
        ColumnKind::Time => "a time",
    }
}
