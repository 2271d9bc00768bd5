//! Runs plans: filter, order, cut, and the values of the columns asked for.

use std::cmp::Ordering;
use std::collections::HashSet;

use archive_grammar::{Direction, Target};
use archive_storage::{SiteId, UrlId};

use super::columns::Column;
use super::filter::Subject;
use super::hits::Hits;
use super::plan::{Heading, Plan};
use super::rows::{PageRow, Rows, RowsError, SiteRow};
use super::subject::{PageSubject, SiteSubject, value};
use super::top::Top;
use super::value::Value;
use super::{Error, FullText, score};

/// The answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// One heading a column.
    pub headings: Vec<Heading>,
    /// The rows in order, each with one value a column.
    pub rows: Vec<Vec<Value>>,
    /// How many rows matched before offset and limit; none when the search could stop before it knew.
    pub matched: Option<u64>,
}

impl Plan {
    /// Runs the plan over `rows`, and over `full_text` when the plan searches text.
    ///
    /// # Errors
    /// [`Error::NoIndex`] when the plan needs an index that is not there; otherwise what `rows` and `full_text` report.
    pub fn run(&self, rows: &dyn Rows, full_text: Option<&dyn FullText>) -> Result<Answer, Error> {
        let (found, matched) = match self.target {
            Target::Pages => self.pages(rows, full_text)?,
            Target::Sites => self.sites(rows)?,
        };
        Ok(Answer { headings: self.headings.clone(), rows: found, matched })
    }

    /// The pages that the query finds, in its order and within its limits; a query for sites finds all pages of these.
    ///
    /// # Errors
    /// As [`Plan::run`].
    pub fn pages_found(
        &self,
        rows: &dyn Rows,
        full_text: Option<&dyn FullText>,
    ) -> Result<Vec<UrlId>, Error> {
        if self.target == Target::Pages {
            let hits = self.hits(full_text)?;
            return Ok(self.candidates(rows, &hits)?.0.into_iter().map(|found| found.row.id).collect());
        }
        let (sites, _) = self.select_sites(rows)?;
        let sites: HashSet<SiteId> = sites.into_iter().map(|site| site.id).collect();
        let mut pages = Vec::new();
        for row in rows.pages() {
            let row = row?;
            if sites.contains(&row.site) {
                pages.push(row.id);
            }
        }
        Ok(pages)
    }

    fn pages(
        &self,
        rows: &dyn Rows,
        full_text: Option<&dyn FullText>,
    ) -> Result<(Vec<Vec<Value>>, Option<u64>), Error> {
        let hits = self.hits(full_text)?;
        let (found, matched) = self.candidates(rows, &hits)?;
        let rows = found.into_iter().map(|kept| {
            let id = kept.row.id;
            let subject =
                PageSubject { rows, row: kept.row, score: kept.score, hits: &|index| hits.has(index, id) };
            self.select.iter().map(|column| value(&subject, *column)).collect()
        });
        Ok((rows.collect::<Result<_, RowsError>>()?, matched))
    }

    /// Whether the conditions of a query for pages that searches no text hold for one.
    ///
    /// # Errors
    /// When a text of the page cannot be read.
    pub fn selects(&self, rows: &dyn Rows, row: PageRow) -> Result<bool, Error> {
        Ok(self.holds(&PageSubject { rows, row, score: 0.0, hits: &|_| false })?)
    }

    /// The pages that match, in order and within the limits, and how many there were before offset and limit.
    fn candidates(&self, rows: &dyn Rows, hits: &Hits) -> Result<(Vec<Candidate>, Option<u64>), Error> {
        let mut search = PageSearch {
            plan: self,
            rows,
            hits,
            top: Top::new(self.last_row(), |left: &Candidate, right: &Candidate| self.before(left, right)),
            matched: 0,
        };
        let mut whole = true;
        match self.filter.as_ref().and_then(|filter| hits.candidates(filter)) {
            Some(candidates) if self.order.first() == Some(&(Column::Score, Direction::Descending)) => {
                whole = search.best_first(candidates)?;
            }
            Some(candidates) => {
                for id in candidates {
                    if let Some(row) = rows.page(id)? {
                        search.offer(row)?;
                    }
                }
            }
            None => {
                for row in rows.pages() {
                    search.offer(row?)?;
                }
            }
        }
        let matched = whole.then_some(search.matched);
        Ok((search.top.into_sorted().into_iter().skip(self.offset).collect(), matched))
    }

