//! Queries that are also sent to archives on other machines: what they must not contain, and relations between pages,
//! which are spread over the archives.

use std::collections::HashSet;

use archive_grammar::{QueryRows, Relation};
use chrono::{DateTime, Utc};

use crate::query::language::{
    Column, ColumnKind, Context, Error, FieldPath, Found, Heading, Plan, PlannedExpr, Scores, Search, Zone,
};
use crate::query::rows::{PageText, Rows};
use crate::query::run::related;
use crate::query::several::merge::Together;

impl Plan {
    /// Plans `text` for several archives, some of them on other machines. Dates and times without a zone are in UTC.
    ///
    /// # Errors
    /// [`Error::Query`] for a mistake in the text, [`Error::NotElsewhere`].
    pub fn of_several(text: &str, now: DateTime<Utc>) -> Result<Self, Error> {
        let context = Context { of_several: true, elsewhere: true, ..Context::bare(now, Zone::Utc) };
        let plan = Self::parse(text, &context)?;
        plan.expect_portions()?;
        Ok(plan)
    }

    /// Checks that the query contains nothing that archives on other machines cannot answer.
    ///
    /// # Errors
    /// [`Error::NotElsewhere`].
    pub fn expect_portions(&self) -> Result<(), Error> {
        for search in &self.searches {
            let what = match search {
                Search::Url(Relation::SameContentAs, _) | Search::Duplicates => "pages of equal content",
                Search::Pages(Relation::SameContentAs, _) => "pages of equal content",
                Search::Url(Relation::Near, _) | Search::Pages(Relation::Near, _) => "copies of a text",
                Search::Pages(_, inner) if inner.target != QueryRows::Pages => {
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

    /// Checks that the query selects pages, or their sites, hosts or captures, and that each of several archives can
    /// select its own once it has what all of them know: no limit, offset or sample.
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

    /// Checks that each of several archives can select its own rows by itself: no limit, offset or sample, and nothing
    /// that depends on the other archives.
    ///
    /// # Errors
    /// [`Error::NotOfEach`].
    pub fn expect_of_each(&self) -> Result<(), Error> {
        let is_whole = self.limit.is_none() && self.offset == 0 && self.sample.is_none();
        let is_own = is_whole && self.scores != Scores::Decide && self.relations().next().is_none();
        if is_own { Ok(()) } else { Err(Error::NotOfEach) }
    }

    /// Returns the plan of an inner query, changed to select the URLs of its pages. `path` has the index of the search
    /// at each level. `None` if there is no such query.
    #[must_use]
    pub fn inner(&self, path: &[usize]) -> Option<Self> {
        let Some((first, rest)) = path.split_first() else { return Some(self.clone()) };
        let Search::Pages(_, plan) = self.searches.get(*first)? else { return None };
        let headings = vec![Heading { name: "url".to_owned(), kind: ColumnKind::Text }];
        let select = vec![PlannedExpr::Field(FieldPath::from(Column::Url))];
        Self { select, headings, ..Self::clone(plan) }.inner(rest)
    }

    /// Returns the searches that only all archives together can answer, by index, with the URL of the other page;
    /// `None` if an inner query finds the other pages.
    pub fn relations(&self) -> impl Iterator<Item = (usize, Relation, Option<&str>)> {
        self.searches.iter().enumerate().filter_map(|(place, search)| match search {
            // An archive with a link to a URL knows that URL, so that each archive answers the other relations for its
            // own pages.
            Search::Url(relation @ Relation::LinkedFrom, url) => Some((place, *relation, Some(url.as_str()))),
            Search::Pages(relation, _) => Some((place, *relation, None)),
            _ => None,
        })
    }

    /// Returns the plan with what all archives together have found for [`Plan::relations`]: the other pages, or the
    /// pages that they link to. `None` if the number of lists differs.
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
    /// Returns the URLs of the pages that the given pages link to.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn targets(&self, urls: &[String]) -> Found<Vec<String>> {
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
