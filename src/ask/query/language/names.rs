//! Resolves names of fields, and suggests a field for an unknown name.

use archive_books::columns::LIKELY;
use archive_grammar::{QueryRows, nearest};

use crate::query::language::fields::{ALIASES, Column, FieldPath, KNOWN, Via, plural, shown};

/// Why a name is not a field.
pub(crate) struct Unknown {
    pub(crate) message: String,
    pub(crate) suggestion: Option<String>,
}

/// The fields of one target.
#[derive(Clone, Copy)]
pub(crate) struct FieldNames<'a> {
    pub(crate) target: QueryRows,
    /// Names of the store's additional numeric page columns.
    pub(crate) pages: &'a [String],
    /// Names of the store's additional numeric site columns.
    pub(crate) sites: &'a [String],
}

impl<'a> FieldNames<'a> {
    /// Resolves a field called `name` (in normal form).
    pub(crate) fn find(&self, name: &str) -> Result<FieldPath, Unknown> {
        let Some((prefix, rest)) = name.split_once('.') else {
            return self.own(name).map(FieldPath::from).or_else(|unknown| self.of_site(name).ok_or(unknown));
        };
        let found = Via::EACH.into_iter().find(|(_, known)| *known == prefix);
        match found.and_then(|(via, _)| Some((via, via.of(self.target)?))) {
            Some((via, target)) => {
                Ok(FieldPath { via: Some(via), column: Self { target, ..*self }.own(rest)? })
            }
            None => {
                let known = Via::EACH.iter().filter(|(via, _)| via.of(self.target).is_some());
                let known: Vec<String> = known.map(|(_, name)| format!("`{name}.`")).collect();
                let suggestion = match known.as_slice() {
                    [] => format!("{} have no related rows", plural(self.target)),
                    known => format!("the possible prefixes are {}", known.join(", ")),
                };
                let message = format!("{} have no `{prefix}.`", plural(self.target));
                Err(Unknown { message, suggestion: Some(suggestion) })
            }
        }
    }

    /// An additional number of a page's site may be written as if it were the page's: `likely` for `site.likely`.
    fn of_site(&self, name: &str) -> Option<FieldPath> {
        let index = self.sites.iter().position(|known| known == name);
        let index = index.filter(|_| self.target == QueryRows::Pages)?;
        Some(FieldPath { via: Some(Via::Site), column: Column::Named(index) })
    }

    fn own(&self, name: &str) -> Result<Column, Unknown> {
        let named = |name: &str| {
            let known = KNOWN.iter().find(|known| known.name == name && known.of.contains(&self.target));
            known.map(|known| known.column)
        };
        let proper = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, proper)| *proper);
        if let Some(column) = named(name).or_else(|| named(proper?)) {
            return Ok(column);
        }
        if let Some(index) = self.named().iter().position(|known| known == name) {
            return Ok(Column::Named(index));
        }
        let proper = proper.unwrap_or(name);
        if let Some(elsewhere) = KNOWN.iter().find(|known| known.name == proper) {
            return Err(self.elsewhere(name, elsewhere.of));
        }
        let aliases = ALIASES.iter().filter(|(_, proper)| named(proper).is_some()).map(|(alias, _)| *alias);
        if name == LIKELY {
            return Err(Unknown {
                message: format!("there is no field `{name}` yet"),
                suggestion: Some("`archive review learn` creates it for pages and sites".to_owned()),
            });
        }
        let meant = nearest(name, self.names().chain(aliases));
        Err(Unknown {
            message: format!("there is no field `{}`", shown(name)),
            suggestion: Some(match meant {
                Some(meant) => format!("did you mean `{}`?", shown(meant)),
                None => format!("the fields are {}", self.names().map(shown).collect::<Vec<_>>().join(", ")),
            }),
        })
    }

    fn named(&self) -> &'a [String] {
        match self.target {
            QueryRows::Pages => self.pages,
            QueryRows::Sites => self.sites,
            _ => &[],
        }
    }

    fn elsewhere(&self, name: &str, of: &[QueryRows]) -> Unknown {
        let name = shown(name);
        let ways = Via::EACH
            .iter()
            .filter(|(via, _)| via.of(self.target).is_some_and(|of_via| of.contains(&of_via)));
        let mut suggestions: Vec<String> = ways.map(|(_, via)| format!("`{via}.{name} …`")).collect();
        suggestions
            .extend(of.first().map(|target| format!("ask for {}: `{target} {name} …`", plural(*target))));
        let others = match of.iter().map(|target| plural(*target)).collect::<Vec<_>>().as_slice() {
            [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
            others => others.concat(),
        };
        Unknown {
            message: format!("{} have no field `{name}`, only {others} have", plural(self.target)),
            suggestion: Some(suggestions.join(", or ")),
        }
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        let target = self.target;
        let own = KNOWN.iter().filter(move |known| known.of.contains(&target)).map(|known| known.name);
        own.chain(self.named().iter().map(String::as_str))
    }

    /// The columns shown if a query selects none.
    pub(crate) fn default_columns(&self, scored: bool) -> Vec<&'static str> {
        let columns: &[&str] = match self.target {
            QueryRows::Pages => &["importance", "url", "title", "type", "captures", "last_seen"],
            QueryRows::Sites => {
                &["importance", "site", "pages", "captures", "html", "xml", "other", "last_seen"]
            }
            QueryRows::Hosts => &["host", "site", "urls", "pages", "captures", "failures", "size"],
            QueryRows::Captures | QueryRows::Versions => {
                &["time", "url", "status", "kind", "change", "content_type", "size"]
            }
            QueryRows::Links => &["source", "target", "kind", "nofollow"],
        };
        scored.then_some("score").into_iter().chain(columns.iter().copied()).collect()
    }
}
