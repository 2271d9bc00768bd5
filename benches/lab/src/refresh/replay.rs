//! Spends a budget of fetches on a [`World`] by a policy and measures the quality of the copies.
//!
//! Time runs in ticks. Each tick spends exactly the budget (fractions carry over) on the pages with the highest value.
//! A page is known, and fetched once for free, at its birth. A fetch shows whether the page changed since the previous
//! fetch and when it last did. After its death the page answers 404 and is removed.

use archive_math::refresh::policies::Sighting;

use super::policies::RefreshPolicy;
use super::world::World;
use crate::refresh::draws::Draws;

/// Importance-weighted means over pages and over the time after the burn-in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Share of time in which the copy equals the live page.
    pub freshness: f64,
    /// The same before the burn-in ends, while all pages are new to the policy.
    pub first: f64,
    /// The same over the first [`YOUNG_DAYS`] of pages that appeared after the burn-in; unknown (NaN) without such pages.
    pub young: f64,
    /// Share of time in which the copy is fresh or became stale less than 1, 7, 30 days ago.
    pub currency: [f64; 3],
    /// Days since the first change that the copy lacks; 0 for a fresh copy.
    pub age: f64,
    /// Number of changes that the copy lacks.
    pub obsolescence: f64,
    /// Share of versions that were captured.
    pub captured: f64,
    /// Share of fetches that found something new (including a 404); not weighted.
    pub hits: f64,
    /// Number of fetches after the burn-in.
    pub fetches: usize,
}

/// Days for which a page is young.
pub const YOUNG_DAYS: f64 = 90.0;
/// Ages in days up to which a stale copy counts as current in [`Outcome::currency`].
const CURRENT_DAYS: [f64; 3] = [1.0, 7.0, 30.0];
/// Values are multiplied by 1 to 1 + this, so that the order of pages does not break ties.
const TIE_BREAK: f64 = 1e-9;

/// What the copies of a page have missed so far.
#[derive(Clone, Copy, Default)]
struct Missed {
    days: f64,
    first: f64,
    young: f64,
    current: [f64; 3],
    age: f64,
    changes: f64,
    captured: u32,
}

struct Books<'a> {
    world: &'a World,
    last: Vec<f64>,
    next_change: Vec<usize>,
    missed: Vec<Missed>,
}

impl Books<'_> {
    /// Accounts for the time from the last fetch of `page` to `now`; returns the last change in it.
    fn account(&mut self, page: usize, now: f64) -> Option<f64> {
        let (changes, burn_in) = (&self.world.pages[page].changes, self.world.burn_in);
        let end = now.min(self.world.pages[page].death);
        let next = &mut self.next_change[page];
        while changes.get(*next).is_some_and(|&at| at <= self.last[page]) {
            *next += 1;
        }
        let from = *next;
        while changes.get(*next).is_some_and(|&at| at <= end) {
            *next += 1;
        }
        let unseen = &changes[from..*next];
        let (&first, &last) = (unseen.first()?, unseen.last()?);
        let missed = &mut self.missed[page];
        missed.first += (end.min(burn_in) - first).max(0.0);
        missed.young +=
            self.world.pages[page].young(burn_in).map_or(0.0, |young| (end.min(young) - first).max(0.0));
        let begin = first.max(burn_in);
        if end > begin {
            missed.days += end - begin;
            missed.age += ((end - first).powi(2) - (begin - first).powi(2)) / 2.0;
            for (sum, days) in missed.current.iter_mut().zip(CURRENT_DAYS) {
                *sum += (end - first - (begin - first).max(days)).max(0.0);
            }
            missed.changes += unseen.iter().map(|&at| end - at.max(burn_in)).sum::<f64>();
        }
        Some(last)
    }

    fn outcome(&self, fetches: usize, hits: usize) -> Outcome {
        let world = self.world;
        let (mut time, mut versions, mut first, mut young) = (0.0, 0.0, 0.0, 0.0);
        let mut sum = Outcome { fetches, hits: hits as f64 / fetches.max(1) as f64, ..Outcome::default() };
        for (page, missed) in world.pages.iter().zip(&self.missed) {
            let weight = page.importance;
            time += weight * (page.death - page.birth.max(world.burn_in)).max(0.0);
            versions += weight * page.changes.iter().filter(|&&at| at >= world.burn_in).count() as f64;
            first += weight * (page.death.min(world.burn_in) - page.birth).max(0.0);
            young += weight * page.young(world.burn_in).map_or(0.0, |end| end.min(page.death) - page.birth);
            sum.freshness += weight * missed.days;
            sum.first += weight * missed.first;
            sum.young += weight * missed.young;
            for (sum, days) in sum.currency.iter_mut().zip(missed.current) {
                *sum += weight * days;
            }
            sum.age += weight * missed.age;
            sum.obsolescence += weight * missed.changes;
            sum.captured += weight * f64::from(missed.captured);
        }
        sum.freshness = 1.0 - sum.freshness / time;
        sum.first = 1.0 - sum.first / first;
        sum.young = 1.0 - sum.young / young;
        sum.currency = sum.currency.map(|missed| 1.0 - missed / time);
        sum.age /= time;
        sum.obsolescence /= time;
        sum.captured /= versions.max(1e-9);
        sum
    }
}

