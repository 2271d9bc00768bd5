//! Index queries for paths: in which documents a path is known to select something, and in which others it may.

use std::sync::Arc;

use archive_books::search::elements::{COMBINATIONS_MAX, ElementQuery, ValueTest};
use archive_books::search::words;
use archive_web::parse::parse_date;

use crate::query::elements::tree;
use crate::query::language::{Content, ElementPath, ElementStep, Filter, PlannedExpr, TextTestKind};

/// The index queries for documents in which a path selects a node that meets a filter.
pub(crate) struct Bounds {
    /// Lower bound: documents that are known to match.
    pub(crate) known: ElementQuery,
    /// All other documents that may match; `None` if these are only the documents that are not fully indexed.
    pub(crate) maybe: Option<ElementQuery>,
}

impl Bounds {
    fn exact(known: ElementQuery) -> Self {
        Self { known, maybe: None }
    }

    /// Upper bound: all documents that may match.
    fn into_either(self) -> ElementQuery {
        match self.maybe {
            Some(maybe) => ElementQuery::Any(vec![self.known, maybe]),
            None => self.known,
        }
    }

    fn any(all: Vec<Self>) -> Self {
        let (known, maybe): (Vec<_>, Vec<_>) = all.into_iter().map(|one| (one.known, one.maybe)).unzip();
        let maybe: Vec<_> = maybe.into_iter().flatten().collect();
        Self { known: ElementQuery::Any(known), maybe: (!maybe.is_empty()).then(|| ElementQuery::Any(maybe)) }
    }
}

/// The bounds for a path from the document root.
pub(crate) fn bounds(path: &ElementPath, filter: Option<&Filter>) -> Bounds {
    let decided = decided(path, filter);
    if let Some(Bounds { maybe: None, .. }) = decided {
        return Bounds::exact(decided.map_or(nothing(), |decided| decided.known));
    }
    let wanted = wanted(path, filter, (None, None));
    match decided {
        Some(Bounds { known, maybe }) => {
            let maybe = ElementQuery::All(maybe.into_iter().chain([wanted]).collect());
            Bounds { known, maybe: Some(maybe) }
        }
        None => Bounds { known: nothing(), maybe: Some(wanted) },
    }
}

fn nothing() -> ElementQuery {
    ElementQuery::Any(Vec::new())
}

