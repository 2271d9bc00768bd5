//! Paths to elements and attributes of XML documents.

use crate::query::language::filter::Filter;

/// A path ready to run.
#[derive(Clone, Debug)]
pub(crate) struct ElementPath {
    /// The path in canonical form.
    pub(crate) written: String,
    pub(crate) steps: Vec<ElementStep>,
}

impl PartialEq for ElementPath {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

/// A step of a path.
#[derive(Clone, Debug)]
pub(crate) struct ElementStep {
    pub(crate) is_deep: bool,
    pub(crate) is_attribute: bool,
    pub(crate) prefix: Option<String>,
    /// `None` for any name.
    pub(crate) name: Option<String>,
    /// The conditions that a node must meet.
    pub(crate) filters: Vec<Filter>,
}

impl ElementStep {
    pub(crate) fn of(step: &archive_grammar::Step, filters: Vec<Filter>) -> Self {
        let whole = step.name.strip_prefix('@');
        let (prefix, name) = match whole.unwrap_or(&step.name).split_once(':') {
            Some((prefix, name)) => (Some(prefix.to_owned()), name),
            None => (None, whole.unwrap_or(&step.name)),
        };
        let name = Some(name.to_owned()).filter(|name| name != "*");
        Self { is_deep: step.is_deep, is_attribute: whole.is_some(), prefix, name, filters }
    }
}

/// How the text of an element is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Text,
    Number,
    Time,
}