/// Replays `world` under `policy` with `budget` fetches per day; `draws` break ties between pages of equal value.
pub fn replay(world: &World, policy: &mut dyn RefreshPolicy, budget: f64, draws: &mut Draws) -> Outcome {
    let count = world.pages.len();
    let mut books = Books {
        world,
        last: world.pages.iter().map(|page| page.birth).collect(),
        next_change: vec![0; count],
        missed: vec![Missed::default(); count],
    };
    let mut born: Vec<usize> = (0..count).collect();
    born.sort_by(|&a, &b| world.pages[a].birth.total_cmp(&world.pages[b].birth));
    let mut born = born.into_iter().peekable();
    let (mut living, mut ages, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (mut ranked, mut visits): (Vec<(f64, usize)>, Vec<Sighting>) = (Vec::new(), Vec::new());
    let (mut carried, mut fetches, mut hits) = (0.0, 0, 0);
    for tick in 1..=(world.days / world.tick) as usize {
        let now = tick as f64 * world.tick;
        while let Some(page) = born.next_if(|&page| world.pages[page].birth <= now) {
            living.insert(living.partition_point(|&other| other < page), page);
        }
        carried += budget * world.tick;
        let spend = (carried as usize).min(living.len());
        if carried < 1.0 || living.is_empty() {
            continue;
        }
        carried -= carried.floor();
        ages.clear();
        ages.extend(living.iter().map(|&page| now - books.last[page]));
        values.clear();
        values.resize(living.len(), 0.0);
        policy.values(now, &living, &ages, &mut values);
        ranked.clear();
        ranked.extend(
            values.iter().zip(&living).map(|(&v, &page)| (v * (1.0 + TIE_BREAK * draws.unit()), page)),
        );
        if spend < ranked.len() {
            ranked.select_nth_unstable_by(spend, |a, b| b.0.total_cmp(&a.0));
            ranked.truncate(spend);
        }
        visits.clear();
        let mut gone = Vec::new();
        for &(_, page) in ranked.iter().filter(|(value, _)| *value >= 0.0) {
            let changed = books.account(page, now);
            let dead = now >= world.pages[page].death;
            if now > world.burn_in {
                fetches += 1;
                hits += usize::from(changed.is_some() || dead);
                books.missed[page].captured += u32::from(changed.is_some());
            }
            let age = now - books.last[page];
            books.last[page] = now;
            if dead {
                gone.push(page);
            } else {
                visits.push(Sighting { page, age, changed });
            }
        }
        if !gone.is_empty() {
            living.retain(|page| !gone.contains(page));
            policy.gone(now, &gone);
        }
        if !visits.is_empty() {
            policy.seen(now, &visits);
        }
    }
    for page in living {
        // Slightly after the end, so that a change at the end itself is included.
        books.account(page, world.days + 1e-9);
    }
    books.outcome(fetches, hits)
}
