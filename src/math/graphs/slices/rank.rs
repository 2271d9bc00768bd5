//! Direct and inverse ranking over a sliced matrix.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use super::SliceError;
use super::matrix::SlicedMatrix;
use super::vector::{Adding, Ascending, BLOCK, VectorFile};
use crate::importance::rank::RankError;

/// Which ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlicedMethod {
    /// Importance: rank flows along links.
    Direct,
    /// Interest: rank flows backwards, shared among all pages that link to one.
    Inverse,
    /// Both in one scan.
    Combined,
}

impl SlicedMethod {
    /// Number of vectors of a slice that are in memory at the same time.
    #[must_use]
    pub fn vectors(self) -> usize {
        match self {
            Self::Direct | Self::Inverse => 1,
            Self::Combined => 2,
        }
    }
}

/// What to compute.
#[derive(Clone, Copy, Debug)]
pub struct Sliced {
    /// Which ranking.
    pub which: SlicedMethod,
    /// Damping factor c, in 0..1.
    pub damping: f64,
    /// Stop when the proven L1 error is at most this.
    pub tolerance: f64,
    /// Stop after this many scans at the latest.
    pub iterations_max: u32,
    /// Number of threads; each holds its own slice.
    pub threads: usize,
    /// Use finished slices at once instead of in the next scan (direct ranking only).
    pub gauss_seidel: bool,
}

/// The result of a ranking.
#[derive(Debug)]
pub struct SlicedRanking {
    /// Number of scans.
    pub iterations: u32,
    /// Proven L1 error of the worse of the rankings.
    pub residual: f64,
    /// Seconds of all scans.
    pub seconds: f64,
    /// Bytes read from slices and vectors in all scans.
    pub bytes_read: u64,
    importance: Option<VectorFile>,
    interest: Option<VectorFile>,
}

impl SlicedRanking {
    /// Returns the importance of each page, summing to 1; reads the whole vector into memory.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn importance(&self) -> Result<Option<Vec<f64>>, SliceError> {
        self.importance.as_ref().map(normalised).transpose()
    }

    /// Returns the interest of each page, summing to 1; reads the whole vector into memory.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn interest(&self) -> Result<Option<Vec<f64>>, SliceError> {
        self.interest.as_ref().map(normalised).transpose()
    }
}

fn normalised(vector: &VectorFile) -> Result<Vec<f64>, SliceError> {
    let mut values = vec![0.0; vector.len()];
    vector.read(0, &mut values)?;
    let sum: f64 = values.iter().sum();
    values.iter_mut().for_each(|value| *value /= sum);
    Ok(values)
}

impl Sliced {
    /// Computes the ranking. `interesting` gives the weight with which interest starts at a page; by default it is
    /// uniform. Vectors are stored in `folder`.
    ///
    /// # Errors
    /// When the damping is not in 0..1, or the disk fails.
    pub fn run(
        &self,
        matrix: &SlicedMatrix,
        folder: &Path,
        interesting: Option<&(dyn Fn(usize) -> f64 + Sync)>,
    ) -> Result<SlicedRanking, SliceError> {
        if !(0.0..1.0).contains(&self.damping) {
            return Err(RankError::Damping(self.damping).into());
        }
        let everywhere = |_: usize| 1.0;
        let scan = SliceScan::new(self, matrix, folder, interesting.unwrap_or(&everywhere))?;
        let start = Instant::now();
        let mut outcome = SlicedRanking {
            iterations: 0,
            residual: f64::INFINITY,
            seconds: 0.0,
            bytes_read: 0,
            importance: None,
            interest: None,
        };
        while outcome.iterations < self.iterations_max && outcome.residual > self.tolerance {
            outcome.residual = scan.once()?;
            outcome.iterations += 1;
        }
        outcome.seconds = start.elapsed().as_secs_f64();
        // Each scan reads the slices, and the degrees of all pages for each ranking.
        let scanned = matrix.bytes() + 4 * matrix.pages as u64 * self.which.vectors() as u64;
        outcome.bytes_read =
            u64::from(outcome.iterations) * scanned + scan.vectors().map(VectorFile::bytes_read).sum::<u64>();
        outcome.importance = scan.direct.map(|direct| direct.values);
        outcome.interest = scan.inverse.map(|inverse| inverse.values);
        Ok(outcome)
    }
}

