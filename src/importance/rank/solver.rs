//! The iteration behind [`super::pagerank`], shared by any number of threads.
//!
//! The unknown of a page is its *gift*, what it gives to each of its links: its value times the damping by the weight of its
//! links. Values are scaled so that the mean jump is 1. All threads run [`Solver::work`] and meet after each phase; a phase
//! is cut into runs of pages that threads claim. A page's numbers are written only by the thread that claimed its run;
//! gifts are read by all, and whether a sweep sees a neighbour's new gift or its last one does not matter.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::Ranking;
use super::acceleration::{Mix, PERIOD, Products, STATES};
use super::core::{Core, LANES};
use super::rendezvous::Rendezvous;

/// Pieces of work a thread may claim per phase: enough to even out, few enough to cost nothing.
const RUNS_PER_THREAD: usize = 16;

/// A correction is not worth more digits than 32-bit numbers have: this part of the residual, divided by `1 - d`.
const REDUCTION: f64 = 1e-6;

/// How much further a correction goes than it seems it must: its end is judged by gifts, the residual by values.
const MARGIN: f64 = 0.4;

/// Sums that a run of pages adds up to, at most.
const SUMS: usize = Products::COUNT;

/// A vector of 64-bit numbers that threads share.
#[derive(Debug)]
struct Exact(Vec<AtomicU64>);

impl Exact {
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

/// A vector of 32-bit numbers that threads share.
#[derive(Debug)]
struct Short(Vec<AtomicU32>);

impl Short {
    fn new(length: usize) -> Self {
        Self((0..length).map(|_| AtomicU32::new(0)).collect())
    }

    #[inline]
    fn get(&self, place: u32) -> f32 {
        read(&self.0[place as usize])
    }
}

#[inline]
fn read(number: &AtomicU32) -> f32 {
    f32::from_bits(number.load(Relaxed))
}

#[inline]
fn write(number: &AtomicU32, value: f32) {
    number.store(value.to_bits(), Relaxed);
}

/// What threads claim and add up in one phase; two of them are used in turn.
#[derive(Debug)]
struct Phase {
    claimed: AtomicUsize,
    sums: Exact,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Solver<'a> {
    core: &'a Core,
    jump: Option<Vec<f64>>,
    /// The gifts so far.
    gifts: Exact,
    /// The correction of the gifts; one more for nobody's, which is 0.
    corrections: Short,
    /// What the correction has to make up for.
    residual: Short,
    /// A correction per residual and income: the share, with the page's link to itself solved.
    shares: Vec<f32>,
    /// The correction after the last sweeps, in turn.
    states: [Short; STATES],
    bounds: Vec<usize>,
    phases: [Phase; 2],
    meeting: Rendezvous,
    outcome: Exact,
}

/// What is left to do.
struct Rest {
    /// |r|
    residual: f64,
    /// |y| over inner pages, which is at most that over all.
    total: f64,
    /// The residual in gifts, that is, each page's times its share.
    in_gifts: f64,
}

impl From<[f64; 3]> for Rest {
    fn from([residual, total, in_gifts]: [f64; 3]) -> Self {
        Self { residual, total, in_gifts }
    }
}

/// One thread's view of where the work stands; the same in all threads.
struct Progress {
    phase: usize,
    sweeps: u32,
    sweeps_max: u32,
}

impl<'a> Solver<'a> {
    /// `jump` has mean 1; `None` is 1 everywhere.
    pub(super) fn new(core: &'a Core, jump: Option<Vec<f64>>, threads: usize) -> Self {
        let bounds = core.runs(if threads == 1 { 1 } else { threads * RUNS_PER_THREAD });
        let mut shares: Vec<f32> = core.share.iter().map(|&share| share as f32).collect();
        for &(page, weight) in &core.selfish {
            let share = core.share[page as usize];
            shares[page as usize] = (share / (1.0 - share * f64::from(weight))) as f32;
        }
        let phase = || Phase { claimed: AtomicUsize::new(0), sums: Exact::new(SUMS * (bounds.len() - 1)) };
        Self {
            core,
            jump,
            gifts: Exact::new(core.inner),
            corrections: Short::new(core.inner + 1),
            residual: Short::new(core.inner),
            shares,
            states: std::array::from_fn(|_| Short::new(core.inner)),
            phases: [phase(), phase()],
            bounds,
            meeting: Rendezvous::new(threads),
            outcome: Exact::new(2),
        }
    }

