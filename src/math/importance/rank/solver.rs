//! The iteration of [`super::pagerank`], on any number of threads.
//!
//! The unknown of a page is its *gift*, the amount it gives to each of its links: its value times the damping, divided
//! by the total weight of its links. Values are scaled so that the mean jump is 1.
//!
//! All threads run [`SolverWorker::run`] and synchronise after each [`SweepStage`] of a sweep. In a stage each thread
//! processes its own chunks, with all corrections in its own vector. Then the threads exchange results. So a sweep is
//! the same linear map whatever the speed of the threads, as acceleration requires. Hardly any value is older than in a
//! sequential sweep, and no thread waits for a cache line that another one writes.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::Ranking;
use super::acceleration::{Mix, PERIOD, Products, STATES};
use super::core::{Core, PageChunk};
use super::rendezvous::Rendezvous;

/// Number of stages of a sweep with more than one thread. A link between the parts of two threads in a stage uses the
/// value of the last sweep, as in the Jacobi method. More stages have fewer such links but more synchronisation.
const STAGES: usize = 16;

/// Minimum share of the residual that a correction aims to leave, divided by `1 - d`: 32-bit numbers allow no further
/// reduction.
const REDUCTION: f64 = 1e-6;

/// Maximum share of the residual that a correction may leave, to ensure progress.
const PART_MAX: f64 = 0.5;

/// A correction that leaves a larger share of the bound has reached the precision of 64-bit numbers.
const STALL: f64 = 0.9;

/// Maximum number of sums that threads combine at a synchronisation.
const SUMS: usize = Products::COUNT;

/// A shared vector of 64-bit numbers.
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

/// The vector through which threads exchange corrections.
#[derive(Debug)]
struct CorrectionBoard(Vec<AtomicU32>);

impl CorrectionBoard {
    fn new(length: usize) -> Self {
        Self((0..length).map(|_| AtomicU32::new(0)).collect())
    }

    fn write(&self, pages: Range<usize>, values: &[f32]) {
        for (shared, value) in self.0[pages].iter().zip(values) {
            shared.store(value.to_bits(), Relaxed);
        }
    }

    fn read(&self, pages: Range<usize>, values: &mut [f32]) {
        for (shared, value) in self.0[pages].iter().zip(values) {
            *value = f32::from_bits(shared.load(Relaxed));
        }
    }
}

/// The chunks that each thread processes before the next synchronisation.
type SweepStage = Vec<Range<usize>>;

/// Data shared by all threads.
#[derive(Debug)]
pub(super) struct Solver<'a> {
    core: &'a Core,
    jump: Option<Vec<f64>>,
    /// The gifts so far.
    gifts: Exact,
    /// Corrections as of the last synchronisation; empty with a single thread.
    board: CorrectionBoard,
    /// Correction per unit of residual and income: the share of the page, with its link to itself solved.
    shares: Vec<f32>,
    stages: Vec<SweepStage>,
    threads: usize,
    /// The sums of each thread; two buffers are used alternately.
    sums: [Exact; 2],
    meeting: Rendezvous,
    outcome: Exact,
}

impl<'a> Solver<'a> {
    /// `jump` must have mean 1; `None` means 1 everywhere.
    pub(super) fn new(core: &'a Core, jump: Option<Vec<f64>>, threads: usize) -> Self {
        let threads = threads.clamp(1, core.chunks.len().max(1));
        let mut shares: Vec<f32> = core.share.iter().map(|&share| share as f32).collect();
        for &(page, weight) in &core.selfish {
            let share = core.share[page as usize];
            shares[page as usize] = (share / (1.0 - share * f64::from(weight))) as f32;
        }
        Self {
            core,
            jump,
            gifts: Exact::new(core.inner),
            board: CorrectionBoard::new(if threads == 1 { 0 } else { core.inner }),
            shares,
            stages: stages(&core.chunks, threads),
            threads,
            sums: [(); 2].map(|()| Exact::new(SUMS * threads)),
            meeting: Rendezvous::new(threads),
            outcome: Exact::new(2),
        }
    }

    /// Solves to a bound of `tolerance`, or until `sweeps_max` is reached.
    pub(super) fn run(&self, tolerance: f64, sweeps_max: u32) {
        if self.threads == 1 {
            return SolverWorker::new(self, 0, sweeps_max).run(tolerance);
        }
        std::thread::scope(|scope| {
            for thread in 0..self.threads {
                scope.spawn(move || SolverWorker::new(self, thread, sweeps_max).run(tolerance));
            }
        });
    }

