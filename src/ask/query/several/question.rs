//! Queries an archive: from a query's text to page ids and rows.

use std::collections::HashSet;

use archive_base::access::Access;
use archive_books::search::{self, Statistics};
use archive_storage::{Store, UrlId};
use chrono::{DateTime, Utc};

use crate::query::language::{Context, Error, Plan, Value, Zone};
use crate::query::rows::{FullText, Rows as _, Running, Seen, UnreadRows};
use crate::query::run::Answer;
use crate::query::several::indexes::Indexes;
use crate::query::several::merge::Together;
use crate::query::several::portions::Portion;

/// A query that is valid for an archive, ready to run.
#[derive(Debug)]
pub struct Question<'a> {
    /// The archives to query.
    pub rows: Together<'a>,
    /// The plan of the query.
    pub plan: Plan,
    /// Word statistics over all archives, if some are queried elsewhere.
    of_all: Option<Statistics>,
}

impl<'a> Question<'a> {
    /// Plans a query as of `now`, which `30 days ago` is relative to; it does not find pages that `access` hides.
    ///
    /// # Errors
    /// [`Error::Query`] for a mistake in the text, and what cannot be read.
    pub fn new(store: &'a Store, access: Access, text: &str, now: DateTime<Utc>) -> Result<Self, Error> {
        Self::of(vec![(store, access)], text, now)
    }

