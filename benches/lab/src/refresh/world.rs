//! A window of recorded time: the pages that live in it, their importance, and their changes.
//!
//! Times are days since the start of the window. The selection of pages, the drawn importance of pages without a known
//! one, and the grouping into sites follow the reference simulator, so that results can be compared page by page.

use std::collections::HashMap;

use archive_math::refresh::change_model::{Relations, relations};
use archive_math::refresh::policies::RefreshProblem;
use flate2::Crc;

use super::history::{Event, History, HistoryError};

const SECONDS_PER_DAY: f64 = 86_400.0;
/// A page that first appears less than this many days before the window's end is left out.
const LATEST_BIRTH_DAYS: f64 = 30.0;
/// A page that lives for less than this many days in the window is left out.
const SHORTEST_LIFE_DAYS: f64 = 1.0;
/// Importance of a page that is missing from the list of importance.
const UNLISTED_IMPORTANCE: f64 = 0.3;
/// Upper limit for importance that is drawn, in the absence of a list, from a Pareto law with this exponent.
const DRAWN_IMPORTANCE_MAX: f64 = 60.0;
const PARETO_EXPONENT: f64 = 1.5;
/// Name prefix of histories that record many services, each a site with its own folder.
const FOLDER_IS_SITE: &str = "ota";
/// Share of the window before measuring starts.
const BURN_IN: f64 = 0.25;

/// A page and its life.
#[derive(Clone, Debug)]
pub struct Page {
    /// `HISTORY:PATH`.
    pub name: String,
    /// Importance relative to the mean of the world's pages.
    pub importance: f64,
    /// Time of its appearance, at least 0.
    pub birth: f64,
    /// Time of its disappearance, or the window's end.
    pub death: f64,
    /// Times of its changes between birth and death, ascending.
    pub changes: Vec<f64>,
    /// Number of its site.
    pub site: usize,
    /// Number of its directory.
    pub directory: usize,
}

impl Page {
    /// Returns the mean rate over its life in changes per day, known only in hindsight.
    pub fn rate(&self) -> f64 {
        self.changes.len() as f64 / (self.death - self.birth)
    }
}

impl Page {
    /// Returns until when the page is young, if it appeared after the burn-in.
    pub fn young(&self, burn_in: f64) -> Option<f64> {
        (self.birth > burn_in).then_some(self.birth + super::replay::YOUNG_DAYS)
    }
}

/// The pages of some histories within a window of time.
#[derive(Clone, Debug)]
pub struct World {
    /// The pages.
    pub pages: Vec<Page>,
    /// Length of the window in days.
    pub days: f64,
    /// Days between two ticks, the times of fetching.
    pub tick: f64,
    /// Start of measuring, in days.
    pub burn_in: f64,
    /// Start of the window, in seconds since the epoch.
    pub start: i64,
    sites: usize,
    directories: usize,
}

/// Start, end and tick of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Start, in seconds since the epoch.
    pub start: i64,
    /// End, in seconds since the epoch.
    pub end: i64,
    /// Days between two ticks, the times of fetching.
    pub tick: f64,
}

impl World {
    /// Cuts `window` out of histories, each with the largest number of its pages to use.
    ///
    /// # Errors
    /// No page lives in the window.
    pub fn new(histories: &[(&History, usize)], window: Window) -> Result<Self, HistoryError> {
        let mut numbers = Numbers::default();
        let mut pages = Vec::new();
        for (history, pages_max) in histories {
            pages.extend(cut(history, *pages_max, window, &mut numbers));
        }
        if pages.is_empty() {
            let names: Vec<&str> = histories.iter().map(|(history, _)| history.name.as_str()).collect();
            return Err(HistoryError::NoPages(names.join(", ")));
        }
        let mean = pages.iter().map(|page| page.importance).sum::<f64>() / pages.len() as f64;
        pages.iter_mut().for_each(|page| page.importance /= mean);
        let days = (window.end - window.start) as f64 / SECONDS_PER_DAY;
        Ok(Self {
            pages,
            days,
            tick: window.tick,
            burn_in: BURN_IN * days,
            start: window.start,
            sites: numbers.sites.len(),
            directories: numbers.directories.len(),
        })
    }

    /// Returns the number of changes in the window.
    pub fn changes(&self) -> usize {
        self.pages.iter().map(|page| page.changes.len()).sum()
    }

