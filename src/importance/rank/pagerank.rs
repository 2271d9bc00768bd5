//! PageRank with a proven error bound, fast.
//!
//! With the dangling pages' rank going where the personalisation v goes, the PageRank vector is `x = y / |y|` where y
//! solves `(I - d P^T) y = v` and P has empty rows for dangling pages (Del Corso, Gullí, Romani 2005). So pages without
//! links can stay out of the iteration. That system is solved in place (Gauss-Seidel), and the sweeps are combined by
//! Anderson's acceleration with a memory of two: the slow part of the error, mostly the scale of well-connected
//! regions, goes in few sweeps.
//!
//! OPIC's fixed point is the same system with a damping of its own for each page, `out / (out + 1)`; the bound then holds
//! with the largest of them.
//!
//! **Bound.** A sweep computes each value from values that are either this sweep's or the last one's. So the residual
//! after it is at most `d |change|_1`, the error of y at most `d |change|_1 / (1 - d)`, and that of x at most twice this
//! divided by `|y|_1`. That holds whatever happened before and in whatever order threads wrote; the acceleration
//! cannot break it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::super::graph::Graph;
use super::core::Core;
use super::rendezvous::Rendezvous;
use super::{Damping, RankError, Ranking};

/// Pieces of work a thread may claim per sweep: enough to even out, few enough to cost nothing.
const RUNS_PER_THREAD: usize = 16;

/// What to compute.
#[derive(Clone, Debug)]
pub struct PageRank<'a> {
    /// d: the probability of following a link; a constant has to be in 0..1.
    pub damping: Damping,
    /// Stop when the L1 error is proven to be at most this.
    pub tolerance: f64,
    /// Stop at the latest after so many sweeps.
    pub iterations_max: u32,
    /// Threads to use. With more than one, the last digits (below the tolerance) may differ between runs.
    pub threads: usize,
    /// Where a jump (and a page without links) leads: a weight for each page; `None` for everywhere alike.
    pub personalisation: Option<&'a [f64]>,
}

impl Default for PageRank<'_> {
    fn default() -> Self {
        Self {
            damping: Damping::Constant(0.85),
            tolerance: 1e-9,
            iterations_max: 1000,
            threads: 1,
            personalisation: None,
        }
    }
}

/// A graph made ready for [`PageRank::solve`].
#[derive(Debug)]
pub struct Prepared {
    core: Core,
}

impl PageRank<'_> {
    /// PageRank of all pages; adds up to 1.
    ///
    /// # Errors
    /// When the damping is not in 0..1 or the personalisation is no distribution over the pages.
    pub fn run(&self, graph: Graph) -> Result<Ranking, RankError> {
        self.solve(&self.prepare(graph)?)
    }

    /// Lays the graph out for [`PageRank::solve`].
    ///
    /// # Errors
    /// When the damping is not in 0..1.
    pub fn prepare(&self, graph: Graph) -> Result<Prepared, RankError> {
        if let Damping::Constant(damping) = self.damping
            && !(0.0..1.0).contains(&damping)
        {
            return Err(RankError::Damping(damping));
        }
        Ok(Prepared { core: Core::new(graph, self.damping) })
    }

    /// PageRank of all pages of a prepared graph (the damping is the one it was prepared with).
    ///
    /// # Errors
    /// When the personalisation is no distribution over the pages.
    pub fn solve(&self, prepared: &Prepared) -> Result<Ranking, RankError> {
        let core = &prepared.core;
        let jump = self.jump(core)?;
        let threads = self.threads.clamp(1, core.inner / 1024 + 1);
        let solver = Solver::new(core, jump, threads);
        if threads == 1 {
            solver.work(self.tolerance, self.iterations_max, true);
        } else {
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let solver = &solver;
                    scope.spawn(move || solver.work(self.tolerance, self.iterations_max, thread == 0));
                }
            });
        }
        Ok(solver.finish())
    }

    /// The personalisation in the core's order, with sum 1; `None` for everywhere alike.
    fn jump(&self, core: &Core) -> Result<Option<Vec<f64>>, RankError> {
        let Some(weights) = self.personalisation else { return Ok(None) };
        let sum: f64 = weights.iter().sum();
        if weights.len() != core.order.len()
            || sum <= 0.0
            || !sum.is_finite()
            || weights.iter().any(|&w| w < 0.0)
        {
            return Err(RankError::Personalisation);
        }
        Ok(Some(core.order.iter().map(|&page| weights[page as usize] / sum).collect()))
    }
}

/// A vector that threads share. Relaxed: a sweep may see a neighbour's value of this sweep or of the last.
struct Shared(Vec<AtomicU64>);

