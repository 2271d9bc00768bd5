//! What scheduling refreshes costs.
//!
//! `cargo bench --bench refresh` times picks and values on a million pages. `cargo bench --bench refresh -- --pages 100000000`
//! schedules so many pages over a day of hourly time units and prints memory, seconds a time unit and picks a second.

use std::time::Instant;

use archive::memory::peak_bytes;
use archive::refresh::folders::DueFolders;
use archive::refresh::policy::Rule;
use archive::refresh::schedule::Budget;
use divan::Bencher;
use divan::counter::ItemsCount;

/// A time unit is an hour; folders reach half a year.
const UNITS_PER_DAY: f64 = 24.0;
const FOLDERS: usize = 24 * 183;
/// Days in which the budget could fetch all pages alike.
const CYCLE_DAYS: f64 = 30.0;

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--pages").skip(1);
    match arguments.next().map(|pages| pages.parse()) {
        None => divan::main(),
        Some(Ok(pages)) => long_run(pages),
        Some(Err(error)) => eprintln!("--pages wants a number: {error}"),
    }
}

/// Pages with what a pick needs of each: its importance times its rate.
struct Schedule {
    demand: Vec<f32>,
    budget: Budget,
    folders: DueFolders,
    random: fastrand::Rng,
}

impl Schedule {
    fn new(pages: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(1);
        let mut budget = Budget::new(pages as f64 / (CYCLE_DAYS * UNITS_PER_DAY), 1.0);
        // Importance by a Pareto law, rates over three orders of magnitude, in changes a time unit.
        let demand: Vec<f32> = (0..pages)
            .map(|_| {
                let importance = (1.0 - random.f64()).powf(-0.6) / 2.5;
                (importance * 1e-4 * (7.0 * random.f64()).exp()) as f32
            })
            .collect();
        demand.iter().for_each(|&demand| budget.add(f64::from(demand), 1.0));
        let mut folders = DueFolders::new(pages, FOLDERS);
        for (page, &demand) in demand.iter().enumerate() {
            let interval = budget.interval(f64::from(demand), 1.0) * random.f64();
            folders.put(page as u32, interval as u32);
        }
        Self { demand, budget, folders, random }
    }

    /// Works through one time unit: takes what is due, learns a new rate, puts it back. Returns the number of picks.
    fn unit(&mut self) -> usize {
        let mut picks = 0;
        while let Some(page) = self.folders.take() {
            let demand = &mut self.demand[page as usize];
            self.budget.remove(f64::from(*demand), 1.0);
            *demand *= (0.95 + 0.1 * self.random.f64()) as f32;
            self.budget.add(f64::from(*demand), 1.0);
            // At least the next unit: a unit ends.
            let interval = self.budget.interval(f64::from(*demand), 1.0).round().max(1.0);
            self.folders.put(page, interval as u32);
            picks += 1;
        }
        self.folders.advance();
        picks
    }

    fn bytes(&self) -> usize {
        self.folders.bytes() + size_of::<f32>() * self.demand.len()
    }
}

fn long_run(pages: usize) {
    let begun = Instant::now();
    let mut schedule = Schedule::new(pages);
    println!("{pages} pages, {:.1} s to set up", begun.elapsed().as_secs_f64());
    println!("{} bytes of schedule, {:.1} a page", schedule.bytes(), schedule.bytes() as f64 / pages as f64);
    let (mut picks, mut slowest) = (0, 0.0_f64);
    let begun = Instant::now();
    let units = UNITS_PER_DAY as usize;
    for _ in 0..units {
        let unit = Instant::now();
        picks += schedule.unit();
        slowest = slowest.max(unit.elapsed().as_secs_f64());
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{units} time units of {:.0} picks at a budget of {:.0}",
        picks as f64 / units as f64,
        schedule.budget.fetches_per_day
    );
    println!("{:.4} s a time unit, the slowest {slowest:.4} s", seconds / units as f64);
    println!("{:.0} picks/s", picks as f64 / seconds);
    if let Some(bytes) = peak_bytes() {
        println!("{bytes} bytes of memory at the peak");
    }
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn a_day_of_picks_of_a_million_pages(bencher: Bencher) {
    let picks = (1_000_000.0 / CYCLE_DAYS) as usize;
    bencher
        .counter(ItemsCount::new(picks))
        .with_inputs(|| Schedule::new(1_000_000))
        .bench_values(|mut schedule| (0..UNITS_PER_DAY as usize).map(|_| schedule.unit()).sum::<usize>());
}

#[divan::bench(args = [Rule::Xyleme, Rule::Freshness, Rule::Harmonic])]
fn values(bencher: Bencher, rule: Rule) {
    let pages: Vec<(f64, f64, f64)> =
        (1..=1000).map(|i| (f64::from(i) / 500.0, 1e-4 * f64::from(i), f64::from(i % 37))).collect();
    bencher
        .counter(ItemsCount::new(pages.len()))
        .bench(|| pages.iter().map(|&(w, rate, age)| rule.value(w, rate, age)).sum::<f64>());
}