    /// Current value of an inner page.
    #[inline]
    fn value(&self, page: usize) -> f64 {
        let share = self.core.share[page];
        if share > 0.0 { self.gifts.get(page) / share } else { self.jump_to(page) }
    }

    #[inline]
    fn jump_to(&self, page: usize) -> f64 {
        self.jump.as_ref().map_or(1.0, |jump| jump[page])
    }

    /// Returns the values of all pages in the order of the graph, normalised to sum 1.
    pub(super) fn finish(self) -> Ranking {
        let core = self.core;
        let outer = &core.outer;
        let mut values = vec![0.0; core.order.len()];
        let mut total = 0.0;
        for (page, &old) in core.order.iter().enumerate() {
            let value = if let Some(page_outside) = page.checked_sub(core.inner) {
                let links = outer.offsets[page_outside] as usize..outer.offsets[page_outside + 1] as usize;
                let given = links.map(|link| {
                    let weight = outer.weights.get(link).map_or(1.0, |&weight| f64::from(weight));
                    self.gifts.get(outer.sources[link] as usize) * weight
                });
                self.jump_to(page) + given.sum::<f64>()
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

/// Divides the chunks among the threads by work, and those of each thread into stages. Pages that link to each other
/// are often close, so the parts of two threads in the same stage are far apart.
fn stages(chunks: &[PageChunk], threads: usize) -> Vec<SweepStage> {
    let stages = if threads == 1 { 1 } else { STAGES };
    let parts = stages * threads;
    let all: usize = chunks.iter().map(PageChunk::work).sum();
    let (mut bounds, mut done) = (vec![0], 0);
    for (number, chunk) in chunks.iter().enumerate() {
        // A chunk belongs to the part that contains its middle.
        while bounds.len() < parts && (done + chunk.work() / 2) * parts >= all * bounds.len() {
            bounds.push(number);
        }
        done += chunk.work();
    }
    bounds.resize(parts + 1, chunks.len());
    let part = |number: usize| bounds[number]..bounds[number + 1];
    (0..stages).map(|stage| (0..threads).map(|thread| part(thread * stages + stage)).collect()).collect()
}

/// What remains to be solved.
struct Unsolved {
    /// |r|
    residual: f64,
    /// |y| over inner pages, a lower bound of that over all pages.
    total: f64,
    /// The residual in gifts: the sum of the residual of each page times its share.
    in_gifts: f64,
}

impl From<[f64; 3]> for Unsolved {
    fn from([residual, total, in_gifts]: [f64; 3]) -> Self {
        Self { residual, total, in_gifts }
    }
}

/// The work of one thread. Vectors named `all_…` cover all inner pages; others cover the thread's own pages, chunk by
/// chunk.
struct SolverWorker<'a> {
    solver: &'a Solver<'a>,
    thread: usize,
    /// Own chunks, each with the index of its first page among the own pages.
    own: Vec<(usize, usize)>,
    all_corrections: Vec<f32>,
    /// The residual that the correction has to remove.
    residual: Vec<f32>,
    /// Corrections after the last sweeps.
    states: [Vec<f32>; STATES],
    /// Income of the pages of a chunk through panels.
    panels: Vec<f32>,
    meetings: usize,
    sweeps: u32,
    sweeps_max: u32,
}

impl<'a> SolverWorker<'a> {
    fn new(solver: &'a Solver<'a>, thread: usize, sweeps_max: u32) -> Self {
        let mut pages = 0;
        let mut place = |number: usize| {
            let first = pages;
            pages += solver.core.chunks[number].pages.len();
            (number, first)
        };
        let own = solver.stages.iter().flat_map(|stage| stage[thread].clone()).map(&mut place).collect();
        Self {
            solver,
            thread,
            own,
            all_corrections: vec![0.0; solver.core.inner],
            residual: vec![0.0; pages],
            states: std::array::from_fn(|_| vec![0.0; pages]),
            panels: Vec::new(),
            meetings: 0,
            sweeps: 0,
            sweeps_max,
        }
    }

    /// Runs the iteration. All threads compute the same sums and so make the same decisions.
    fn run(mut self, tolerance: f64) {
        let damping = self.solver.core.damping_max;
        let mut rest = self.begin();
        let mut bound = f64::INFINITY;
        while damping > 0.0 && rest.total > 0.0 && self.sweeps < self.sweeps_max {
            let part = tolerance * (1.0 - damping) * rest.total / 2.0 / rest.residual;
            let part = part.max(REDUCTION / (1.0 - damping)).min(PART_MAX);
            self.correct(part, rest.in_gifts);
            self.accept();
            rest = self.measure();
            self.sweeps += 1;
            let before = std::mem::replace(&mut bound, 2.0 * rest.residual / (1.0 - damping) / rest.total);
            if bound <= tolerance || bound > STALL * before {
                break;
            }
        }
        if self.thread == 0 {
            self.solver.outcome.set(0, f64::from(self.sweeps));
            self.solver.outcome.set(1, if bound.is_finite() { bound } else { 0.0 });
        }
    }

    /// Sweeps until only `part` of the residual is left; `whole` is its size in gifts.
    fn correct(&mut self, part: f64, whole: f64) {
        let damping = self.solver.core.damping_max;
        // A plain sweep reduces the change by a factor of d or better. When rounding prevents that, further sweeps do
        // not help.
        let enough = (part.ln() / damping.max(0.1).ln()) as u32 + PERIOD;
        let mut at_last_mix = f64::INFINITY;
        for sweep in 1..=enough {
            if self.sweeps + 1 >= self.sweeps_max {
                return;
            }
            let turn = sweep % PERIOD;
            let state = (PERIOD - turn) % PERIOD;
            let change = self.sweep(STATES.checked_sub(1 + state as usize));
            self.sweeps += 1;
            if change <= part * whole {
                return;
            }
            // If the last mix did not help, a period of plain sweeps does.
            if turn == 0 && change < std::mem::replace(&mut at_last_mix, change) {
                self.mix();
            }
        }
    }

    /// Waits for all threads and returns the totals of their sums.
    fn meet<const N: usize>(&mut self, sums: [f64; N]) -> [f64; N] {
        if self.solver.threads == 1 {
            return sums;
        }
        let board = &self.solver.sums[self.meetings % 2];
        self.meetings += 1;
        for (place, sum) in sums.into_iter().enumerate() {
            board.set(self.thread * SUMS + place, sum);
        }
        self.solver.meeting.wait();
        // No thread writes here again before the next synchronisation.
        std::array::from_fn(|place| {
            (0..self.solver.threads).map(|thread| board.get(thread * SUMS + place)).sum()
        })
    }

    /// Publishes the corrections of a chunk to the other threads.
    fn publish(&self, pages: Range<usize>) {
        if self.solver.threads > 1 {
            self.solver.board.write(pages.clone(), &self.all_corrections[pages]);
        }
    }

    /// Reads what the other threads published in a stage, after a synchronisation.
    fn hear(&mut self, stage: usize) {
        let Solver { core, stages, threads, board, .. } = self.solver;
        for thread in (0..*threads).filter(|&thread| thread != self.thread) {
            let chunks = &core.chunks[stages[stage][thread].clone()];
            if let (Some(first), Some(last)) = (chunks.first(), chunks.last()) {
                let pages = first.pages.start..last.pages.end;
                board.read(pages.clone(), &mut self.all_corrections[pages]);
            }
        }
    }

    /// Starts from gifts of 0, with a first guess of the correction. Returns the residual without that guess.
    fn begin(&mut self) -> Unsolved {
        let solver = self.solver;
        let first = (1.0 / (1.0 - solver.core.damping_max)) as f32;
        for (page, (correction, share)) in self.all_corrections.iter_mut().zip(&solver.shares).enumerate() {
            *correction = solver.jump_to(page) as f32 * share * first;
        }
        let (mut sum, mut in_gifts) = (0.0, 0.0);
        for &(number, first) in &self.own {
            let pages = solver.core.chunks[number].pages.clone();
            for (page, residual) in pages.zip(&mut self.residual[first..]) {
                let jump = solver.jump_to(page);
                *residual = jump as f32;
                sum += jump;
                in_gifts += jump * f64::from(solver.shares[page]);
            }
        }
        self.meet([sum, sum, in_gifts]).into()
    }

    /// Recomputes all corrections in place, and saves them as `state`, if given. Returns the total change.
    fn sweep(&mut self, state: Option<usize>) -> f64 {
        let solver = self.solver;
        let mut changed = 0.0;
        let mut next = 0;
        for (number, stage) in solver.stages.iter().enumerate() {
            for _ in stage[self.thread].clone() {
                let (chunk, first) = self.own[next];
                next += 1;
                let chunk = &solver.core.chunks[chunk];
                changed += self.sweep_chunk(chunk, first);
                let new = &self.all_corrections[chunk.pages.clone()];
                if let Some(state) = state {
                    self.states[state][first..first + new.len()].copy_from_slice(new);
                }
                self.publish(chunk.pages.clone());
            }
            [changed] = if number + 1 < solver.stages.len() {
                self.meet([]);
                [changed]
            } else {
                self.meet([changed])
            };
            self.hear(number);
        }
        changed
    }

    fn sweep_chunk(&mut self, chunk: &PageChunk, first: usize) -> f64 {
        let corrections = Cell::from_mut(self.all_corrections.as_mut_slice()).as_slice_of_cells();
        let length = chunk.pages.len();
        self.panels.clear();
        self.panels.resize(length, 0.0);
        let incomes = self.panels.as_mut_slice();
        for panel in &chunk.panels {
            let block = &corrections[panel.block.clone()];
            panel.rows.each(
                |source| block[source].get(),
                |row, sum: f32| incomes[usize::from(panel.targets[row])] += sum,
            );
        }
        let own = &corrections[chunk.pages.clone()];
        let shares = &self.solver.shares[chunk.pages.clone()];
        let residual = &self.residual[first..first + length];
        let mut changed = 0.0;
        chunk.rest.each(
            |source| corrections[source].get(),
            |row, sum: f32| {
                let new = (residual[row] + incomes[row] + sum) * shares[row];
                changed += f64::from((new - own[row].get()).abs());
                own[row].set(new);
            },
        );
        changed
    }

    /// Replaces the corrections by the best combination of those after the last sweeps.
    fn mix(&mut self) {
        let mut products = Products::default();
        // All pages count: the remaining error may be on a few pages that a sample would miss.
        for place in 0..self.residual.len() {
            products.add(self.remembered(place));
        }
        let sums = self.meet(products.to_array());
        let mut products = Products::default();
        products.add_array(&sums);
        let mix = products.mix();
        for (chunk, first) in self.own.clone() {
            let pages = self.solver.core.chunks[chunk].pages.clone();
            for (place, page) in pages.clone().enumerate() {
                self.all_corrections[page] = self.mixed(mix, first + place);
            }
            self.publish(pages);
        }
        self.meet([]);
        (0..self.solver.stages.len()).for_each(|stage| self.hear(stage));
        // Nothing new is published until all threads have read this.
        self.meet([]);
    }

    #[inline]
    fn mixed(&self, mix: Mix, place: usize) -> f32 {
        mix.apply(self.remembered(place)) as f32
    }

    #[inline]
    fn remembered(&self, place: usize) -> [f64; STATES] {
        std::array::from_fn(|state| f64::from(self.states[state][place]))
    }

    /// Adds the corrections to the gifts.
    fn accept(&mut self) {
        let solver = self.solver;
        for &(number, _) in &self.own {
            for page in solver.core.chunks[number].pages.clone() {
                solver.gifts.set(page, solver.gifts.get(page) + f64::from(self.all_corrections[page]));
            }
        }
        self.all_corrections.fill(0.0);
        self.meet([]);
    }

    /// Computes the residual with 64-bit numbers.
    fn measure(&mut self) -> Unsolved {
        let solver = self.solver;
        let core = solver.core;
        let (mut rest, mut total, mut in_gifts) = (0.0, 0.0, 0.0);
        let mut incomes: Vec<f64> = Vec::new();
        for &(number, first) in &self.own {
            let chunk = &core.chunks[number];
            incomes.clear();
            incomes.resize(chunk.pages.len(), 0.0);
            let begin = chunk.pages.start;
            let selfish = core.selfish.partition_point(|&(page, _)| (page as usize) < begin);
            for &(page, weight) in &core.selfish[selfish..] {
                let page = page as usize;
                let Some(income) = incomes.get_mut(page - begin) else { break };
                *income = solver.gifts.get(page) * f64::from(weight);
            }
            for panel in &chunk.panels {
                let block = panel.block.start;
                panel.rows.each(
                    |source| solver.gifts.get(block + source),
                    |row, sum: f64| incomes[usize::from(panel.targets[row])] += sum,
                );
            }
            let residuals = &mut self.residual[first..first + chunk.pages.len()];
            chunk.rest.each(
                |source| solver.gifts.get(source),
                |row, sum: f64| {
                    let page = begin + row;
                    let value = solver.value(page);
                    let residual = solver.jump_to(page) + incomes[row] + sum - value;
                    residuals[row] = residual as f32;
                    rest += residual.abs();
                    total += value.abs();
                    in_gifts += residual.abs() * f64::from(solver.shares[page]);
                },
            );
        }
        self.meet([rest, total, in_gifts]).into()
    }
}
