//! Asking an archive: the one way from a query's text to the ids of pages and to rows.

use archive_storage::{Store, UrlId};
use chrono::{DateTime, Utc};

use super::indexes::Indexes;
use super::times::Zone;
use super::{Answer, Context, Error, FullText, Plan, Portion, Rows as _, Running, Seen, Together, Value};
use crate::access::Access;
use crate::search::{self, Statistics};

/// The pages that a query for pages finds, in its order and within its limits.
///
/// # Errors
/// [`Error::Query`] for a mistake in the text, [`Error::Sites`] for a query for sites, [`Error::NoIndex`] where the archive has
/// no full text, and what cannot be read.
pub fn select(store: &Store, access: Access, text: &str) -> Result<Vec<UrlId>, Error> {
    Question::new(store, access, text, Utc::now())?.of_pages()?.pages()
}

/// A query that makes sense for an archive, ready to be asked.
#[derive(Debug)]
pub struct Question<'a> {
    /// The archives that are asked.
    pub rows: Together<'a>,
    /// The plan of the query.
    pub plan: Plan,
    /// How often its words occur in all archives, if others are asked elsewhere.
    of_all: Option<Statistics>,
}

impl<'a> Question<'a> {
    /// Reads a query as of `now`, from which `30 days ago` counts; pages that `access` hides are not found.
    ///
    /// # Errors
    /// [`Error::Query`] for a mistake in the text, and what cannot be read.
    pub fn new(store: &'a Store, access: Access, text: &str, now: DateTime<Utc>) -> Result<Self, Error> {
        Self::of(vec![(store, access)], text, now)
    }

    /// The same for several archives, as if they were one.
    ///
    /// # Errors
    /// As [`Question::new`], and when two of them have captured pages of one site.
    pub fn of(archives: Vec<(&'a Store, Access)>, text: &str, now: DateTime<Utc>) -> Result<Self, Error> {
        let mut rows = Together::new(archives).map_err(|error| Error::Rows(error.into()))?;
        rows.expect_at(now);
        let of_several = rows.are_several();
        let plan = Plan::parse(text, &Context { now, of_several, ..Context::of(&rows) })?;
        Ok(Self { rows, plan, of_all: None })
    }

    /// The same for one of several archives, at a place among them, if the others are asked elsewhere. Days and hours without a zone
    /// are in UTC: others may be in another zone.
    ///
    /// # Errors
    /// As [`Question::new`].
    pub fn part(store: &'a Store, access: Access, plan: Plan, place: usize) -> Result<Self, Error> {
        let rows = Together::part(store, access, place).map_err(|error| Error::Rows(error.into()))?;
        Ok(Self { rows, plan, of_all: None })
    }

    /// The same for one of several archives, each of which finds by itself what of its own matches, so that the query may ask for
    /// what each has of its own.
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

    /// How often the words that it searches for occur in the archive.
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

    /// The same question with the statistics of its words in all archives.
    #[must_use]
    pub fn with_statistics(self, of_all: Option<Statistics>) -> Self {
        Self { of_all, ..self }
    }

    /// What the archive has of the answer, see [`Plan::portions`].
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

    /// The same with what its answer may take, from now on.
    #[must_use]
    pub fn within(mut self, running: Running) -> Self {
        self.rows.run_within(running);
        self
    }

    /// The same, if it asks for pages.
    ///
    /// # Errors
    /// [`Error::Sites`], [`Error::NotPages`].
    pub fn of_pages(self) -> Result<Self, Error> {
        self.plan.expect_pages()?;
        Ok(self)
    }

    /// The answer.
    ///
    /// # Errors
    /// [`Error::NoIndex`] where it needs the full text of an archive that has none, and what cannot be read.
    pub fn answer(&self) -> Result<Answer, Error> {
        let index = self.index()?;
        self.plan.run(&self.rows, index.as_ref().map(|index| index as &dyn FullText))
    }

    /// Passes each row of the answer to `take` as soon as it is known, and returns how many matched ([`Answer::matched`]).
    ///
    /// # Errors
    /// As [`Question::answer`], and what `take` reports.
    pub fn each(&self, take: &mut dyn FnMut(Vec<Value>) -> Result<(), Error>) -> Result<Option<u64>, Error> {
        let index = self.index()?;
        self.plan.run_each(&self.rows, index.as_ref().map(|index| index as &dyn FullText), take)
    }

    /// What was seen of it while it was answered, if it runs to be explained.
    #[must_use]
    pub fn seen(&self) -> Option<Seen> {
        self.rows.running().seen()
    }

    /// The pages that it finds, in its order and within its limits; of a query for sites or hosts all pages of these, and
    /// of one for captures their pages.
    ///
    /// # Errors
    /// As [`Question::answer`].
    pub fn pages(&self) -> Result<Vec<UrlId>, Error> {
        let index = self.index()?;
        self.plan.pages_found(&self.rows, index.as_ref().map(|index| index as &dyn FullText))
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
            Err(error @ search::Error::NoVersions) if self.plan.reads_texts() => {
                Err(Error::NoVersions(error))
            }
            Err(search::Error::NoVersions | search::Error::Missing { .. }) => Ok(None),
            Err(error) => Err(Error::Search(error.into())),
        }
    }
}