    /// Like [`Question::new`] for several archives, as if they were one.
    ///
    /// # Errors
    /// As [`Question::new`], and when two of them have captured pages of the same site.
    pub fn of(archives: Vec<(&'a Store, Access)>, text: &str, now: DateTime<Utc>) -> Result<Self, Error> {
        let mut rows = Together::new(archives).map_err(|error| Error::Rows(error.into()))?;
        rows.expect_at(now);
        let of_several = rows.are_several();
        let plan = Plan::parse(text, &Context { now, of_several, ..Context::of(&rows) })?;
        Ok(Self { rows, plan, of_all: None })
    }

    /// Returns the pages that a query for pages selects now, in its order and within its limits.
    ///
    /// # Errors
    /// As [`Question::new`] and [`Question::pages`], and [`Error::Sites`] or [`Error::NotPages`] for a query for something
    /// else.
    pub fn pages_of(store: &'a Store, access: Access, text: &str) -> Result<Vec<UrlId>, Error> {
        Self::new(store, access, text, Utc::now())?.of_pages()?.pages()
    }

    /// A planned query over the archive at index `place` of several; the others are queried elsewhere. Dates and times
    /// without a zone are in UTC, since other machines may be in other zones.
    ///
    /// # Errors
    /// As [`Question::new`].
    pub fn part(store: &'a Store, access: Access, plan: Plan, place: usize) -> Result<Self, Error> {
        let rows = Together::part(store, access, place).map_err(|error| Error::Rows(error.into()))?;
        Ok(Self { rows, plan, of_all: None })
    }

    /// Like [`Question::new`] for one of several archives, each of which selects by itself, so that the query may use
    /// fields whose values differ between archives. Dates and times without a zone are in UTC.
    ///
    /// # Errors
    /// As [`Question::new`], and [`Error::NotOfEach`].
    pub fn of_each(store: &'a Store, access: Access, text: &str, now: DateTime<Utc>) -> Result<Self, Error> {
        let mut rows = Together::new(vec![(store, access)]).map_err(|error| Error::Rows(error.into()))?;
        rows.expect_at(now);
        let plan = Plan::parse(text, &Context { now, zone: Zone::Utc, ..Context::of(&rows) })?;
        plan.expect_of_each()?;
        Ok(Self { rows, plan, of_all: None })
    }

    /// Returns the statistics of the searched words in the archive.
    ///
    /// # Errors
    /// As [`Question::answer`].
    pub fn statistics(&self) -> Result<Statistics, Error> {
        let views = match self.index()? {
            Some(index) => index.into_views(),
            None if self.plan.reads_texts() => return Err(Error::NoIndex),
            None => Vec::new(),
        };
        let mut all = Statistics::default();
        for view in views {
            all.add(view.statistics(self.plan.texts(), None).map_err(|error| Error::Search(error.into()))?);
        }
        Ok(all)
    }

    /// Sets the statistics of the words over all archives.
    #[must_use]
    pub fn with_statistics(self, of_all: Option<Statistics>) -> Self {
        Self { of_all, ..self }
    }

    /// Passes the archive's portions of the answer to `take`, see [`Plan::portions`].
    ///
    /// # Errors
    /// As [`Plan::portions`].
    pub fn portions(
        &self,
        is_captured: &[bool],
        take: &mut dyn FnMut(Portion) -> Result<(), Error>,
    ) -> Result<Option<u64>, Error> {
        let index = self.index()?;
        let index = index.as_ref().map(|index| index as &dyn FullText);
        self.plan.portions(&self.rows, index, is_captured, take)
    }

    /// Sets the limits for running the query.
    #[must_use]
    pub fn within(mut self, running: Running) -> Self {
        self.rows.run_within(running);
        self
    }

    /// Checks that the query selects pages.
    ///
    /// # Errors
    /// [`Error::Sites`], [`Error::NotPages`].
    pub fn of_pages(self) -> Result<Self, Error> {
        self.plan.expect_pages()?;
        Ok(self)
    }

    /// Returns the answer.
    ///
    /// # Errors
    /// [`Error::NoIndex`] if it needs the full-text index of an archive that has none, and what cannot be read.
    pub fn answer(&self) -> Result<Answer, Error> {
        let index = self.index()?;
        self.plan.run(&self.rows, index.as_ref().map(|index| index as &dyn FullText))
    }

    /// Passes each row of the answer to `take` as soon as it is known, and returns how many matched
    /// ([`Answer::matched`]).
    ///
    /// # Errors
    /// As [`Question::answer`], and what `take` reports.
    pub fn each(&self, take: &mut dyn FnMut(Vec<Value>) -> Result<(), Error>) -> Result<u64, Error> {
        let index = self.index()?;
        self.plan.run_each(&self.rows, index.as_ref().map(|index| index as &dyn FullText), take)
    }

    /// The rows that the last run left out because their records cannot be read, if any.
    #[must_use]
    pub fn unread(&self) -> Option<UnreadRows> {
        self.rows.running().unread()
    }

    /// The statistics of the last run, if the query is explained.
    #[must_use]
    pub fn seen(&self) -> Option<Seen> {
        self.rows.running().seen()
    }

    /// Returns the pages that the query selects, in its order and within its limits; for sites or hosts, all their
    /// pages; for captures, their pages.
    ///
    /// # Errors
    /// As [`Question::answer`].
    pub fn pages(&self) -> Result<Vec<UrlId>, Error> {
        let index = self.index()?;
        self.plan.pages_found(&self.rows, index.as_ref().map(|index| index as &dyn FullText))
    }

    /// As [`Question::pages`], with the numbers that the pages have in their archives, of which there are `archives`.
    ///
    /// # Errors
    /// As [`Question::answer`].
    pub fn pages_by_archive(&self, archives: usize) -> Result<Vec<HashSet<UrlId>>, Error> {
        let mut found = vec![HashSet::new(); archives];
        for page in self.pages()? {
            let (_, archive, id) = self.rows.origin(page);
            found[archive].insert(id);
        }
        Ok(found)
    }

    fn index(&self) -> Result<Option<Indexes<'_, 'a>>, Error> {
        if !self.plan.searches_text() {
            return Ok(None);
        }
        match self.rows.views(self.plan.as_of, None) {
            Ok(mut views) => {
                for (view, of_all) in views.iter_mut().zip(&self.of_all) {
                    view.join_all(of_all.clone());
                }
                Ok(Some(Indexes::new(&self.rows, views)))
            }
            Err(error @ search::SearchError::NoVersions) if self.plan.reads_texts() => {
                Err(Error::NoVersions(error))
            }
            Err(search::SearchError::NoVersions | search::SearchError::Missing { .. }) => Ok(None),
            Err(error) => Err(Error::Search(error.into())),
        }
    }
}
