//! Queries that are also sent to archives on other machines: what cannot be asked there, and relations between pages, of which each
//! archive has a part.

use std::collections::HashSet;

use archive_grammar::{Relation, Target};

use super::columns::{Column, ColumnKind, Path};
use super::expr::Expr;
use super::plan::{Heading, Plan, Scores, Search};
use super::related::related;
use super::rows::{PageText, Rows, RowsError};
use super::{Error, Together};

impl Plan {
    /// Refuses what archives on other machines cannot be asked for.
    ///
    /// # Errors
    /// [`Error::NotElsewhere`].
    pub fn expect_portions(&self) -> Result<(), Error> {
        for search in &self.searches {
            let what = match search {
                Search::Url(Relation::SameContentAs, _) | Search::Duplicates => "pages of equal content",
                Search::Pages(Relation::SameContentAs, _) => "pages of equal content",
                Search::Pages(_, inner) if inner.target != Target::Pages => {
                    "relations to sites, hosts and captures"
                }
                Search::Pages(_, inner) => {
                    inner.expect_portions()?;
                    continue;
                }
                _ => continue,
            };
            return Err(Error::NotElsewhere { what });
        }
        Ok(())
    }

    /// Makes sure that it chooses pages, or their sites, hosts or captures, and that each of several archives finds its own, once it
    /// is told what all know: nothing is limited or drawn.
    ///
    /// # Errors
    /// [`Error::NotPages`], [`Error::NotWhole`].
    pub fn expect_whole(&self) -> Result<(), Error> {
        if let Some(what) = self.other_than_pages() {
            return Err(Error::NotPages { what });
        }
        let is_whole = self.limit.is_none() && self.offset == 0 && self.sample.is_none();
        if is_whole { Ok(()) } else { Err(Error::NotWhole) }
    }

    /// Makes sure that each of several archives finds by itself what of its own matches: nothing is limited or drawn, or depends on what
    /// others know.
    ///
    /// # Errors
    /// [`Error::NotOfEach`].
    pub fn expect_of_each(&self) -> Result<(), Error> {
        let is_whole = self.limit.is_none() && self.offset == 0 && self.sample.is_none();
        let is_own = is_whole && self.scores != Scores::Decide && self.relations().next().is_none();
        if is_own { Ok(()) } else { Err(Error::NotOfEach) }
    }

    /// The plan of an inner query, by its place among the searches of each level, for the URLs of its pages; none if there is no such query.
    #[must_use]
    pub fn inner(&self, path: &[usize]) -> Option<Self> {
        let Some((first, rest)) = path.split_first() else { return Some(self.clone()) };
        let Search::Pages(_, plan) = self.searches.get(*first)? else { return None };
        let headings = vec![Heading { name: "url".to_owned(), kind: ColumnKind::Text }];
        let select = vec![Expr::Field(Path::from(Column::Url))];
        Self { select, headings, ..Self::clone(plan) }.inner(rest)
    }

    /// Searches that only all archives together can answer, by their places, with the URL of the other page unless an inner query
    /// finds the others.
    pub fn relations(&self) -> impl Iterator<Item = (usize, Relation, Option<&str>)> {
        self.searches.iter().enumerate().filter_map(|(place, search)| match search {
            // An archive with a link to a URL knows the URL: each archive answers for its own pages.
            Search::Url(relation @ Relation::LinkedFrom, url) => Some((place, *relation, Some(url.as_str()))),
            Search::Pages(relation, _) => Some((place, *relation, None)),
            _ => None,
        })
    }

    /// The same plan, once all archives together have found what [`Plan::relations`] needs: the other pages, or those that they link
    /// to. None if their number differs.
    #[must_use]
    pub fn with_related(mut self, related: Vec<Vec<String>>) -> Option<Self> {
        let places: Vec<(usize, Relation)> =
            self.relations().map(|(place, relation, _)| (place, relation)).collect();
        if places.len() != related.len() {
            return None;
        }
        for ((place, relation), urls) in places.into_iter().zip(related) {
            let relation = Some(relation).filter(|relation| *relation != Relation::LinkedFrom);
            *self.searches.get_mut(place)? = Search::Urls(relation, urls);
        }
        Some(self)
    }
}

impl Together<'_> {
    /// The URLs of pages that some pages link to.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn targets(&self, urls: &[String]) -> Result<Vec<String>, RowsError> {
        let ids = urls.iter().filter_map(|url| self.find(url).transpose());
        let found = related(self, Relation::LinkedFrom, &ids.collect::<Result<HashSet<_>, _>>()?)?;
        let mut targets = Vec::new();
        for id in found {
            if let Some(row) = self.page(id)? {
                targets.extend(self.text(&row, PageText::Url)?.map(std::borrow::Cow::into_owned));
            }
        }
        Ok(targets)
    }
}