    /// Returns the budget in fetches per day; 1 for `beta` means one fetch per change.
    pub fn budget(&self, beta: f64) -> f64 {
        beta * self.changes() as f64 / self.days
    }

    /// Returns what a policy that spends `budget` fetches per day may know.
    pub fn known(&self, budget: f64) -> RefreshProblem {
        RefreshProblem {
            importance: self.pages.iter().map(|page| page.importance).collect(),
            site: self.pages.iter().map(|page| page.site).collect(),
            directory: self.pages.iter().map(|page| page.directory).collect(),
            relations: self.pages.iter().map(page_relations).collect(),
            sites: self.sites,
            directories: self.directories,
            found: self.pages.iter().map(|page| page.birth).collect(),
            found_at_birth: true,
            budget,
            mean_rate: None,
            promised: Vec::new(),
            days: self.days,
            tick: self.tick,
        }
    }
}

fn page_relations(page: &Page) -> Relations {
    relations(page.site as u64, page.name.split_once(':').map_or("", |(_, path)| path))
}

/// Numbers of sites and directories by name.
#[derive(Default)]
struct Numbers {
    sites: HashMap<(String, String), usize>,
    directories: HashMap<String, usize>,
}

fn number<K: std::hash::Hash + Eq>(numbers: &mut HashMap<K, usize>, key: K) -> usize {
    let next = numbers.len();
    *numbers.entry(key).or_insert(next)
}

fn cut(history: &History, pages_max: usize, window: Window, numbers: &mut Numbers) -> Vec<Page> {
    let mut chosen: Vec<(f64, &str, &[Event], i64, i64)> = Vec::new();
    for (path, events) in &history.pages {
        if let Some((birth, death)) = life(events, window) {
            chosen.push((draw(&format!("s{path}")), path, events, birth, death));
        }
    }
    chosen.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    chosen.truncate(pages_max);
    let day = |seconds: i64| (seconds - window.start) as f64 / SECONDS_PER_DAY;
    let mut page = |path: &str, events: &[Event], birth: i64, death: i64| {
        let mut changes: Vec<i64> =
            events.iter().map(|event| event.seconds).filter(|&at| birth < at && at < death).collect();
        changes.sort_unstable();
        changes.dedup();
        let name = format!("{}:{path}", history.name);
        let folder = if history.name.starts_with(FOLDER_IS_SITE) { first_folder(path) } else { "" };
        let directory = name.rsplit_once('/').map_or(name.as_str(), |(directory, _)| directory).to_owned();
        Page {
            importance: importance(history, path),
            birth: day(birth),
            death: day(death),
            changes: changes.into_iter().map(day).collect(),
            site: number(&mut numbers.sites, (history.name.clone(), folder.to_owned())),
            directory: number(&mut numbers.directories, directory),
            name,
        }
    };
    chosen.into_iter().map(|(_, path, events, birth, death)| page(path, events, birth, death)).collect()
}

/// Returns the start and end of a page's life in the window; `None` if it is too short or too late.
fn life(events: &[Event], window: Window) -> Option<(i64, i64)> {
    let (first, last) = (events.first()?, events.last()?);
    let birth = first.seconds.max(window.start);
    let death = if last.deleted { last.seconds.min(window.end) } else { window.end };
    let late = first.seconds as f64 >= window.end as f64 - LATEST_BIRTH_DAYS * SECONDS_PER_DAY;
    let short = ((death - birth) as f64) < SHORTEST_LIFE_DAYS * SECONDS_PER_DAY;
    (!late && !short && death > window.start + 1).then_some((birth, death))
}

fn first_folder(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

fn importance(history: &History, path: &str) -> f64 {
    match &history.importance {
        Some(listed) => listed.get(path).copied().unwrap_or(UNLISTED_IMPORTANCE),
        None => {
            let shared = if history.name.contains(FOLDER_IS_SITE) { first_folder(path) } else { path };
            (draw(&format!("w{shared}")).powf(-1.0 / PARETO_EXPONENT) / 3.0).min(DRAWN_IMPORTANCE_MAX)
        }
    }
}

/// Returns a number in 0..1 that depends only on `text`.
fn draw(text: &str) -> f64 {
    let mut crc = Crc::new();
    crc.update(text.as_bytes());
    (f64::from(crc.sum()) + 0.5) / 4_294_967_296.0
}
