//! Parts in one process, processed by threads that do not wait for each other.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::part::{FlowBatch, GraphPart, PartAccount};
use super::{PartError, bound};

/// A part is swept until its residual is at most this share of what it was, or this often, before it sends to the
/// others.
const INNER_SHARE: f64 = 0.1;
const INNER_SWEEPS_MAX: u32 = 16;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub struct Chaotic {
    /// Stop when the L1 error is proven to be at most this.
    pub tolerance: f64,
    /// Stop as soon as the parts were swept this often on average. While the thread of a part has to wait for a
    /// processor, other parts may be swept much more often.
    pub sweeps_max: u32,
    /// Number of parts processed at the same time.
    pub threads: usize,
}

/// The result of a run.
#[derive(Debug)]
pub struct ChaoticRanking {
    /// PageRank of the pages of each part; the sum over all parts is 1.
    pub values: Vec<Vec<f64>>,
    /// Upper bound of the L1 error.
    pub bound: f64,
    /// Average number of sweeps over a part.
    pub sweeps: f64,
    /// Number of links that were read.
    pub operations: u64,
    /// Average number of times that a part sent its outflow.
    pub rounds: f64,
    /// Bytes of batches between the parts.
    pub bytes: u64,
}

/// State shared by the threads.
struct SharedParts {
    waiting: VecDeque<GraphPart>,
    /// The newest batches, by receiver and sender.
    mail: Vec<Vec<Option<FlowBatch>>>,
    accounts: Vec<PartAccount>,
    /// Which parts had nothing to do with what they have heard.
    still: Vec<bool>,
    /// Number of sweeps over all parts.
    sweeps: u64,
    rounds: u64,
    bytes: u64,
    is_over: bool,
}

impl Chaotic {
    /// Ranks parts that are connected.
    ///
    /// # Errors
    /// When the links of a part cannot be read.
    pub fn run(&self, parts: Vec<GraphPart>) -> Result<ChaoticRanking, PartError> {
        let count = parts.len();
        let accounts: Vec<PartAccount> = parts.iter().map(GraphPart::account).collect();
        let mail = (0..count).map(|_| vec![None; count]).collect();
        let (waiting, still) = (VecDeque::from(parts), vec![false; count]);
        let mut board =
            SharedParts { waiting, mail, accounts, still, sweeps: 0, rounds: 0, bytes: 0, is_over: false };
        // Work in progress at the end of the last pass may have raised the bound slightly.
        while !self.is_over(&board) {
            board = self.work_together(SharedParts { is_over: false, ..board })?;
        }
        let SharedParts { waiting, accounts, sweeps, rounds, bytes, .. } = board;
        let mut parts = Vec::from(waiting);
        parts.sort_by_key(GraphPart::number);
        let each = 1.0 / count.max(1) as f64;
        let sweeps = sweeps as f64 * each;
        let operations = parts.iter().map(|part| part.links * u64::from(part.sweeps)).sum();
        let mut values: Vec<Vec<f64>> = parts.into_iter().map(GraphPart::into_values).collect();
        let total: f64 = values.iter().flatten().sum();
        values.iter_mut().flatten().for_each(|value| *value /= total);
        let bound = bound(&accounts);
        Ok(ChaoticRanking { values, bound, sweeps, operations, rounds: rounds as f64 * each, bytes })
    }

    fn is_over(&self, board: &SharedParts) -> bool {
        let sweeps_max = u64::from(self.sweeps_max) * board.accounts.len() as u64;
        // The rest may be rounding errors, which no sweep lessens.
        let has_mail = || board.mail.iter().flatten().any(Option::is_some);
        let is_still = board.still.iter().all(|is_still| *is_still) && !has_mail();
        is_still || bound(&board.accounts) <= self.tolerance || board.sweeps >= sweeps_max
    }

    fn work_together(&self, board: SharedParts) -> Result<SharedParts, PartError> {
        let threads = self.threads.clamp(1, board.waiting.len().max(1));
        let board = Mutex::new(board);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.work(&board))).collect();
            threads.into_iter().try_for_each(|thread| match thread.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        Ok(board.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Processes one part after another until the end.
    fn work(&self, board: &Mutex<SharedParts>) -> Result<(), PartError> {
        let lock = || board.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut shared = lock();
            if shared.is_over {
                return Ok(());
            }
            let Some(mut part) = shared.waiting.pop_front() else {
                // There are no more threads than parts, so a part for this one is about to come back.
                drop(shared);
                thread::yield_now();
                continue;
            };
            let mail: Vec<FlowBatch> =
                shared.mail[part.number()].iter_mut().filter_map(Option::take).collect();
            let enough = self.enough(&shared.accounts);
            shared.still[part.number()] &= mail.is_empty();
            drop(shared);
            let before = part.sweeps;
            let outcome = advance(&mut part, &mail, enough);
            let mut shared = lock();
            let swept = part.sweeps - before;
            shared.sweeps += u64::from(swept);
            shared.still[part.number()] = swept == 0;
            self.put_back(shared, part, outcome)?;
        }
    }

    /// Residual of one part that is small enough to ignore.
    fn enough(&self, accounts: &[PartAccount]) -> f64 {
        let total: f64 = accounts.iter().map(|account| account.total).sum();
        let follows = accounts.iter().map(|account| account.follows).fold(0.0, f64::max);
        self.tolerance * total * (1.0 - follows) / (8.0 * accounts.len() as f64)
    }

    fn put_back(
        &self,
        mut shared: MutexGuard<'_, SharedParts>,
        part: GraphPart,
        outcome: Result<Vec<FlowBatch>, PartError>,
    ) -> Result<(), PartError> {
        match outcome {
            Ok(batches) => {
                shared.rounds += u64::from(!batches.is_empty());
                for batch in batches {
                    shared.bytes += batch.bytes();
                    let (to, from) = (batch.to, batch.from);
                    shared.mail[to][from] = Some(batch);
                }
                shared.accounts[part.number()] = part.account();
                shared.waiting.push_back(part);
                shared.is_over |= self.is_over(&shared);
                Ok(())
            }
            Err(error) => {
                shared.is_over = true;
                Err(error)
            }
        }
    }
}

/// Receives batches, sweeps the part unless what that lessens can be ignored, and returns what flows out.
///
/// Rounding errors do not count: a part that has nothing else would be swept over and over while the others wait for a
/// processor, until all have been swept too often on average.
fn advance(part: &mut GraphPart, mail: &[FlowBatch], enough: f64) -> Result<Vec<FlowBatch>, PartError> {
    mail.iter().try_for_each(|batch| part.hear(batch))?;
    if part.residual() + part.unsent() <= enough {
        thread::yield_now();
        return Ok(Vec::new());
    }
    let goal = (part.residual() * INNER_SHARE).max(enough / 2.0);
    for _ in 0..INNER_SWEEPS_MAX {
        part.sweep()?;
        if part.residual() <= goal {
            break;
        }
    }
    Ok(part.send()?)
}
