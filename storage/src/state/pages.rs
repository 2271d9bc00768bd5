//! Pages and visits.

use super::{CashWritten, State};
use crate::checkpoint::{Result, StateError};
use crate::ids::UrlId;
use crate::pages::{Page, Visit, VisitId, VisitRecord};

/// Rows of a table whose partners in another one are read together: they take less than 8 MiB, so that the allocator keeps the room.
pub const ROWS_TOGETHER: usize = 1 << 15;

/// Pages for which it is worth to go through each table once ([`State::known_of`]); they take some 60 MB.
pub const PAGES_TOGETHER: usize = 1 << 18;

impl State {
    /// What is known of a URL.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    #[inline]
    pub fn page(&self, url: UrlId) -> Result<Page> {
        self.pages.get(url.0)?.ok_or_else(|| unknown(url))
    }

    /// Replaces what is known of a URL, except its `visit`.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    #[inline]
    pub fn set_page(&mut self, url: UrlId, page: &Page) -> Result<()> {
        self.update_page(url, |stored| *stored = *page)
    }

    /// Changes what is known of a URL, except its `visit`. The page's neighbours become cheap to reach.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    #[inline]
    pub fn update_page<T>(&mut self, url: UrlId, change: impl FnOnce(&mut Page) -> T) -> Result<T> {
        self.writable()?;
        let mut moved = 0;
        let change = |page: &mut Page| {
            let (visit, cash) = (page.visit, page.cash);
            let outcome = change(page);
            page.visit = visit;
            moved = page.cash.wrapping_sub(cash);
            outcome
        };
        let outcome = self.pages.update(url.0, change)?.ok_or_else(|| unknown(url))?;
        self.cash_written.pages = self.cash_written.pages.wrapping_add(moved);
        Ok(outcome)
    }

    /// By how much all that was written since the state was opened has changed the sums of `cash`.
    #[must_use]
    pub fn cash_written(&self) -> CashWritten {
        self.cash_written
    }