impl Shared {
    fn new(length: usize) -> Self {
        Self((0..length).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    fn get(&self, place: usize) -> f64 {
        f64::from_bits(self.0[place].load(Relaxed))
    }

    #[inline]
    fn set(&self, place: usize, value: f64) {
        self.0[place].store(value.to_bits(), Relaxed);
    }
}

/// One sweep's outcome: y before mixing, and how much it changed.
struct Past {
    value: Shared,
    change: Shared,
}

/// Sums over a run of pages: |change|_1, |y|_1, and what the acceleration needs.
#[derive(Clone, Copy, Default)]
struct Sums {
    change: f64,
    total: f64,
    last_last: f64,
    last_older: f64,
    older_older: f64,
    last_now: f64,
    older_now: f64,
}

impl Sums {
    const COUNT: usize = 7;

    fn to_array(self) -> [f64; Self::COUNT] {
        let Self { change, total, last_last, last_older, older_older, last_now, older_now } = self;
        [change, total, last_last, last_older, older_older, last_now, older_now]
    }

    fn add(
        &mut self,
        [change, total, last_last, last_older, older_older, last_now, older_now]: [f64; Self::COUNT],
    ) {
        self.change += change;
        self.total += total;
        self.last_last += last_last;
        self.last_older += last_older;
        self.older_older += older_older;
        self.last_now += last_now;
        self.older_now += older_now;
    }

    /// How much of the two last sweeps to subtract so that the change becomes smallest (least squares).
    fn mix(&self, sweeps: u32) -> (f64, f64) {
        let determinant = self.last_last * self.older_older - self.last_older * self.last_older;
        if sweeps > 2 && determinant > 1e-10 * self.last_last * self.older_older {
            (
                (self.last_now * self.older_older - self.older_now * self.last_older) / determinant,
                (self.older_now * self.last_last - self.last_now * self.last_older) / determinant,
            )
        } else if self.last_last > 0.0 {
            (self.last_now / self.last_last, 0.0)
        } else {
            (0.0, 0.0)
        }
    }
}

struct Solver<'a> {
    core: &'a Core,
    jump: Option<Vec<f64>>,
    /// What each inner page gives to each of its links: d y / weight of links.
    gift: Shared,
    /// The last three sweeps, in turn.
    past: [Past; 3],
    bounds: Vec<usize>,
    sums: Shared,
    claims: [AtomicUsize; 2],
    meeting: Rendezvous,
    outcome: Shared,
}

impl<'a> Solver<'a> {
    fn new(core: &'a Core, jump: Option<Vec<f64>>, threads: usize) -> Self {
        let bounds = core.runs(if threads == 1 { 1 } else { threads * RUNS_PER_THREAD });
        let gift = Shared::new(core.inner);
        let even = 1.0 / core.order.len().max(1) as f64;
        for page in 0..core.inner {
            let start = jump.as_ref().map_or(even, |jump| jump[page]) / (1.0 - core.damping_max);
            gift.set(page, start * core.share[page]);
        }
        let past = || Past { value: Shared::new(core.inner), change: Shared::new(core.inner) };
        Self {
            core,
            jump,
            gift,
            past: [past(), past(), past()],
            sums: Shared::new(bounds.len() * Sums::COUNT),
            bounds,
            claims: [AtomicUsize::new(0), AtomicUsize::new(0)],
            meeting: Rendezvous::new(threads),
            outcome: Shared::new(2),
        }
    }

    /// One thread's part of all sweeps. All threads come to the same sums and so to the same decisions.
    fn work(&self, tolerance: f64, sweeps_max: u32, reports: bool) {
        let mut sweep = 0u32;
        let mut remembered = 0;
        let mut best = f64::INFINITY;
        loop {
            sweep += 1;
            remembered += 1;
            self.each_run(0, |run, pages| {
                let sums = self.sweep(pages, sweep);
                for (place, sum) in sums.to_array().into_iter().enumerate() {
                    self.sums.set(run * Sums::COUNT + place, sum);
                }
            });
            self.meeting.wait();
            let sums = self.add_up();
            self.claims[0].store(0, Relaxed);
            let damping = self.core.damping_max;
            let bound = 2.0 * damping * sums.change / (1.0 - damping) / sums.total;
            if bound <= tolerance || sweep >= sweeps_max || sums.total <= 0.0 {
                if reports {
                    self.outcome.set(0, f64::from(sweep));
                    self.outcome.set(1, if sums.total > 0.0 { bound } else { 0.0 });
                }
                return;
            }
            // Two unlucky steps in a row: forget the past, a plain sweep always gets nearer.
            if bound > 4.0 * best {
                remembered = 1;
            }
            best = best.min(bound);
            if remembered > 1 {
                let (last, older) = sums.mix(remembered);
                self.each_run(1, |_, pages| self.mix(pages, sweep, last, older));
            }
            self.meeting.wait();
            self.claims[1].store(0, Relaxed);
        }
    }

