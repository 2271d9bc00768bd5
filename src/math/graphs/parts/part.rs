//! One part: the values of its pages, and what flows in and out.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::path::Path;

use super::links::{PartLink, StoredRows, merge};
use super::{PartError, SLACK};
use crate::importance::rank::{Damping, RankError};

/// Bytes of memory per page while ranking, without links to other parts.
pub const PAGE_BYTES: usize = 32;

/// Everything that the pages of one part give to those of another, as totals.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowBatch {
    /// Its sender.
    pub from: usize,
    /// Its receiver.
    pub to: usize,
    /// Sequence number from this sender to this receiver, from 1.
    pub number: u64,
    /// Sum of the values, as in the sender's account.
    pub sum: f64,
    /// Values for each page of the receiver that pages of the sender link to, in ascending order of pages.
    pub values: Vec<f64>,
}

impl FlowBatch {
    /// Size in bytes when sent.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (8 * (self.values.len() + 4)) as u64
    }
}

/// A part's share of the bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartAccount {
    /// Residual of its own pages given what it has heard, outflow not yet sent, and possible rounding errors.
    pub kept: f64,
    /// Sum of what it has sent, by receiver.
    pub sent: Vec<f64>,
    /// Sum of what it has heard, by sender.
    pub heard: Vec<f64>,
    /// Sum of its values.
    pub total: f64,
    /// The highest share of a page's value that follows links.
    pub follows: f64,
}

/// Inflow from one other part.
#[derive(Debug, Default)]
struct Inlet {
    /// Own pages that it is for.
    pages: Vec<u32>,
    values: Vec<f64>,
    number: u64,
}

/// Outflow to one other part.
#[derive(Debug, Default)]
struct Outlet {
    /// Its range in the whole outflow.
    places: Range<usize>,
    /// The pages of the other part.
    pages: Vec<u32>,
    number: u64,
}

/// Pages of a graph, all links that leave them, and their values.
#[derive(Debug)]
pub struct GraphPart {
    number: usize,
    damping: Damping,
    inner: StoredRows,
    outer: StoredRows,
    /// For each page, what a unit of weight of its links gets from a unit of its value. Until links are complete, the
    /// sum of their weights.
    shares: Vec<f64>,
    values: Vec<f64>,
    gifts: Vec<f64>,
    income: Vec<f64>,
    outflow: Vec<f64>,
    inlets: Vec<Inlet>,
    outlets: Vec<Outlet>,
    /// Residual of its own pages, and what of it may be rounding errors; then the outflow not yet sent, and the possible
    /// rounding errors of what was sent.
    residual: f64,
    rounding: f64,
    unsent: f64,
    doubt: f64,
    account: PartAccount,
    /// Number of batches heard.
    batches: u64,
    /// Number of distinct links.
    pub links: u64,
    /// Number of sweeps over its own pages.
    pub sweeps: u32,
}

impl GraphPart {
    /// Creates part `number` (from 0) with `pages` pages and no links. If a folder is given, links are stored in a file
    /// there.
    ///
    /// # Errors
    /// When the damping is not in 0..1, or the file cannot be created.
    pub fn new(
        number: usize,
        pages: usize,
        is_weighted: bool,
        damping: Damping,
        folder: Option<&Path>,
    ) -> Result<Self, PartError> {
        if let Damping::Constant(damping) = damping
            && !(0.0..1.0).contains(&damping)
        {
            return Err(RankError::Damping(damping).into());
        }
        Ok(Self {
            number,
            damping,
            inner: StoredRows::new(is_weighted, folder)?,
            outer: StoredRows::new(is_weighted, folder)?,
            shares: vec![0.0; pages],
            values: Vec::new(),
            gifts: Vec::new(),
            income: Vec::new(),
            outflow: Vec::new(),
            inlets: Vec::new(),
            outlets: Vec::new(),
            residual: pages as f64,
            rounding: 0.0,
            unsent: 0.0,
            doubt: 0.0,
            account: PartAccount::default(),
            batches: 0,
            links: 0,
            sweeps: 0,
        })
    }