/// A condition on one element: that its own text passes a filter, or that something inside it does.
#[derive(Clone, Copy)]
enum ElementCondition<'a> {
    Own(&'a Filter),
    Inner(&'a ElementStep, Option<&'a Filter>),
    Any(&'a [Filter]),
}

impl<'a> ElementCondition<'a> {
    fn of(filter: &'a Filter) -> Option<Self> {
        match filter {
            Filter::Any(parts) => Some(Self::Any(parts)),
            Filter::Some(path, filter) => match (path.steps.as_slice(), filter) {
                ([], Some(filter)) => Some(Self::Own(filter)),
                ([inner], filter) if is_plain(inner) => Some(Self::Inner(inner, filter.as_deref())),
                _ => None,
            },
            _ => Some(Self::Own(filter)),
        }
    }

    /// Adds the conjuncts of a filter.
    fn add(filter: &'a Filter, to: &mut Vec<Self>) -> Option<()> {
        match filter {
            Filter::All(parts) => parts.iter().try_for_each(|part| Self::add(part, to)),
            _ => {
                to.push(Self::of(filter)?);
                Some(())
            }
        }
    }
}

fn is_plain(inner: &ElementStep) -> bool {
    !inner.is_deep && inner.filters.is_empty() && inner.prefix.is_none() && inner.name.is_some()
}

/// The bounds that the index gives for a path to elements or attributes, or to direct children of elements; `None` for
/// other paths.
fn decided(path: &ElementPath, filter: Option<&Filter>) -> Option<Bounds> {
    let (step, rest) = path.steps.split_first()?;
    if step.prefix.is_some() {
        return None;
    }
    let name = step.name.as_deref();
    let is_bare = rest.is_empty() && step.filters.is_empty();
    if !step.is_deep {
        let is_root = is_bare && filter.is_none() && !step.is_attribute;
        return is_root.then(|| Some(Bounds::exact(ElementQuery::Root(name?.to_owned())))).flatten();
    }
    if step.is_attribute {
        return is_bare.then(|| at(format!("@{}", name?), filter)).flatten();
    }
    let mut conditions = Vec::new();
    step.filters.iter().try_for_each(|filter| ElementCondition::add(filter, &mut conditions))?;
    match (rest, filter) {
        ([], None) => {}
        ([], Some(filter)) => conditions.push(ElementCondition::Own(filter)),
        ([inner], filter) if is_plain(inner) => conditions.push(ElementCondition::Inner(inner, filter)),
        _ => return None,
    }
    match conditions.as_slice() {
        [] => at(name?.to_owned(), None),
        [only] => decided_by(name, *only),
        _ => together(name?, &conditions),
    }
}

/// The bounds for a condition on elements with a name, or with any.
fn decided_by(element: Option<&str>, condition: ElementCondition<'_>) -> Option<Bounds> {
    match condition {
        ElementCondition::Own(filter) => at(element?.to_owned(), Some(filter)),
        ElementCondition::Inner(step, filter) => at(slot(element, step)?, filter),
        ElementCondition::Any(parts) => {
            let each = parts.iter().map(|part| decided_by(element, ElementCondition::of(part)?));
            Some(Bounds::any(each.collect::<Option<_>>()?))
        }
    }
}

/// The index key of an attribute of elements, or of their direct children.
fn slot(element: Option<&str>, step: &ElementStep) -> Option<String> {
    let name = step.name.as_deref()?;
    match step.is_attribute {
        true => Some(format!("{}@{name}", element.unwrap_or_default())),
        false => Some(format!("{}>{name}", element?)),
    }
}

/// The bounds for several conditions on the same element.
fn together(element: &str, conditions: &[ElementCondition<'_>]) -> Option<Bounds> {
    let mut combinations: Vec<Vec<ElementQuery>> = vec![Vec::new()];
    let mut unsure = Vec::new();
    for condition in conditions {
        let (alternatives, others) = alternatives(element, *condition)?;
        unsure.extend(others);
        combinations = combinations
            .iter()
            .flat_map(|before| {
                alternatives.iter().map(move |one| before.iter().chain([one]).cloned().collect())
            })
            .collect();
        if combinations.len() > COMBINATIONS_MAX {
            return None;
        }
    }
    let known = ElementQuery::Any(combinations.into_iter().map(ElementQuery::Same).collect());
    let maybe = (!unsure.is_empty()).then_some(ElementQuery::Any(unsure));
    Some(Bounds { known, maybe })
}

/// The index queries that show that a condition on an element holds (any one suffices), and those for documents in
/// which the index cannot exclude it.
fn alternatives(
    element: &str,
    condition: ElementCondition<'_>,
) -> Option<(Vec<ElementQuery>, Vec<ElementQuery>)> {
    let (place, filter) = match condition {
        ElementCondition::Own(_) => return None,
        ElementCondition::Inner(step, filter) => (slot(Some(element), step)?, filter?),
        ElementCondition::Any(parts) => {
            let (mut all, mut unsure) = (Vec::new(), Vec::new());
            for part in parts {
                let (some, others) = alternatives(element, ElementCondition::of(part)?)?;
                all.extend(some);
                unsure.extend(others);
            }
            return Some((all, unsure));
        }
    };
    let partial = || vec![ElementQuery::Partial(place.clone())];
    if let Filter::Text(PlannedExpr::Content(Content::Text), test) = filter {
        match &test.kind {
            TextTestKind::Is(texts) if test.folds_case => {
                let wholes: Vec<_> =
                    texts.iter().filter_map(|text| ElementQuery::whole(&place, text)).collect();
                let are_all = place.contains('@') && wholes.len() == texts.len();
                return Some((wholes, if are_all { Vec::new() } else { partial() }));
            }
            TextTestKind::Words { all, texts } if has_own_words(&place) && (!all || texts.len() == 1) => {
                let only = |text: &String| match <[String; 1]>::try_from(words(text)) {
                    Ok([word]) => Some(ElementQuery::Own(place.clone(), word)),
                    Err(_) => None,
                };
                return Some((texts.iter().map(only).collect::<Option<_>>()?, partial()));
            }
            _ => {}
        }
    }
    let values = ElementQuery::Values { of: place.clone(), test: value_test(filter)?, is_known: true };
    // There may be too many values in the index.
    Some((vec![values], vec![ElementQuery::All(Vec::new())]))
}

/// The bounds for nodes with index key `place` whose content passes `filter`.
fn at(place: String, filter: Option<&Filter>) -> Option<Bounds> {
    let Some(filter) = filter else { return Some(Bounds::exact(ElementQuery::Named(place))) };
    if let Filter::Text(PlannedExpr::Content(Content::Text), test) = filter {
        match &test.kind {
            TextTestKind::Is(texts) if test.folds_case => {
                return Some(Bounds::any(texts.iter().map(|text| whole(&place, text)).collect()));
            }
            TextTestKind::Words { all, texts } if has_own_words(&place) && (!all || texts.len() == 1) => {
                return Some(Bounds::any(texts.iter().map(|text| has_words(&place, text)).collect()));
            }
            _ => {}
        }
    }
    let test = value_test(filter)?;
    let values = |is_known| ElementQuery::Values { of: place.clone(), test: test.clone(), is_known };
    let maybe = ElementQuery::Any(vec![values(false), ElementQuery::Partial(place.clone())]);
    Some(Bounds { known: values(true), maybe: Some(maybe) })
}

/// Whether words are indexed under this index key; words of attributes are only indexed under the attribute's own name.
fn has_own_words(place: &str) -> bool {
    place.find('@').is_none_or(|at| at == 0)
}

/// The bounds for nodes whose text is exactly this.
fn whole(place: &str, text: &str) -> Bounds {
    let whole = ElementQuery::whole(place, text);
    if whole.is_some() && place.contains('@') {
        return Bounds::exact(whole.unwrap_or_else(nothing));
    }
    let partial = ElementQuery::All(vec![ElementQuery::Partial(place.to_owned()), words_at(place, text)]);
    Bounds { known: whole.unwrap_or_else(nothing), maybe: Some(partial) }
}

/// The bounds for nodes that contain the words of a text as a phrase.
fn has_words(place: &str, text: &str) -> Bounds {
    match words(text).as_slice() {
        [word] => {
            let known = ElementQuery::Own(place.to_owned(), word.clone());
            let maybe = (!place.starts_with('@')).then(|| words_at(place, text));
            Bounds { known, maybe }
        }
        _ => Bounds { known: nothing(), maybe: Some(words_at(place, text)) },
    }
}

/// The query for nodes with index key `place` that contain all words of a text, as far as the index knows.
fn words_at(place: &str, text: &str) -> ElementQuery {
    let all = |query: &dyn Fn(String) -> ElementQuery| {
        ElementQuery::All(words(text).into_iter().map(query).chain(row(place, text)).collect())
    };
    let inner = match place.find(['@', '>']) {
        None | Some(0) => return all(&|word| ElementQuery::Word(Some(place.to_owned()), word)),
        Some(at) => place[at..].trim_start_matches('>'),
    };
    if !has_own_words(place) {
        return words_at(inner, text);
    }
    let known = all(&|word| ElementQuery::Own(place.to_owned(), word));
    let here = ElementQuery::Any(vec![known, ElementQuery::Partial(place.to_owned())]);
    ElementQuery::All(vec![here, words_at(inner, text)])
}

/// The words of a text as a phrase query, if there are several; words of attributes are not part of a document's text.
fn row(place: &str, text: &str) -> Option<ElementQuery> {
    let words = words(text);
    (words.len() > 1 && !place.contains('@')).then_some(ElementQuery::Row(words))
}

/// Turns a filter that only depends on a text into a test of lower-case texts. The test gives no result where lower
/// case does not decide.
fn value_test(filter: &Filter) -> Option<ValueTest> {
    let needs = Needs::of(filter)?;
    let filter = filter.clone();
    Some(ValueTest(Arc::new(move |text| {
        let has_letters = || text.bytes().any(|byte| byte.is_ascii_alphabetic());
        let is_sure = match needs {
            Needs::Text => true,
            Needs::Ascii => text.is_ascii(),
            Needs::Time => text.is_ascii() && (!has_letters() || parse_date(text).is_some()),
        };
        is_sure.then(|| tree::holds_of_text(&filter, text).ok()).flatten()
    })))
}

/// For which texts the lower-case form gives the same result as the original.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Needs {
    Text,
    Ascii,
    /// Times without letters, and those that are still read as times in lower case.
    Time,
}

impl Needs {
    fn of(filter: &Filter) -> Option<Self> {
        match filter {
            Filter::All(parts) | Filter::Any(parts) => {
                parts.iter().try_fold(Self::Text, |needs, part| Some(needs.max(Self::of(part)?)))
            }
            Filter::Not(part) => Self::of(part),
            Filter::Number(PlannedExpr::Content(Content::Number), _) => Some(Self::Ascii),
            Filter::Time(PlannedExpr::Content(Content::Time), _) => Some(Self::Time),
            Filter::Text(PlannedExpr::Content(Content::Text), test) if test.folds_case => match &test.kind {
                TextTestKind::Fits(_) | TextTestKind::Words { .. } => Some(Self::Ascii),
                TextTestKind::Matches(_) => None,
                _ => Some(Self::Text),
            },
            _ => None,
        }
    }
}

/// The query for documents in which a path may select a node that passes `filter`, starting from an element named
/// `around` with index key `place`, where these are known.
fn wanted(
    path: &ElementPath,
    filter: Option<&Filter>,
    (place, around): (Option<&str>, Option<&str>),
) -> ElementQuery {
    let mut parts = Vec::new();
    let (mut place, mut around) = (place.map(str::to_owned), around.map(str::to_owned));
    for step in &path.steps {
        let before = around.take().filter(|_| !step.is_deep);
        place = match (&before, &step.name) {
            (Some(element), _) => slot(Some(element.as_str()), step),
            (None, Some(name)) if step.is_attribute => Some(format!("@{name}")),
            (None, name) => name.clone(),
        };
        around = step.name.clone().filter(|_| !step.is_attribute);
        parts.extend(place.clone().map(ElementQuery::Named));
        let here = (place.as_deref(), around.as_deref());
        parts.extend(step.filters.iter().map(|filter| wanted_by(filter, step.is_attribute, here)));
    }
    let is_attribute = path.steps.last().is_some_and(|step| step.is_attribute);
    parts.extend(filter.map(|filter| wanted_by(filter, is_attribute, (place.as_deref(), around.as_deref()))));
    ElementQuery::All(parts)
}

fn wanted_by(
    filter: &Filter,
    is_attribute: bool,
    (place, around): (Option<&str>, Option<&str>),
) -> ElementQuery {
    let here = (place, around);
    let each = |parts: &[Filter]| -> Vec<_> {
        parts.iter().map(|part| wanted_by(part, is_attribute, here)).collect()
    };
    let all_words = |text: &String| match place {
        Some(place) => words_at(place, text),
        // Words of attributes are only indexed under their names.
        None if is_attribute => ElementQuery::All(Vec::new()),
        None => {
            let each = words(text).into_iter().map(|word| ElementQuery::Word(None, word));
            ElementQuery::All(each.chain(row("", text)).collect())
        }
    };
    match filter {
        Filter::All(parts) => return ElementQuery::All(each(parts)),
        Filter::Any(parts) => return ElementQuery::Any(each(parts)),
        Filter::Some(path, filter) => return wanted(path, filter.as_deref(), here),
        Filter::Text(PlannedExpr::Content(_), test) => match &test.kind {
            TextTestKind::Words { all: true, texts } => {
                return ElementQuery::All(texts.iter().map(all_words).collect());
            }
            TextTestKind::Words { texts, .. } => {
                return ElementQuery::Any(texts.iter().map(all_words).collect());
            }
            TextTestKind::Is(texts) if place.is_none() => {
                return ElementQuery::Any(texts.iter().map(all_words).collect());
            }
            _ => {}
        },
        _ => {}
    }
    let decided = place.and_then(|place| at(place.to_owned(), Some(filter)));
    decided.map_or(ElementQuery::All(Vec::new()), Bounds::into_either)
}