    /// One thread's part of all work. All threads come to the same sums and so to the same decisions.
    pub(super) fn work(&self, tolerance: f64, sweeps_max: u32, reports: bool) {
        let mut progress = Progress { phase: 0, sweeps: 0, sweeps_max };
        let damping = self.core.damping_max;
        let mut rest: Rest = self.each_run(&mut progress, |pages| self.begin(pages)).into();
        let mut bound = f64::INFINITY;
        while damping > 0.0 && rest.total > 0.0 && progress.sweeps < sweeps_max {
            let part = tolerance * (1.0 - damping) * rest.total / 2.0 / rest.residual;
            let part = part.max(REDUCTION / (1.0 - damping)) * MARGIN;
            self.correct(&mut progress, part, rest.in_gifts);
            self.each_run(&mut progress, |pages| self.accept(pages));
            rest = self.each_run(&mut progress, |pages| self.measure(pages)).into();
            progress.sweeps += 1;
            let before = std::mem::replace(&mut bound, 2.0 * rest.residual / (1.0 - damping) / rest.total);
            // Not getting nearer any more: these are the last digits of 64-bit numbers.
            if bound <= tolerance || bound > before / 2.0 {
                break;
            }
        }
        if reports {
            self.outcome.set(0, f64::from(progress.sweeps));
            self.outcome.set(1, if bound.is_finite() { bound } else { 0.0 });
        }
    }

    /// Sweeps until this part of the residual is left, whose size is `whole` in gifts.
    fn correct(&self, progress: &mut Progress, part: f64, whole: f64) {
        let damping = self.core.damping_max;
        // A plain sweep shrinks the change by d or more; where rounding stops that, going on is no use.
        let enough = (part.ln() / damping.max(0.1).ln()) as u32 + PERIOD;
        let mut at_last_mix = f64::INFINITY;
        for sweep in 1..=enough {
            if progress.sweeps + 1 >= progress.sweeps_max {
                return;
            }
            let turn = sweep % PERIOD;
            let state = (PERIOD - turn) % PERIOD;
            let state = self.states.len().checked_sub(1 + state as usize);
            let [change] = self.each_run(progress, |pages| self.sweep(pages, state));
            progress.sweeps += 1;
            if change <= part * whole {
                return;
            }
            // Where the last mix did not help, a period of plain sweeps does.
            if turn == 0 && change < std::mem::replace(&mut at_last_mix, change) {
                let sums = self.each_run(progress, |pages| self.products(pages));
                let mut products = Products::default();
                products.add_array(&sums);
                let mix = products.mix();
                self.each_run(progress, |pages| self.mix(pages, mix));
            }
        }
    }

    /// Claims runs of pages until none is left, waits for the others, and adds up what all runs returned.
    fn each_run<const N: usize>(
        &self,
        progress: &mut Progress,
        mut work: impl FnMut(Range<usize>) -> [f64; N],
    ) -> [f64; N] {
        let phase = &self.phases[progress.phase % 2];
        progress.phase += 1;
        loop {
            let run = phase.claimed.fetch_add(1, Relaxed);
            let (Some(&begin), Some(&end)) = (self.bounds.get(run), self.bounds.get(run + 1)) else { break };
            for (place, sum) in work(begin..end).into_iter().enumerate() {
                phase.sums.set(run * SUMS + place, sum);
            }
        }
        self.meeting.wait();
        // Nobody claims from this phase again before all have met once more.
        phase.claimed.store(0, Relaxed);
        let runs = self.bounds.len() - 1;
        std::array::from_fn(|place| (0..runs).map(|run| phase.sums.get(run * SUMS + place)).sum())
    }

    /// Sets out from gifts of 0, with a first guess at the correction. Returns a [`Rest`] as if there were no guess.
    fn begin(&self, pages: Range<usize>) -> [f64; 3] {
        let first = (1.0 / (1.0 - self.core.damping_max)) as f32;
        let (mut sum, mut in_gifts) = (0.0, 0.0);
        for page in pages {
            let jump = self.jump_to(page);
            write(&self.residual.0[page], jump as f32);
            let gift = jump as f32 * self.shares[page];
            write(&self.corrections.0[page], gift * first);
            sum += jump;
            in_gifts += f64::from(gift);
        }
        [sum, sum, in_gifts]
    }

    /// Recomputes the corrections of a run of pages in place, and remembers them as this state if any. Returns by how
    /// much they changed.
    fn sweep(&self, pages: Range<usize>, state: Option<usize>) -> [f64; 1] {
        let core = self.core;
        let kept = state.map(|state| &self.states[state].0[pages.clone()]);
        let mut changed = 0.0;
        let rows = core.groups[pages.start..=pages.end].windows(2);
        let own = self.corrections.0[pages.clone()].iter().zip(&self.residual.0[pages.clone()]);
        for (place, ((row, share), (own, residual))) in
            rows.zip(&self.shares[pages.clone()]).zip(own).enumerate()
        {
            let income = self.income(row[0] as usize..row[1] as usize);
            let new = (read(residual) + income) * share;
            changed += f64::from((new - read(own)).abs());
            write(own, new);
            if let Some(kept) = kept {
                write(&kept[place], new);
            }
        }
        [changed]
    }

    /// What comes in to a page from these groups of links.
    #[inline]
    fn income(&self, groups: Range<usize>) -> f32 {
        let mut sums = [0.0; LANES];
        let sources = &self.core.sources[groups.clone()];
        if self.core.weights.is_empty() {
            for group in sources {
                for (sum, &source) in sums.iter_mut().zip(group) {
                    *sum += self.corrections.get(source);
                }
            }
        } else {
            for (group, weights) in sources.iter().zip(&self.core.weights[groups]) {
                for ((sum, &source), weight) in sums.iter_mut().zip(group).zip(weights) {
                    *sum += self.corrections.get(source) * weight;
                }
            }
        }
        (sums[0] + sums[1]) + (sums[2] + sums[3])
    }

