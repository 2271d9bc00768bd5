//! Content models (XML 1.0, section 3.2): what an element may contain, and in which order.
//!
//! A model of elements becomes its Glushkov automaton, with one state per name in the model, reached by that name. XML
//! allows only models whose automaton is deterministic (appendix E; Brüggemann-Klein and Wood, "One-unambiguous regular
//! languages", 1998), so a single current state is enough.

use std::collections::{HashMap, HashSet};

use super::super::doctype::DoctypeReader;

/// Maximum nesting of groups.
const GROUPS_DEPTH_MAX: usize = 64;

/// Maximum number of names in a model.
const NAMES_MAX: usize = 4096;

/// Maximum number of transitions computed for all models of a document; each takes eight bytes.
const STEPS_MAX: usize = 4_000_000;

/// Content that an element may have.
#[derive(Debug)]
pub(crate) enum ContentModel {
    Empty,
    Any,
    /// Text and elements with these names.
    Mixed(HashSet<String>),
    Children(Automaton),
}

impl ContentModel {
    /// Parses the declared content of an element; `steps` counts the transitions of all elements so far.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub(crate) fn of(declared: &str, steps: &mut usize) -> Result<Self, String> {
        let declared = declared.trim();
        match declared {
            "EMPTY" => return Ok(Self::Empty),
            "ANY" => return Ok(Self::Any),
            _ => {}
        }
        let inside = declared.strip_prefix('(').map(str::trim_start);
        match inside.and_then(|inside| inside.strip_prefix("#PCDATA")) {
            Some(rest) => mixed(rest.trim()).ok_or_else(|| NO_MODEL.to_owned())?.map(Self::Mixed),
            None => Automaton::of(declared, steps).map(Self::Children),
        }
    }
}

const NO_MODEL: &str = "this is not a content model";

/// Parses production 51, after `(#PCDATA`.
fn mixed(rest: &str) -> Option<Result<HashSet<String>, String>> {
    let Some(names) = rest.strip_suffix(")*") else {
        return (rest == ")").then(|| Ok(HashSet::new()));
    };
    let mut found = HashSet::new();
    for name in names.trim().split('|').skip(1).map(str::trim) {
        if !super::is_name(name) {
            return None;
        }
        if !found.insert(name.to_owned()) {
            return Some(Err(format!("{name} is in it twice")));
        }
    }
    (names.trim().is_empty() || names.trim_start().starts_with('|')).then_some(Ok(found))
}

/// A transition: a name and the state that it leads to.
type Transition = (u32, u32);

/// Glushkov automaton of a model. State 0 is the start; the others are the occurrences of names in the model, in order.
#[derive(Debug)]
pub(crate) struct Automaton {
    names: HashMap<String, u32>,
    /// Transitions from each state, sorted by name.
    steps: Vec<Vec<Transition>>,
    accepts: Vec<bool>,
}

/// A part of a model.
struct Particle {
    is_optional: bool,
    first: Vec<u32>,
    last: Vec<u32>,
}

impl Automaton {
    /// The start state.
    pub(crate) const START: u32 = 0;

    fn of(declared: &str, count: &mut usize) -> Result<Self, String> {
        let mut builder = Builder {
            reader: DoctypeReader { text: declared, at: 0 },
            names: HashMap::new(),
            name_of: vec![0],
            steps: vec![Vec::new()],
            count,
        };
        if !declared.starts_with('(') {
            return Err(NO_MODEL.to_owned());
        }
        let whole = builder.particle(0)?;
        if !builder.reader.rest().trim().is_empty() {
            return Err(NO_MODEL.to_owned());
        }
        builder.join(&[Self::START], &whole.first)?;
        let Builder { names, mut steps, .. } = builder;
        let mut accepts = vec![false; steps.len()];
        accepts[0] = whole.is_optional;
        whole.last.iter().for_each(|state| accepts[*state as usize] = true);
        for from in &mut steps {
            from.sort_unstable();
            from.dedup();
            if let Some(both) = from.windows(2).find(|both| both[0].0 == both[1].0) {
                let name = names.iter().find(|(_, id)| **id == both[0].0).map_or("", |(name, _)| name);
                return Err(format!("it is ambiguous: {name} may be either of two in it"));
            }
        }
        Ok(Self { names, steps, accepts })
    }

    /// Returns the state after an element; none if the element is not allowed.
    pub(crate) fn step(&self, state: u32, name: &str) -> Option<u32> {
        let name = self.names.get(name)?;
        let steps = self.steps.get(state as usize)?;
        let found = steps.binary_search_by_key(name, |(name, _)| *name).ok()?;
        steps.get(found).map(|(_, to)| *to)
    }

    /// Whether an element may end in this state.
    pub(crate) fn accepts(&self, state: u32) -> bool {
        self.accepts.get(state as usize).is_some_and(|accepts| *accepts)
    }

    /// Returns the names that may follow a state, in the order of the model.
    pub(crate) fn expected(&self, state: u32) -> Vec<&str> {
        let mut steps = self.steps.get(state as usize).cloned().unwrap_or_default();
        steps.sort_unstable_by_key(|(_, to)| *to);
        let names: HashMap<u32, &str> = self.names.iter().map(|(name, id)| (*id, name.as_str())).collect();
        steps.iter().filter_map(|(name, _)| names.get(name).copied()).collect()
    }
}

struct Builder<'a> {
    reader: DoctypeReader<'a>,
    names: HashMap<String, u32>,
    /// Name of each state.
    name_of: Vec<u32>,
    steps: Vec<Vec<Transition>>,
    count: &'a mut usize,
}