    /// Claims runs of pages until none is left.
    fn each_run(&self, phase: usize, mut work: impl FnMut(usize, std::ops::Range<usize>)) {
        loop {
            let run = self.claims[phase].fetch_add(1, Relaxed);
            let (Some(&begin), Some(&end)) = (self.bounds.get(run), self.bounds.get(run + 1)) else { return };
            work(run, begin..end);
        }
    }

    /// Recomputes a run of pages in place.
    fn sweep(&self, pages: std::ops::Range<usize>, sweep: u32) -> Sums {
        let core = self.core;
        let [now, last, older] = self.turn(sweep);
        let mut sums = Sums::default();
        let mut selfish = core.selfish.partition_point(|&(page, _)| (page as usize) < pages.start);
        for page in pages {
            let share = core.share[page];
            let mut value = self.jump_to(page) + self.inflow(page);
            if let Some(&(_, weight)) = core.selfish.get(selfish).filter(|entry| entry.0 as usize == page) {
                value /= 1.0 - share * f64::from(weight);
                selfish += 1;
            }
            let change = value - self.gift.get(page) / share;
            self.gift.set(page, value * share);
            now.value.set(page, value);
            now.change.set(page, change);
            let from_last = change - last.change.get(page);
            let from_older = change - older.change.get(page);
            sums.change += change.abs();
            sums.total += value;
            sums.last_last += from_last * from_last;
            sums.last_older += from_last * from_older;
            sums.older_older += from_older * from_older;
            sums.last_now += from_last * change;
            sums.older_now += from_older * change;
        }
        sums
    }

    /// Replaces a run's values by the combination of the last sweeps.
    fn mix(&self, pages: std::ops::Range<usize>, sweep: u32, of_last: f64, of_older: f64) {
        let [now, last, older] = self.turn(sweep);
        for page in pages {
            let value = now.value.get(page);
            let mixed =
                value - of_last * (value - last.value.get(page)) - of_older * (value - older.value.get(page));
            self.gift.set(page, mixed * self.core.share[page]);
        }
    }

    /// This sweep's place among the past, the last one's and the one's before.
    fn turn(&self, sweep: u32) -> [&Past; 3] {
        let [a, b, c] = &self.past;
        match sweep % 3 {
            0 => [a, c, b],
            1 => [b, a, c],
            _ => [c, b, a],
        }
    }

    #[inline]
    fn jump_to(&self, page: usize) -> f64 {
        match &self.jump {
            Some(jump) => jump[page],
            None => 1.0 / self.core.order.len() as f64,
        }
    }

    /// What comes in to a page from its links. Four sums, so that additions need not wait for each other.
    #[inline]
    fn inflow(&self, page: usize) -> f64 {
        let row = self.core.offsets[page] as usize..self.core.offsets[page + 1] as usize;
        let sources = &self.core.sources[row.clone()];
        if !self.core.weights.is_empty() {
            let weighted =
                |(&source, &weight): (&u32, &f32)| self.gift.get(source as usize) * f64::from(weight);
            return sources.iter().zip(&self.core.weights[row]).map(weighted).sum();
        }
        let (fours, rest) = sources.as_chunks::<4>();
        let mut sums = [0.0; 4];
        for &[a, b, c, d] in fours {
            sums[0] += self.gift.get(a as usize);
            sums[1] += self.gift.get(b as usize);
            sums[2] += self.gift.get(c as usize);
            sums[3] += self.gift.get(d as usize);
        }
        let rest: f64 = rest.iter().map(|&source| self.gift.get(source as usize)).sum();
        (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
    }

    fn add_up(&self) -> Sums {
        let mut sums = Sums::default();
        for run in 0..self.bounds.len() - 1 {
            sums.add(std::array::from_fn(|place| self.sums.get(run * Sums::COUNT + place)));
        }
        sums
    }

    /// The values of all pages, made to add up to 1, in the graph's own order.
    fn finish(self) -> Ranking {
        let core = self.core;
        let mut values = vec![0.0; core.order.len()];
        let mut total = 0.0;
        for (page, &old) in core.order.iter().enumerate() {
            let value = if page < core.inner {
                self.gift.get(page) / core.share[page]
            } else {
                self.jump_to(page) + self.inflow(page)
            };
            values[old as usize] = value;
            total += value;
        }
        if total > 0.0 {
            values.iter_mut().for_each(|value| *value /= total);
        }
        let iterations = self.outcome.get(0) as u32;
        let operations = u64::from(iterations) * core.inner_arcs() as u64
            + (core.sources.len() - core.inner_arcs()) as u64;
        Ranking { values, iterations, residual: self.outcome.get(1), operations }
    }
}