    /// All pages from a URL on, in order of discovery; stops after the first error.
    pub fn pages(&self, from: UrlId) -> impl Iterator<Item = Result<(UrlId, Page)>> + '_ {
        self.pages.scan(from.0).map(|page| page.map(|(id, page)| (UrlId(id), page)))
    }

    /// All pages with their visits, in order of discovery; else as [`State::visits_of`].
    pub fn pages_with_visits(&self) -> impl Iterator<Item = Result<(UrlId, Page, Option<Visit>)>> + '_ {
        self.visits_of((0..self.pages.len()).map(UrlId))
    }

    /// Some pages with their visits, in the order of the URLs; stops after the first error. Many are read together, each table
    /// in its own order.
    pub fn visits_of<'a>(
        &'a self,
        urls: impl Iterator<Item = UrlId> + 'a,
    ) -> impl Iterator<Item = Result<(UrlId, Page, Option<Visit>)>> + 'a {
        together(urls, |urls| self.known_of(urls))
    }

    /// The same at once: each table is gone through once, where [`State::visits_of`] does so for every [`ROWS_TOGETHER`].
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn known_of(&self, urls: &[UrlId]) -> Result<Vec<(UrlId, Page, Option<Visit>)>> {
        let pages = self.pages_of(urls)?;
        let ids: Vec<u32> = pages.iter().map(|page| page.visit.map_or(u32::MAX, |it| it.0)).collect();
        let found = urls.iter().zip(pages).zip(self.visits.gather(&ids)?);
        Ok(found.map(|((url, page), it)| (*url, page, it.map(|it| it.visit))).collect())
    }

    /// Some pages, in the order of the URLs.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn pages_of(&self, urls: &[UrlId]) -> Result<Vec<Page>> {
        let numbers: Vec<u32> = urls.iter().map(|url| url.0).collect();
        let pages = self.pages.gather(&numbers)?.into_iter().zip(urls);
        pages.map(|(page, url)| page.ok_or_else(|| unknown(*url))).collect()
    }

    /// Visits with some rising numbers, which count first fetches, and their pages, up to the last one there is; else as
    /// [`State::visits_of`].
    pub fn visits_with_pages<'a>(
        &'a self,
        numbers: impl Iterator<Item = u32> + 'a,
    ) -> impl Iterator<Item = Result<(UrlId, Page, Visit)>> + 'a {
        together(numbers.take_while(|number| *number < self.visits.len()), |ids| {
            let visits: Vec<VisitRecord> = self.visits.gather(ids)?.into_iter().flatten().collect();
            let urls: Vec<u32> = visits.iter().map(|record| record.url.0).collect();
            let pairs = visits.into_iter().zip(self.pages.gather(&urls)?);
            let known = pairs.map(|(VisitRecord { url, visit }, page)| {
                page.map(|page| (url, page, visit)).ok_or_else(|| unknown(url))
            });
            known.collect()
        })
    }

    /// The first of every [`ROWS_TOGETHER`] visits, which [`State::visits_with_pages`] reads at a time: for passes on several processors.
    #[must_use]
    pub fn visit_parts(&self) -> Vec<u32> {
        (0..self.visits.len()).step_by(ROWS_TOGETHER).collect()
    }

    /// What is known of a URL's fetches; `None` before the first.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn visit(&self, url: UrlId) -> Result<Option<Visit>> {
        match self.page(url)?.visit {
            Some(visit) => Ok(self.visits.get(visit.0)?.map(|record| record.visit)),
            None => Ok(None),
        }
    }

    /// Replaces what is known of a URL's fetches, except what the store keeps: `captures`, `last_capture`,
    /// `links`, `version`, `validators`.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn set_visit(&mut self, url: UrlId, visit: &Visit) -> Result<()> {
        self.update_visit(url, |stored| *stored = *visit)
    }

    /// Changes what is known of a URL's fetches, except what the store keeps: `captures`, `last_capture`,
    /// `links`, `version`, `validators`.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn update_visit<T>(&mut self, url: UrlId, change: impl FnOnce(&mut Visit) -> T) -> Result<T> {
        self.writable()?;
        let id = self.visit_of(url)?;
        let change = |record: &mut VisitRecord| {
            let kept = record.visit;
            let outcome = change(&mut record.visit);
            let visit = &mut record.visit;
            (visit.captures, visit.last_capture, visit.links) =
                (kept.captures, kept.last_capture, kept.links);
            (visit.version, visit.validators) = (kept.version, kept.validators);
            outcome
        };
        self.visits.update(id.0, change)?.ok_or_else(|| unknown(url))
    }

    /// All visits in order of first fetches, from the one with a number on; stops after the first error.
    pub fn visits(&self, from: u32) -> impl Iterator<Item = Result<(UrlId, Visit)>> + '_ {
        self.visits.scan(from).map(|visit| visit.map(|(_, record)| (record.url, record.visit)))
    }

    /// URLs that were fetched.
    #[must_use]
    pub fn visit_count(&self) -> u32 {
        self.visits.len()
    }

    /// A URL's visit, made now if it has none.
    pub(super) fn visit_of(&mut self, url: UrlId) -> Result<VisitId> {
        // Changing nothing brings the block into memory, so that the change below can't fail halfway.
        if let Some(visit) = self.pages.update(url.0, |page| page.visit)?.ok_or_else(|| unknown(url))? {
            return Ok(visit);
        }
        let visit = VisitId(self.visits.push(&VisitRecord { url, visit: Visit::default() })?);
        let outcome = self.pages.update(url.0, |page| page.visit = Some(visit));
        self.finish(outcome)?;
        Ok(visit)
    }
}

/// Gives what is made of many numbers at a time one by one; stops after the first error.
fn together<N, T>(
    mut numbers: impl Iterator<Item = N>,
    mut make: impl FnMut(&[N]) -> Result<Vec<T>>,
) -> impl Iterator<Item = Result<T>> {
    let mut made = Vec::new().into_iter();
    let mut is_over = false;
    std::iter::from_fn(move || {
        if made.len() == 0 && !is_over {
            let taken: Vec<N> = numbers.by_ref().take(ROWS_TOGETHER).collect();
            is_over = taken.is_empty();
            match make(&taken) {
                Ok(rows) => made = rows.into_iter(),
                Err(error) => {
                    is_over = true;
                    return Some(Err(error));
                }
            }
        }
        made.next().map(Ok)
    })
}

pub(super) fn unknown(url: UrlId) -> StateError {
    StateError::Unknown { what: "URL", id: u64::from(url.0) }
}
