//! Pages and visits.

use super::{CashWritten, State};
use crate::checkpoint::{Result, StateError};
use crate::ids::UrlId;
use crate::pages::{Page, Visit, VisitId, VisitRecord};

/// Number of rows of a table whose counterparts in another table are read together. They take less than 8 MiB, so that
/// the allocator keeps the memory.
pub const ROWS_TOGETHER: usize = 1 << 15;

/// Number of pages for which scanning each table once pays off ([`State::known_of`]); they take about 60 MB.
pub const PAGES_TOGETHER: usize = 1 << 18;

impl State {
    /// The page record of a URL.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    #[inline]
    pub fn page(&self, url: UrlId) -> Result<Page> {
        if let Some((page, _)) = self.veiled(url) {
            return Ok(*page);
        }
        self.pages.get(url.0)?.ok_or_else(|| unknown(url))
    }

    /// Replaces the page record of a URL, except its `visit`.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    #[inline]
    pub fn set_page(&mut self, url: UrlId, page: &Page) -> Result<()> {
        self.update_page(url, |stored| *stored = *page)
    }

    /// Changes the page record of a URL, except its `visit`. Neighbouring pages become cheap to access.
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

    /// Total change that all writes since opening have made to the sums of `cash`.
    #[must_use]
    pub fn cash_written(&self) -> CashWritten {
        self.cash_written
    }

    /// All pages from a URL on, in the order of discovery; stops after the first error.
    pub fn pages(&self, from: UrlId) -> impl Iterator<Item = Result<(UrlId, Page)>> + '_ {
        self.pages.scan(from.0).map(|page| {
            let (id, page) = page?;
            Ok((UrlId(id), self.veiled(UrlId(id)).map_or(page, |(shown, _)| *shown)))
        })
    }

    /// All pages with their visits, in the order of discovery; otherwise as [`State::visits_of`].
    pub fn pages_with_visits(&self) -> impl Iterator<Item = Result<(UrlId, Page, Option<Visit>)>> + '_ {
        self.visits_of((0..self.pages.len()).map(UrlId))
    }

    /// Some pages with their visits, in the given order; stops after the first error. Reads them in batches, each table
    /// in its own order.
    pub fn visits_of<'a>(
        &'a self,
        urls: impl Iterator<Item = UrlId> + 'a,
    ) -> impl Iterator<Item = Result<(UrlId, Page, Option<Visit>)>> + 'a {
        together(urls, |urls| self.known_of(urls))
    }

    /// As [`State::visits_of`], but all at once: scans each table once instead of once per [`ROWS_TOGETHER`] pages.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn known_of(&self, urls: &[UrlId]) -> Result<Vec<(UrlId, Page, Option<Visit>)>> {
        let pages = self.pages_of(urls)?;
        let ids: Vec<u32> = pages.iter().map(|page| page.visit.map_or(u32::MAX, |it| it.0)).collect();
        let found = urls.iter().zip(pages).zip(self.visits.gather(&ids)?);
        let known = found.map(|((url, page), it)| match self.veiled(*url) {
            Some((page, visit)) => (*url, *page, *visit),
            None => (*url, page, it.map(|it| it.visit)),
        });
        Ok(known.collect())
    }

    /// The page records of some URLs, in the given order.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn pages_of(&self, urls: &[UrlId]) -> Result<Vec<Page>> {
        let numbers: Vec<u32> = urls.iter().map(|url| url.0).collect();
        let pages = self.pages.gather(&numbers)?.into_iter().zip(urls);
        let shown = |url: &UrlId| self.veiled(*url).map(|(page, _)| *page);
        pages.map(|(page, url)| shown(url).or(page).ok_or_else(|| unknown(*url))).collect()
    }

    /// The visits with some ascending numbers, in the order of first fetches, and their pages, up to the last existing
    /// one; otherwise as [`State::visits_of`].
    pub fn visits_with_pages<'a>(
        &'a self,
        numbers: impl Iterator<Item = u32> + 'a,
    ) -> impl Iterator<Item = Result<(UrlId, Page, Visit)>> + 'a {
        together(numbers.take_while(|number| *number < self.visits.len()), |ids| {
            let visits: Vec<VisitRecord> = self.visits.gather(ids)?.into_iter().flatten().collect();
            let urls: Vec<u32> = visits.iter().map(|record| record.url.0).collect();
            let pairs = visits.into_iter().zip(self.pages.gather(&urls)?);
            let known = pairs.filter_map(|(VisitRecord { url, visit }, page)| match self.veiled(url) {
                Some((page, visit)) => visit.map(|visit| Ok((url, *page, visit))),
                None => Some(page.map(|page| (url, page, visit)).ok_or_else(|| unknown(url))),
            });
            known.collect()
        })
    }

    /// The first number of every batch of [`ROWS_TOGETHER`] visits that [`State::visits_with_pages`] reads, for passes
    /// on several threads.
    #[must_use]
    pub fn visit_parts(&self) -> Vec<u32> {
        (0..self.visits.len()).step_by(ROWS_TOGETHER).collect()
    }

    /// The visit record of a URL; `None` before the first fetch.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn visit(&self, url: UrlId) -> Result<Option<Visit>> {
        if let Some((_, visit)) = self.veiled(url) {
            return Ok(*visit);
        }
        match self.page(url)?.visit {
            Some(visit) => Ok(self.visits.get(visit.0)?.map(|record| record.visit)),
            None => Ok(None),
        }
    }

    /// Replaces the visit record of a URL, except the fields that the store maintains: `captures`, `last_capture`,
    /// `links`, `version`, `validators`.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn set_visit(&mut self, url: UrlId, visit: &Visit) -> Result<()> {
        self.update_visit(url, |stored| *stored = *visit)
    }

    /// Changes the visit record of a URL, except the fields that the store maintains: `captures`, `last_capture`,
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

    /// All visits from a number on, in the order of first fetches; stops after the first error.
    pub fn visits(&self, from: u32) -> impl Iterator<Item = Result<(UrlId, Visit)>> + '_ {
        self.visits.scan(from).filter_map(|visit| match visit {
            Ok((_, VisitRecord { url, visit })) => match self.veiled(url) {
                Some((_, shown)) => shown.map(|shown| Ok((url, shown))),
                None => Some(Ok((url, visit))),
            },
            Err(error) => Some(Err(error)),
        })
    }

    /// Number of URLs that were fetched.
    #[must_use]
    pub fn visit_count(&self) -> u32 {
        self.visits.len()
    }

    /// The id of a URL's visit, created if it has none.
    pub(super) fn visit_of(&mut self, url: UrlId) -> Result<VisitId> {
        // An update that changes nothing loads the block, so that the update below cannot fail halfway.
        if let Some(visit) = self.pages.update(url.0, |page| page.visit)?.ok_or_else(|| unknown(url))? {
            return Ok(visit);
        }
        let visit = VisitId(self.visits.push(&VisitRecord { url, visit: Visit::default() })?);
        let outcome = self.pages.update(url.0, |page| page.visit = Some(visit));
        self.finish(outcome)?;
        Ok(visit)
    }
}

/// Yields rows that `make` produces in batches; stops after the first error.
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