    fn products(&self, pages: Range<usize>) -> [f64; Products::COUNT] {
        let mut products = Products::default();
        pages.for_each(|page| products.add(self.remembered(page)));
        products.to_array()
    }

    /// Replaces a run's corrections by the combination of the last sweeps.
    fn mix(&self, pages: Range<usize>, mix: Mix) -> [f64; 0] {
        for page in pages {
            write(&self.corrections.0[page], mix.apply(self.remembered(page)) as f32);
        }
        []
    }

    #[inline]
    fn remembered(&self, page: usize) -> [f64; STATES] {
        std::array::from_fn(|state| f64::from(read(&self.states[state].0[page])))
    }

    /// Adds the corrections to the gifts.
    fn accept(&self, pages: Range<usize>) -> [f64; 0] {
        for page in pages {
            self.gifts.set(page, self.gifts.get(page) + f64::from(read(&self.corrections.0[page])));
            write(&self.corrections.0[page], 0.0);
        }
        []
    }

    /// Computes the residual; returns a [`Rest`].
    fn measure(&self, pages: Range<usize>) -> [f64; 3] {
        let core = self.core;
        let (mut rest, mut total, mut in_gifts) = (0.0, 0.0, 0.0);
        let mut selfish = core.selfish.partition_point(|&(page, _)| (page as usize) < pages.start);
        for page in pages {
            let gift = self.gifts.get(page);
            let value = self.value(page);
            let mut income = self.exact_income(page);
            if let Some(&(_, weight)) = core.selfish.get(selfish).filter(|entry| entry.0 as usize == page) {
                income += gift * f64::from(weight);
                selfish += 1;
            }
            let residual = self.jump_to(page) + income - value;
            write(&self.residual.0[page], residual as f32);
            rest += residual.abs();
            total += value.abs();
            in_gifts += residual.abs() * f64::from(self.shares[page]);
        }
        [rest, total, in_gifts]
    }

    /// What comes in to an inner page from its links to others, by the gifts.
    fn exact_income(&self, page: usize) -> f64 {
        let groups = self.core.groups[page] as usize..self.core.groups[page + 1] as usize;
        let sources = self.core.sources[groups.clone()].as_flattened();
        // Groups are filled up at their end only.
        let nobody = self.core.inner as u32;
        let sources = &sources[..sources.len() - sources.iter().rev().take_while(|&&s| s == nobody).count()];
        let weights = if self.core.weights.is_empty() { &[] } else { &self.core.weights[groups] };
        self.add_up(sources, weights.as_flattened())
    }

    fn add_up(&self, sources: &[u32], weights: &[f32]) -> f64 {
        if weights.is_empty() {
            let (fours, rest) = sources.as_chunks::<LANES>();
            let mut sums = [0.0; LANES];
            for group in fours {
                for (sum, &source) in sums.iter_mut().zip(group) {
                    *sum += self.gifts.get(source as usize);
                }
            }
            sums.into_iter().chain(rest.iter().map(|&source| self.gifts.get(source as usize))).sum()
        } else {
            let given = sources.iter().zip(weights);
            given.map(|(&source, &weight)| self.gifts.get(source as usize) * f64::from(weight)).sum()
        }
    }

    /// The value of an inner page so far.
    #[inline]
    fn value(&self, page: usize) -> f64 {
        let share = self.core.share[page];
        if share > 0.0 { self.gifts.get(page) / share } else { self.jump_to(page) }
    }

    #[inline]
    fn jump_to(&self, page: usize) -> f64 {
        self.jump.as_ref().map_or(1.0, |jump| jump[page])
    }

    /// The values of all pages, made to add up to 1, in the graph's own order.
    pub(super) fn finish(self) -> Ranking {
        let core = self.core;
        let outer = &core.outer;
        let mut values = vec![0.0; core.order.len()];
        let mut total = 0.0;
        for (page, &old) in core.order.iter().enumerate() {
            let value = if let Some(page_outside) = page.checked_sub(core.inner) {
                let links = outer.offsets[page_outside] as usize..outer.offsets[page_outside + 1] as usize;
                let weights = if outer.weights.is_empty() { &[] } else { &outer.weights[links.clone()] };
                self.jump_to(page) + self.add_up(&outer.sources[links], weights)
            } else {
                self.value(page)
            };
            values[old as usize] = value;
            total += value;
        }
        if total > 0.0 {
            values.iter_mut().for_each(|value| *value /= total);
        }
        let iterations = self.outcome.get(0) as u32;
        let operations = u64::from(iterations) * core.inner_arcs as u64 + outer.sources.len() as u64;
        Ranking { values, iterations, residual: self.outcome.get(1), operations }
    }
}