    /// Adds links. All links to a page must be added at once, in ascending order of parts and of pages in them. A link
    /// that occurs twice counts once, or, if links are weighted, with the sum of the weights.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&mut self, mut links: Vec<PartLink>) -> io::Result<()> {
        merge(&mut links, self.inner.is_weighted);
        links.iter().for_each(|link| self.shares[link.from as usize] += f64::from(link.weight));
        self.links += links.len() as u64;
        for row in links.chunk_by(|a, b| a.target() == b.target()) {
            let (part, to) = (usize::from(row[0].part), row[0].to);
            if part == self.number {
                (self.inner.len()..to as usize).try_for_each(|_| self.inner.push(&[]))?;
                self.inner.push(row)?;
                continue;
            }
            if self.outlets.len() <= part {
                self.outlets.resize_with(part + 1, Outlet::default);
            }
            let place = self.outer.len();
            self.outer.push(row)?;
            let outlet = &mut self.outlets[part];
            let begin = if outlet.pages.is_empty() { place } else { outlet.places.start };
            outlet.places = begin..place + 1;
            outlet.pages.push(to);
        }
        self.inner.end_piece()?;
        self.outer.end_piece()
    }

    /// Connects all parts, given in order and with all their links, so that each knows where inflow from the others
    /// goes.
    pub fn connect(parts: &mut [Self]) {
        let count = parts.len();
        parts.iter_mut().for_each(|part| part.begin(count));
        for from in 0..count {
            for to in 0..count {
                let pages = std::mem::take(&mut parts[from].outlets[to].pages);
                let values = vec![0.0; pages.len()];
                parts[to].inlets.push(Inlet { pages, values, number: 0 });
            }
        }
    }

    /// Turns weights of links into shares of values, and allocates values for all pages.
    fn begin(&mut self, count: usize) {
        for share in self.shares.iter_mut().filter(|weight| **weight > 0.0) {
            let weight = *share;
            *share = match self.damping {
                Damping::Constant(damping) => damping / weight,
                Damping::OneMoreLink => 1.0 / (weight + 1.0),
            };
            self.account.follows = self.account.follows.max(*share * weight);
        }
        let pages = self.shares.len();
        (self.values, self.gifts, self.income) = (vec![0.0; pages], vec![0.0; pages], vec![0.0; pages]);
        self.outflow = vec![0.0; self.outer.len()];
        self.outlets.resize_with(count, Outlet::default);
        (self.account.sent, self.account.heard) = (vec![0.0; count], vec![0.0; count]);
    }

    /// Bytes of memory while ranking, without links. For each entry of the outflow, this part has 8 bytes, the receiver
    /// 12, and up to three batches of 8 exist at once: being built, waiting, and being heard.
    #[must_use]
    pub fn vector_bytes(&self) -> usize {
        PAGE_BYTES * self.shares.len() + 44 * self.outer.len()
    }

    /// Returns its number.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns its share of the bound.
    #[must_use]
    pub fn account(&self) -> PartAccount {
        PartAccount { kept: (self.residual + self.unsent + self.doubt) * SLACK, ..self.account.clone() }
    }

    /// Residual of its own pages, given what it has heard, that sweeps can lessen.
    pub(super) fn residual(&self) -> f64 {
        self.residual - self.rounding
    }

    /// Outflow not yet sent.
    pub(super) fn unsent(&self) -> f64 {
        self.unsent
    }

    /// Returns the values of its pages; divided by the sum over all parts, they are PageRank.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Like [`GraphPart::values`], consuming the part.
    #[must_use]
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// Receives a batch, unless it is older than what is known.
    ///
    /// # Errors
    /// When the batch is for another part, or has the wrong length.
    pub fn hear(&mut self, batch: &FlowBatch) -> Result<(), PartError> {
        let misfit = || PartError::Batch { from: batch.from, to: batch.to };
        let inlet = self.inlets.get_mut(batch.from).ok_or_else(misfit)?;
        if batch.to != self.number || batch.values.len() != inlet.values.len() {
            return Err(misfit());
        }
        if batch.number <= inlet.number {
            return Ok(());
        }
        inlet.number = batch.number;
        self.batches += 1;
        for ((page, heard), &value) in inlet.pages.iter().zip(&mut inlet.values).zip(&batch.values) {
            let income = &mut self.income[*page as usize];
            *income += value - *heard;
            self.residual += (value - *heard).abs() + f64::EPSILON * *income;
            *heard = value;
        }
        self.account.heard[batch.from] = batch.sum;
        Ok(())
    }

    /// Computes the values of all pages once, in place.
    pub(crate) fn sweep(&mut self) -> io::Result<()> {
        // Adding the income is one more rounding.
        let heard = self.batches as f64 + 2.0;
        let (mut moved, mut doubt, mut total, mut page) = (0.0, 0.0, 0.0, 0);
        let gifts = Cell::from_mut(self.gifts.as_mut_slice()).as_slice_of_cells();
        let mut update = |sum: f64, sources: usize| {
            let (income, old) = (self.income[page], self.values[page]);
            let new = 1.0 + income + sum;
            doubt += f64::EPSILON * ((sources + 6) as f64 * new + heard * income);
            if new > old {
                moved += new - old;
                self.values[page] = new;
                gifts[page].set(new * self.shares[page]);
            } else {
                doubt += old - new;
            }
            total += self.values[page];
            page += 1;
        };
        self.inner.each(gifts, &mut update)?;
        (self.inner.len()..self.shares.len()).for_each(|_| update(0.0, 0));
        // Gains are still missing in pages that were computed before them, and in the outflow sent so far.
        let follows = moved * self.account.follows;
        (self.residual, self.rounding) = (follows + doubt, doubt);
        self.unsent += follows;
        self.account.total = total;
        self.sweeps += 1;
        Ok(())
    }

    /// Returns the current outflow: a batch for each part to which more flows than was sent.
    ///
    /// # Errors
    /// When the links cannot be read.
    pub fn send(&mut self) -> io::Result<Vec<FlowBatch>> {
        let mut doubt = 0.0;
        let mut place = 0;
        let mut grown = vec![0.0; self.outlets.len()];
        let mut to = 0;
        let gifts = Cell::from_mut(self.gifts.as_mut_slice()).as_slice_of_cells();
        self.outer.each(gifts, |new, sources| {
            while self.outlets[to].places.end <= place {
                to += 1;
            }
            let old = self.outflow[place];
            doubt += f64::EPSILON * (sources + 6) as f64 * new + (old - new).max(0.0);
            if new > old {
                self.outflow[place] = new;
                grown[to] += new - old;
            }
            place += 1;
        })?;
        let mut batches = Vec::new();
        for (to, grown) in grown.into_iter().enumerate().filter(|(_, grown)| *grown > 0.0) {
            let outlet = &mut self.outlets[to];
            outlet.number += 1;
            let sum = &mut self.account.sent[to];
            *sum += grown;
            let (from, number, values) =
                (self.number, outlet.number, self.outflow[outlet.places.clone()].to_vec());
            batches.push(FlowBatch { from, to, number, sum: *sum, values });
        }
        let sent = self.account.sent.iter().zip(&self.outlets);
        doubt += sent.map(|(sum, outlet)| 2.0 * f64::EPSILON * outlet.number as f64 * sum).sum::<f64>();
        (self.unsent, self.doubt) = (0.0, doubt);
        Ok(batches)
    }
}