    fn hits(&self, full_text: Option<&dyn FullText>) -> Result<Hits, Error> {
        let mut found = Vec::with_capacity(self.searches.len());
        for search in &self.searches {
            let index = full_text.ok_or(Error::NoIndex)?;
            found.push(index.hits(&search.query).map_err(Error::Search)?);
        }
        Ok(Hits::new(&self.searches, found))
    }

    fn sites(&self, rows: &dyn Rows) -> Result<(Vec<Vec<Value>>, Option<u64>), Error> {
        let (found, matched) = self.select_sites(rows)?;
        let rows = found.into_iter().map(|row| {
            let subject = SiteSubject { rows, row };
            self.select.iter().map(|column| value(&subject, *column)).collect()
        });
        Ok((rows.collect::<Result<_, RowsError>>()?, Some(matched)))
    }

    /// The sites that a query for sites selects, in its order and within its limits, and how many there were before
    /// offset and limit. A query for pages selects none.
    ///
    /// # Errors
    /// When `rows` cannot be read.
    pub fn select_sites(&self, rows: &dyn Rows) -> Result<(Vec<SiteRow>, u64), Error> {
        if self.target != Target::Sites {
            return Ok((Vec::new(), 0));
        }
        let mut matched = 0;
        let mut top =
            Top::new(self.last_row(), |left: &(Vec<Value>, SiteRow), right: &(Vec<Value>, SiteRow)| {
                self.by_keys(&left.0, &right.0).then_with(|| left.1.id.cmp(&right.1.id))
            });
        for row in rows.sites() {
            let subject = SiteSubject { rows, row: row? };
            if self.holds(&subject)? {
                matched += 1;
                top.push((self.keys(&subject)?, subject.row));
            }
        }
        Ok((top.into_sorted().into_iter().skip(self.offset).map(|(_, row)| row).collect(), matched))
    }

    /// Rows up to the last one wanted.
    fn last_row(&self) -> Option<usize> {
        self.limit.map(|limit| limit.saturating_add(self.offset))
    }

    fn holds(&self, subject: &dyn Subject) -> Result<bool, RowsError> {
        self.filter.as_ref().map_or(Ok(true), |filter| filter.holds(subject))
    }

    fn keys(&self, subject: &dyn Subject) -> Result<Vec<Value>, RowsError> {
        self.order.iter().map(|(column, _)| value(subject, *column)).collect()
    }

    fn before(&self, left: &Candidate, right: &Candidate) -> Ordering {
        self.by_keys(&left.keys, &right.keys).then_with(|| left.row.id.cmp(&right.row.id))
    }

    /// The order of two rows by their keys; empty values come last in either direction.
    fn by_keys(&self, left: &[Value], right: &[Value]) -> Ordering {
        let pairs = left.iter().zip(right).zip(&self.order);
        let mut orders = pairs.map(|((left, right), (_, direction))| match (left, right) {
            (Value::Empty, Value::Empty) => Ordering::Equal,
            (Value::Empty, _) => Ordering::Greater,
            (_, Value::Empty) => Ordering::Less,
            _ if *direction == Direction::Descending => right.compare(left),
            _ => left.compare(right),
        });
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// A page that matched.
struct Candidate {
    keys: Vec<Value>,
    row: PageRow,
    score: f64,
}

/// A running search for pages.
struct PageSearch<'a, F> {
    plan: &'a Plan,
    rows: &'a dyn Rows,
    hits: &'a Hits,
    top: Top<Candidate, F>,
    matched: u64,
}

impl<F: Fn(&Candidate, &Candidate) -> Ordering> PageSearch<'_, F> {
    fn offer(&mut self, row: PageRow) -> Result<(), RowsError> {
        let hits = self.hits;
        let score = score::combined(hits.bm25(row.id), row.importance);
        let subject = PageSubject { rows: self.rows, row, score, hits: &|index| hits.has(index, row.id) };
        if self.plan.holds(&subject)? {
            self.matched += 1;
            self.top.push(Candidate { keys: self.plan.keys(&subject)?, row, score });
        }
        Ok(())
    }

    /// Offers candidates by falling BM25 and stops when not even the most important page could still get in; whether it
    /// saw them all.
    fn best_first(&mut self, candidates: Vec<UrlId>) -> Result<bool, RowsError> {
        let mut ranked: Vec<(f64, UrlId)> =
            candidates.into_iter().map(|id| (self.hits.bm25(id), id)).collect();
        ranked.sort_unstable_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
        let importance_max = self.rows.importance_max();
        for (bm25, id) in ranked {
            let best = score::combined(bm25, importance_max);
            if self.top.last().is_some_and(|last| best < last.score) {
                return Ok(false);
            }
            if let Some(row) = self.rows.page(id)? {
                self.offer(row)?;
            }
        }
        Ok(true)
    }
}