/// Change and sum of a vector over a scan.
#[derive(Clone, Copy, Debug, Default)]
struct ScanSums {
    change: f64,
    total: f64,
}

impl ScanSums {
    fn add(&mut self, part: Self) {
        self.change += part.change;
        self.total += part.total;
    }
}

struct Direct {
    /// The solution y of the linear system.
    values: VectorFile,
    /// y divided by the number of links, as sources give it to targets; a scan reads it in order.
    gifts: VectorFile,
    /// Where a scan writes gifts if it must not see its own.
    next_gifts: Option<VectorFile>,
}

struct Inverse {
    values: VectorFile,
    /// Sum of what came in during this scan.
    inflow: VectorFile,
}

struct SliceScan<'a> {
    options: &'a Sliced,
    matrix: &'a SlicedMatrix,
    interesting: &'a (dyn Fn(usize) -> f64 + Sync),
    direct: Option<Direct>,
    inverse: Option<Inverse>,
}

impl<'a> SliceScan<'a> {
    fn new(
        options: &'a Sliced,
        matrix: &'a SlicedMatrix,
        folder: &Path,
        interesting: &'a (dyn Fn(usize) -> f64 + Sync),
    ) -> Result<Self, SliceError> {
        let vector = |name: &str| VectorFile::create(&folder.join(name), matrix.pages, 0.0);
        let direct = if options.which == SlicedMethod::Inverse {
            None
        } else {
            let next_gifts = if options.gauss_seidel { None } else { Some(vector("next.gifts")?) };
            Some(Direct {
                values: vector("importance.values")?,
                gifts: vector("importance.gifts")?,
                next_gifts,
            })
        };
        let inverse = if options.which == SlicedMethod::Direct {
            None
        } else {
            Some(Inverse { values: vector("interest.values")?, inflow: vector("interest.inflow")? })
        };
        Ok(Self { options, matrix, interesting, direct, inverse })
    }

    fn vectors(&self) -> impl Iterator<Item = &VectorFile> {
        let direct = self
            .direct
            .iter()
            .flat_map(|direct| [Some(&direct.values), Some(&direct.gifts), direct.next_gifts.as_ref()]);
        let inverse =
            self.inverse.iter().flat_map(|inverse| [Some(&inverse.values), Some(&inverse.inflow), None]);
        direct.chain(inverse).flatten()
    }

    /// Scans the matrix once; returns the proven error.
    fn once(&self) -> Result<f64, SliceError> {
        let sums = self.each(self.matrix.slices(), |slice| self.slice(slice))?;
        let damping = self.options.damping;
        let bound = |sums: ScanSums| {
            2.0 * damping * sums.change / (1.0 - damping) / sums.total.max(f64::MIN_POSITIVE)
        };
        let mut residual: f64 = 0.0;
        if let Some(direct) = &self.direct {
            if let Some(next_gifts) = &direct.next_gifts {
                copy(next_gifts, &direct.gifts)?;
            }
            residual = residual.max(bound(sums));
        }
        if let Some(inverse) = &self.inverse {
            let blocks = self.matrix.pages.div_ceil(BLOCK);
            residual = residual.max(bound(self.each(blocks, |block| self.turn(inverse, block))?));
        }
        Ok(residual)
    }

