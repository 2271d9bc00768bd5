//! Asking an archive: the one way from a query's text to the ids of pages and to rows.

use archive_storage::{Store, UrlId};
use chrono::{DateTime, Utc};

use super::{Answer, ArchiveRows, Context, Error, FullText, Plan};
use crate::access::Access;
use crate::search::{self, Reader, View};

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
    store: &'a Store,
    /// What it is asked of.
    pub rows: ArchiveRows<'a>,
    /// What it asks for.
    pub plan: Plan,
}

impl<'a> Question<'a> {
    /// Reads a query as of `now`, from which `30 days ago` counts; pages that `access` hides are not found.
    ///
    /// # Errors
    /// [`Error::Query`] for a mistake in the text, and what cannot be read.
    pub fn new(store: &'a Store, access: Access, text: &str, now: DateTime<Utc>) -> Result<Self, Error> {
        let rows = ArchiveRows::new(store, access).map_err(|error| Error::Rows(error.into()))?;
        let plan = Plan::parse(text, &Context { now, ..Context::of(&rows) })?;
        Ok(Self { store, rows, plan })
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
        self.plan.run(&self.rows, index.as_deref())
    }

    /// The pages that it finds, in its order and within its limits; of a query for sites or hosts all pages of these, and
    /// of one for captures their pages.
    ///
    /// # Errors
    /// As [`Question::answer`].
    pub fn pages(&self) -> Result<Vec<UrlId>, Error> {
        let index = self.index()?;
        self.plan.pages_found(&self.rows, index.as_deref())
    }

    fn index(&self) -> Result<Option<Box<dyn FullText + '_>>, Error> {
        if !self.plan.searches_text() {
            return Ok(None);
        }
        if let Some(before) = self.plan.as_of {
            return match View::past(self.store, self.rows.access.clone(), before) {
                Ok(view) => Ok(Some(Box::new(view))),
                Err(error @ search::Error::NoVersions) if self.plan.reads_texts() => {
                    Err(Error::NoVersions(error))
                }
                Err(search::Error::NoVersions | search::Error::Missing { .. }) => Ok(None),
                Err(error) => Err(Error::Search(error.into())),
            };
        }
        match Reader::open(&self.store.path().join(search::FOLDER)) {
            Ok(reader) => Ok(Some(Box::new(reader))),
            Err(search::Error::Missing { .. }) => Ok(None),
            Err(error) => Err(Error::Search(error.into())),
        }
    }
}
