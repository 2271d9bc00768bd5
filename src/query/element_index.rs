//! Questions about paths to the index: it never finds fewer documents than match, and says on which documents it decides.

use super::elements::{Content, ElementPath, ElementStep};
use super::expr::Expr;
use super::filter::{Filter, TextTestKind};
use crate::search::elements::ElementQuery;
use crate::search::words;

/// What the index decides on.
pub(crate) struct Decided {
    /// The index query for documents that match.
    pub(crate) known: ElementQuery,
    /// Whether no others match, except documents that are not fully indexed.
    pub(crate) is_all: bool,
}

/// Whether the index knows that a path from the document leads to something for which `filter` holds; none if only reading the
/// document decides.
pub(crate) fn decided(path: &ElementPath, filter: Option<&Filter>) -> Option<Decided> {
    let (step, rest) = path.steps.split_first()?;
    let name = step.name.as_deref();
    let all = |known| Some(Decided { known, is_all: true });
    match (rest, step.filters.as_slice(), filter) {
        _ if step.prefix.is_some() => None,
        ([], [], None) if !step.is_deep && !step.is_attribute => all(ElementQuery::Root(name?.to_owned())),
        _ if !step.is_deep => None,
        ([], [], _) if step.is_attribute => all(has(format!("@{}", name?), filter)?),
        ([attribute], [], _) => all(attribute_of(name, attribute, filter)?),
        ([], [], _) => Some(Decided { known: has(name?.to_owned(), filter)?, is_all: filter.is_none() }),
        ([], [only], None) if !step.is_attribute => all(decided_by(name, only)?),
        _ => None,
    }
}

/// The same of a condition on attributes of one element.
fn decided_by(element: Option<&str>, filter: &Filter) -> Option<ElementQuery> {
    match filter {
        Filter::Any(parts) => {
            let parts = parts.iter().map(|part| decided_by(element, part)).collect::<Option<_>>()?;
            Some(ElementQuery::Any(parts))
        }
        Filter::Some(path, filter) => match path.steps.as_slice() {
            [attribute] => attribute_of(element, attribute, filter.as_deref()),
            _ => None,
        },
        _ => None,
    }
}

fn attribute_of(element: Option<&str>, step: &ElementStep, filter: Option<&Filter>) -> Option<ElementQuery> {
    if !step.is_attribute || step.is_deep || step.prefix.is_some() || !step.filters.is_empty() {
        return None;
    }
    has(format!("{}@{}", element.unwrap_or_default(), step.name.as_deref()?), filter)
}

/// The query for a place, or for a place whose whole text is one of these.
fn has(place: String, filter: Option<&Filter>) -> Option<ElementQuery> {
    match filter {
        None => Some(ElementQuery::Named(place)),
        Some(Filter::Text(Expr::Content(Content::Text), test)) if test.folds_case => match &test.kind {
            TextTestKind::Is(texts) => {
                let texts =
                    texts.iter().map(|text| ElementQuery::whole(&place, text)).collect::<Option<_>>()?;
                Some(ElementQuery::Any(texts))
            }
            _ => None,
        },
        Some(_) => None,
    }
}

/// The query for documents in which a path leads to something for which `filter` holds. `around` is the name of the element at which
/// the path starts, if that is known.
pub(crate) fn wanted(path: &ElementPath, filter: Option<&Filter>, around: Option<&str>) -> ElementQuery {
    let mut parts = Vec::new();
    let mut around = around.map(str::to_owned);
    for step in &path.steps {
        around =
            step.name.as_ref().map(|name| if step.is_attribute { format!("@{name}") } else { name.clone() });
        parts.extend(around.clone().map(ElementQuery::Named));
        // The words of attributes are only indexed with their names.
        let place = around.as_deref();
        if place.is_some() || !step.is_attribute {
            parts.extend(step.filters.iter().map(|filter| wanted_by(filter, place)));
        }
    }
    let is_any_attribute = around.is_none() && path.steps.last().is_some_and(|step| step.is_attribute);
    parts.extend(filter.filter(|_| !is_any_attribute).map(|filter| wanted_by(filter, around.as_deref())));
    ElementQuery::All(parts)
}

fn wanted_by(filter: &Filter, around: Option<&str>) -> ElementQuery {
    let words_of = |text: &String| {
        let words = words(text).into_iter().map(|word| ElementQuery::Word(around.map(str::to_owned), word));
        ElementQuery::All(words.collect())
    };
    let whole = |text: &String| {
        let whole = around.and_then(|name| ElementQuery::whole(name, text));
        match (whole, around) {
            // An element around others has the text that is put together of theirs.
            (Some(whole), Some(name)) if !name.starts_with('@') => {
                let nests = ElementQuery::All(vec![ElementQuery::Nests(name.to_owned()), words_of(text)]);
                ElementQuery::Any(vec![whole, nests])
            }
            (Some(whole), _) => whole,
            (None, _) => words_of(text),
        }
    };
    match filter {
        Filter::All(parts) => ElementQuery::All(parts.iter().map(|part| wanted_by(part, around)).collect()),
        Filter::Any(parts) => ElementQuery::Any(parts.iter().map(|part| wanted_by(part, around)).collect()),
        Filter::Some(path, filter) => wanted(path, filter.as_deref(), around),
        Filter::Text(Expr::Content(_), test) => match &test.kind {
            TextTestKind::Is(texts) if test.folds_case => {
                ElementQuery::Any(texts.iter().map(whole).collect())
            }
            TextTestKind::Is(texts) | TextTestKind::Words { all: false, texts } => {
                ElementQuery::Any(texts.iter().map(words_of).collect())
            }
            TextTestKind::Words { all: true, texts } => {
                ElementQuery::All(texts.iter().map(words_of).collect())
            }
            _ => ElementQuery::All(Vec::new()),
        },
        _ => ElementQuery::All(Vec::new()),
    }
}
