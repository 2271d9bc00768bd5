//! Cost of choosing the pages of a refresh: `agenda`, which `archive refresh` runs.
//!
//! `cargo bench --bench refresh` times it on a hundred thousand pages. `cargo bench --bench refresh -- --pages
//! 10000000` generates the state of an archive of this many pages, captured twice and equally important, and prints one
//! JSON object per choice: seconds of the first run, which scans all pages, and of a run an hour later, which opens due
//! folders; the number of chosen pages; and the peak memory of the process. The budget is a thirtieth of the pages per
//! day, spent hourly.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use archive_base::memory::peak_bytes;
use archive_books::ledger::{Credits, capture_flags, page_flags};
use archive_choose::{DueArchive, FOLDERS_FROM, RefreshChoice, RefreshRules, Weights, agenda};
use archive_math::refresh::budget::BudgetRule;
use archive_math::refresh::rate::{ChangeObservations, Observation};
use archive_storage::address::url_hash;
use archive_storage::backend::RealDisk;
use archive_storage::{
    Capture, CaptureKind, Location, SegmentId, State, StateMode, UrlId, Visit, Watermarks,
};
use chrono::{DateTime, TimeDelta, Utc};
use divan::Bencher;
use divan::counter::ItemsCount;
use serde_json::json;

type Outcome<T> = Result<T, Box<dyn Error>>;

const POLICIES: [&str; 2] = ["default", "xyleme"];

const PAGES_PER_SITE: u32 = 1000;
const BATCH_PAGES: u32 = 1 << 20;

const SECONDS_PER_DAY: i64 = 86_400;
/// Start of the captures, in seconds since 1970; they span sixty days.
const BEGIN: i64 = 1_700_000_000;
const DAYS: i64 = 60;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--pages").skip(1);
    match arguments.next() {
        None => divan::main(),
        Some(pages) => long_run(pages.parse()?)?,
    }
    Ok(())
}

/// Generates the state of an archive of this many pages.
fn state(folder: &Path, pages: u32) -> Outcome<State> {
    let mut state = State::open(Arc::new(RealDisk), folder, StateMode::Own)?;
    let mut draws = fastrand::Rng::with_seed(1);
    for first in (0..pages).step_by(BATCH_PAGES as usize) {
        for number in first..pages.min(first.saturating_add(BATCH_PAGES)) {
            let site = number / PAGES_PER_SITE;
            let url = format!("https://www.site-{site}.example/part-{}/page-{number}", number % 7);
            let (id, _) = state.intern(&url, url_hash(&url))?;
            if number.is_multiple_of(PAGES_PER_SITE) {
                let (of, _) = state.intern_site(&format!("site-{site}.example"))?;
                state.intern_host(&format!("www.site-{site}.example"), of)?;
            }
            let host = state.find_host(&format!("www.site-{site}.example"))?;
            state.update_page(id, |page| {
                page.host = host.unwrap_or(page.host);
                page.flags.set(page_flags::ACCOUNT, true);
            })?;
            capture_twice(&mut state, id, &mut draws)?;
        }
        state.checkpoint(Watermarks::default())?;
    }
    Ok(state)
}

/// Captures a page twice: at some time in the first half of the period, and again up to half a period later.
fn capture_twice(state: &mut State, url: UrlId, draws: &mut fastrand::Rng) -> Outcome<()> {
    let first = BEGIN + (draws.f64() * (DAYS * SECONDS_PER_DAY / 2) as f64) as i64;
    let last = first + (draws.f64() * (DAYS * SECONDS_PER_DAY / 2) as f64) as i64 + 60;
    // The rates span three orders of magnitude.
    let interval = (last - first) as f64 / SECONDS_PER_DAY as f64;
    let rate = 0.001 * (7.0 * draws.f64()).exp();
    let changed = draws.f64() > (-rate * interval).exp();
    let mut observations = ChangeObservations::new();
    observations.observe(&Observation { interval, changed, last_modified: None });
    let mut capture = Capture {
        url,
        time: first * 1_000_000,
        location: Location { segment: SegmentId(0), offset: 0, length: 4000 },
        digest: [0; 16],
        status: 200,
        mime: archive_storage::MimeId(0),
        kind: CaptureKind::Response,
        length: 20_000,
        flags: 0,
        original: None,
    };
    state.append_capture(&capture, None)?;
    capture.time = last * 1_000_000;
    capture.flags = if changed { capture_flags::CONTENT_CHANGED } else { 0 };
    state.append_capture(&capture, None)?;
    let visit = Visit {
        first_seen: first as u32,
        last_seen: last as u32,
        last_answer: last as u32,
        last_attempt: last as u32,
        contents: 2,
        versions: 1 + u32::from(changed),
        status: 200,
        extension: observations.to_bytes(),
        ..Visit::default()
    };
    Ok(state.set_visit(url, &visit)?)
}

/// Runs a choice and returns the number of pages to fetch, which the hourly budget limits.
fn choose(state: &State, choice: &RefreshChoice, hours: i64) -> Outcome<usize> {
    let budget = state.totals().fetched as usize / (30 * 24);
    let now: DateTime<Utc> = DateTime::from_timestamp(BEGIN + DAYS * SECONDS_PER_DAY, 0).unwrap_or_default();
    let now = now + TimeDelta::hours(hours);
    let credits = Credits::open(state)?;
    Ok(agenda(&[DueArchive::alone(state, &credits, choice, &[])], budget, now)?[0].len())
}

fn choice(policy: &str, archive: &Path) -> Outcome<RefreshChoice> {
    let rules = RefreshRules { policy: policy.parse()?, ..RefreshRules::default() };
    Ok(RefreshChoice::new(rules, Weights::importance()).with_folders(archive, FOLDERS_FROM))
}

fn long_run(pages: u32) -> Outcome<()> {
    let folder = tempfile::tempdir_in(".")?;
    let begun = Instant::now();
    let state = state(folder.path(), pages)?;
    println!("{}", json!({ "step": "state", "pages": pages, "seconds": begun.elapsed().as_secs_f64() }));
    for policy in POLICIES {
        let choice = choice(policy, folder.path())?;
        for hours in 0..2 {
            let begun = Instant::now();
            let chosen = choose(&state, &choice, hours)?;
            println!(
                "{}",
                json!({ "step": "choice", "policy": policy, "hours": hours, "pages": chosen,
                    "seconds": begun.elapsed().as_secs_f64(), "peak_bytes": peak_bytes() })
            );
        }
    }
    Ok(())
}

#[divan::bench(args = POLICIES, sample_count = 5, sample_size = 1)]
fn choice_from_a_hundred_thousand_pages(bencher: Bencher, policy: &str) {
    let folder = tempfile::tempdir_in(".").expect("the folder can be written");
    let state = state(folder.path(), 100_000).expect("there is room on the disk");
    let choice = choice(policy, folder.path()).expect("the policy is known");
    bencher
        .counter(ItemsCount::new(100_000_usize))
        .bench_local(|| choose(&state, &choice, 0).expect("it can be read"));
}

#[divan::bench(args = [BudgetRule::Xyleme, BudgetRule::Freshness, BudgetRule::Harmonic])]
fn values(bencher: Bencher, rule: BudgetRule) {
    let pages: Vec<(f64, f64, f64)> =
        (1..=1000).map(|i| (f64::from(i) / 500.0, 1e-4 * f64::from(i), f64::from(i % 37))).collect();
    bencher
        .counter(ItemsCount::new(pages.len()))
        .bench(|| pages.iter().map(|&(w, rate, age)| rule.value(w, rate, age)).sum::<f64>());
}