impl Builder<'_> {
    /// Parses productions 47 to 50: a name or a group, and its number of occurrences.
    fn particle(&mut self, depth: usize) -> Result<Particle, String> {
        self.reader.space();
        let mut part = if self.reader.eat("(") { self.group(depth + 1)? } else { self.name()? };
        let is_repeated = match () {
            () if self.reader.eat("?") => {
                part.is_optional = true;
                false
            }
            () if self.reader.eat("*") => {
                part.is_optional = true;
                true
            }
            () => self.reader.eat("+"),
        };
        if is_repeated {
            self.join(&part.last, &part.first)?;
        }
        self.reader.space();
        Ok(part)
    }

    fn group(&mut self, depth: usize) -> Result<Particle, String> {
        if depth > GROUPS_DEPTH_MAX {
            return Err("its groups are too deep".to_owned());
        }
        let mut whole = self.particle(depth)?;
        let mut sign = None;
        loop {
            if self.reader.eat(")") {
                return Ok(whole);
            }
            let found = [",", "|"].into_iter().find(|sign| self.reader.eat(sign));
            if found.is_none() || sign.is_some() && sign != found {
                return Err(NO_MODEL.to_owned());
            }
            sign = found;
            let next = self.particle(depth)?;
            if found == Some("|") {
                whole.is_optional |= next.is_optional;
                whole.first.extend(next.first);
                whole.last.extend(next.last);
                continue;
            }
            self.join(&whole.last, &next.first)?;
            if whole.is_optional {
                whole.first.extend(next.first);
            }
            if next.is_optional {
                whole.last.extend(next.last);
            } else {
                whole.last = next.last;
            }
            whole.is_optional &= next.is_optional;
        }
    }

    fn name(&mut self) -> Result<Particle, String> {
        let name = self.reader.name().ok_or(NO_MODEL)?;
        let state = self.steps.len();
        if state > NAMES_MAX {
            return Err(TOO_LARGE.to_owned());
        }
        let next = self.names.len() as u32;
        let id = *self.names.entry(name.to_owned()).or_insert(next);
        self.name_of.push(id);
        self.steps.push(Vec::new());
        let state = state as u32;
        Ok(Particle { is_optional: false, first: vec![state], last: vec![state] })
    }

    /// Adds transitions from each state of `from` to each of `to`.
    fn join(&mut self, from: &[u32], to: &[u32]) -> Result<(), String> {
        *self.count += from.len() * to.len();
        if *self.count > STEPS_MAX {
            return Err(TOO_LARGE.to_owned());
        }
        for state in from {
            let steps = to.iter().map(|to| (self.name_of[*to as usize], *to));
            self.steps[*state as usize].extend(steps);
        }
        Ok(())
    }
}

const TOO_LARGE: &str = "it is too large to be checked";

#[cfg(test)]
mod tests {
    use super::*;

    fn of(model: &str) -> Result<ContentModel, String> {
        ContentModel::of(model, &mut 0)
    }

    /// Whether children, one letter each, match a model.
    fn fits(model: &str, children: &str) -> bool {
        let Ok(ContentModel::Children(automaton)) = of(model) else { panic!("{model}") };
        let names = children.chars().map(String::from);
        let end = names.into_iter().try_fold(Automaton::START, |state, name| automaton.step(state, &name));
        end.is_some_and(|state| automaton.accepts(state))
    }

    #[test]
    fn models_are_followed() {
        for (model, good, bad) in [
            ("(a)", &["a"][..], &["", "aa", "b"][..]),
            ("( a , b )", &["ab"], &["a", "ba", "abb"]),
            ("(a|b)*", &["", "abba"], &["c"]),
            ("(a?, b+)", &["b", "abb"], &["a", "", "ba"]),
            ("((a,b)|(b,c)*)", &["ab", "", "bcbc"], &["abbc", "b"]),
            ("(a,(b|(c,d)+)?,e*)", &["a", "abe", "acdcdee"], &["acdeb", "abb", "ac"]),
            ("((a*)*)", &["", "aaa"], &["b"]),
            ("(a,(a?))", &["a", "aa"], &["", "aaa"]),
        ] {
            good.iter().for_each(|children| assert!(fits(model, children), "{model}: {children}"));
            bad.iter().for_each(|children| assert!(!fits(model, children), "{model}: {children}"));
        }
    }

    #[test]
    fn bytes_that_are_not_a_model_are_refused() {
        for model in
            ["(a,b|c)", "()", "(a", "a", "(a))", "(a,)", "(#PCDATA|a)", "(#PCDATA a)*", "(#PCDATA|a|a)*"]
        {
            assert!(of(model).is_err(), "{model}");
        }
        for model in ["((a,b)|(a,c))", "(a?,a)", "(a*,a)", "((a|b)*,a)"] {
            assert!(of(model).is_err_and(|why| why.contains("ambiguous")), "{model}");
        }
    }

    #[test]
    fn models_are_limited() {
        let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        assert!(of(&nested(GROUPS_DEPTH_MAX)).is_ok());
        assert!(of(&nested(GROUPS_DEPTH_MAX + 1)).is_err());
        let names = |count: usize, sign: &str| {
            format!("({})", (0..count).map(|name| format!("n{name}")).collect::<Vec<_>>().join(sign))
        };
        assert!(of(&names(NAMES_MAX, ",")).is_ok());
        assert!(of(&names(NAMES_MAX + 1, ",")).is_err());
        assert!(of(&(names(1999, "|") + "*")).is_ok());
        assert!(of(&(names(2001, "|") + "*")).is_err());
    }
}