    /// Does all parts of a task, on all threads.
    fn each(
        &self,
        parts: usize,
        work: impl Fn(usize) -> Result<ScanSums, SliceError> + Sync,
    ) -> Result<ScanSums, SliceError> {
        let next = AtomicUsize::new(0);
        let run = || {
            let mut sums = ScanSums::default();
            loop {
                let part = next.fetch_add(1, Relaxed);
                if part >= parts {
                    return Ok(sums);
                }
                match work(part) {
                    Ok(part) => sums.add(part),
                    Err(error) => {
                        next.store(parts, Relaxed);
                        return Err(error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.options.threads.max(1)).map(|_| scope.spawn(run)).collect();
            let mut sums = run()?;
            for other in others {
                sums.add(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok(sums)
        })
    }

    /// Scans a slice for all rankings.
    fn slice(&self, slice: usize) -> Result<ScanSums, SliceError> {
        let range = self.matrix.range(slice);
        let mut received = vec![0.0; if self.direct.is_some() { range.len() } else { 0 }];
        let mut sources = self.direct.as_ref().map(|direct| Ascending::new(&direct.gifts));
        let gifts = match &self.inverse {
            Some(inverse) => self.inverse_gifts(inverse, slice)?,
            None => Vec::new(),
        };
        let mut inflow = self.inverse.as_ref().map(|inverse| Adding::new(&inverse.inflow));
        self.matrix.scan(slice, |source, targets| {
            if let Some(sources) = &mut sources {
                let gift = sources.at(source)?;
                targets.iter().for_each(|&target| received[target as usize] += gift);
            }
            if let Some(inflow) = &mut inflow {
                inflow.add(source, targets.iter().map(|&target| gifts[target as usize]).sum())?;
            }
            Ok(())
        })?;
        if let Some(inflow) = inflow {
            inflow.finish()?;
        }
        match &self.direct {
            Some(direct) => self.store(direct, range, &received),
            None => Ok(ScanSums::default()),
        }
    }

    /// Turns what a slice's pages received into their values and gifts.
    fn store(
        &self,
        direct: &Direct,
        range: std::ops::Range<usize>,
        received: &[f64],
    ) -> Result<ScanSums, SliceError> {
        let jump = 1.0 / self.matrix.pages as f64;
        let mut sums = ScanSums::default();
        let mut before = Vec::new();
        let mut gifts = Vec::new();
        for (number, received) in received.chunks(BLOCK).enumerate() {
            let start = range.start + number * BLOCK;
            let degrees = self.matrix.out_degrees(start..start + received.len())?;
            before.resize(received.len(), 0.0);
            direct.values.read(start, &mut before)?;
            gifts.clear();
            for ((value, received), degree) in before.iter_mut().zip(received).zip(degrees) {
                let new = jump + self.options.damping * received;
                sums.change += (new - *value).abs();
                sums.total += new;
                *value = new;
                gifts.push(new / f64::from(degree.max(1)));
            }
            direct.values.write(start, &before)?;
            direct.next_gifts.as_ref().unwrap_or(&direct.gifts).write(start, &gifts)?;
        }
        Ok(sums)
    }

    /// Returns what each page of a slice gives to every page that links to it.
    fn inverse_gifts(&self, inverse: &Inverse, slice: usize) -> Result<Vec<f64>, SliceError> {
        let mut gifts = vec![0.0; self.matrix.range(slice).len()];
        inverse.values.read(self.matrix.range(slice).start, &mut gifts)?;
        for (number, gifts) in gifts.chunks_mut(BLOCK).enumerate() {
            let start = number * BLOCK;
            let degrees = self.matrix.in_degrees(slice, start..start + gifts.len())?;
            for (gift, degree) in gifts.iter_mut().zip(degrees) {
                *gift /= f64::from(degree.max(1));
            }
        }
        Ok(gifts)
    }

    /// Turns a block of a scan's inflow into values of the inverse ranking.
    fn turn(&self, inverse: &Inverse, block: usize) -> Result<ScanSums, SliceError> {
        let mut sums = ScanSums::default();
        let start = block * BLOCK;
        let length = BLOCK.min(self.matrix.pages - start);
        let (mut values, mut inflow) = (vec![0.0; length], vec![0.0; length]);
        inverse.values.read(start, &mut values)?;
        inverse.inflow.read(start, &mut inflow)?;
        for (place, (value, inflow)) in values.iter_mut().zip(&mut inflow).enumerate() {
            let new = (self.interesting)(start + place) + self.options.damping * *inflow;
            sums.change += (new - *value).abs();
            sums.total += new;
            *value = new;
            *inflow = 0.0;
        }
        inverse.values.write(start, &values)?;
        inverse.inflow.write(start, &inflow)?;
        Ok(sums)
    }
}

fn copy(from: &VectorFile, to: &VectorFile) -> Result<(), SliceError> {
    let mut block = vec![0.0; BLOCK];
    for start in (0..from.len()).step_by(BLOCK) {
        let length = BLOCK.min(from.len() - start);
        from.read(start, &mut block[..length])?;
        to.write(start, &block[..length])?;
    }
    Ok(())
}
