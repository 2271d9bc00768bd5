//! Cost of queries in a large archive: opening it, and queries for sites, pages and their counts.
//!
//!     cargo bench --bench queries -- --pages 10000000 --sites 100000 --folder DIR
//!
//! generates the state of an archive of this many captured pages, recorded as by a crawl, and queries it. One more
//! page, [`MANY`], has ten thousand captures. The archive contains no records and nothing is fetched. An existing
//! archive in the folder is queried as it is, so that two programs can be compared, unless `--fill` adds all these
//! pages to it (an imported archive also has records). Without `--folder`, the folder is a temporary one. Ten million
//! pages take some 4 GB and, on one processor, a quarter of an hour. `--index` adds a full-text index of synthetic
//! documents of forty words, one for each HTML or XML page, and runs searches as well. With `--found N` each HTML page
//! also links to N URLs that are never fetched: `--pages 5000000 --found 29` generates an archive of a hundred million
//! URLs.
//!
//! With `--questions FILE`, the queries of that file, one a line, are asked in place of these.
//!
//! Each query runs `--times` times after one unmeasured run, each time on a newly opened archive. The output is one
//! JSON object per query: milliseconds of opening and of the answer, median and 99th percentile, in wall-clock and
//! processor time.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use archive_ask::query::Question;
use archive_base::access::Access;
use archive_base::memory::peak_bytes;
use archive_books::ledger::{CrawlerFacts, Credits, FetchOutcome};
use archive_books::search::{self, IndexOptions, IndexedVersion};
use archive_books::{prepared, recorder};
use archive_storage::segment::SegmentOptions;
use archive_storage::{CaptureKind, Location, SegmentId, Store};
use archive_web::parse::{DocumentKind, Elements, Link, LinkKind};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const QUESTIONS: [&str; 10] = [
    "site importance > 2 order by importance limit 50",
    "page importance > 2 and type = html and status = 200 limit 100",
    "page type = pdf and depth > 3 and last seen < 2024-03-01 limit 100",
    "page site = \"s7.test\" and status = 404 and type = html limit 100",
    "count pages group by type",
    "count pages status = 404",
    "count pages type = html group by site limit 50",
    "page url = \"http://www.s0.test/part-0/page-0.html\"",
    "captures select status, count, sum(stored) group by status",
    "count captures host = \"www.s7.test\"",
];

/// Queries for an archive with an index. A word of rank n occurs in about 40 / 12 / n of the documents.
const SEARCHES: [&str; 12] = [
    "page text contains w40 limit 20",
    "page text contains w40 and importance > 2 limit 20",
    "page text contains w40 and importance > 2 order by importance limit 20",
    "page text contains w4000 and importance > 2 order by importance limit 20",
    "page text contains any (w40, w100) and type = html order by importance limit 20",
    "count pages text contains w40 group by site limit 20",
    "page //book/@lang = de limit 20",
    "page //book[@year = \"1987\" or @lang = fr] and importance > 1 order by importance limit 20",
    "count pages //book/@lang = de group by site limit 20",
    "page //book contains w40 and importance > 1 order by importance limit 20",
    "page //book/@year > 1990 and importance > 1 order by importance limit 20",
    "page //book[@year between 1980 and 1989 or . contains w4000] limit 20",
];

/// Number of different words, the n-th of which is 1/n times as frequent as the first; number of words per document.
const VOCABULARY: f64 = 100_000.0;
const WORDS: u64 = 40;

/// Number of consecutively found pages of one site.
const RUN: u64 = 20;

/// Number of captures between two checkpoints.
const CHECKPOINT: u64 = 1 << 19;

/// Start of the captures, in seconds since 1970; they span two hundred days.
const BEGIN: i64 = 1_700_000_000;
const DAYS: i64 = 200;

/// A page captured every four hours before all others; every tenth capture finds a new version.
const MANY: &str = "http://www.many.test/";
const VISITS: u64 = 10_000;
const VISIT_SECONDS: i64 = 4 * 3600;

/// Memory for the rounds over all links, in bytes.
const SETTLE_BYTES: usize = 4 << 30;

type Outcomes<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcomes<()> {
    let number = |name: &str, usual: u64| argument(name).map_or(Ok(usual), |text| text.parse());
    let (pages, sites, times) =
        (number("--pages", 1_000_000)?, number("--sites", 10_000)?, number("--times", 50)?);
    let web = Web { pages, sites, found: number("--found", 0)? };
    let temporary = tempfile::tempdir_in(".")?;
    let folder = argument("--folder").map_or_else(|| temporary.path().join("archive"), Into::into);
    if !folder.exists() || std::env::args().any(|argument| argument == "--fill") {
        let begun = Instant::now();
        make(&folder, &web)?;
        println!("{}", json!({ "step": "made", "pages": pages, "seconds": begun.elapsed().as_secs_f64() }));
    }
    let has_index = std::env::args().any(|argument| argument == "--index");
    let index = folder.join(search::FOLDER);
    if has_index && !index.exists() {
        let (begun, documents) = (Instant::now(), make_index(&folder, &index, &web)?);
        let seconds = begun.elapsed().as_secs_f64();
        println!("{}", json!({ "step": "indexed", "documents": documents, "seconds": seconds }));
    }
    let usual = QUESTIONS.iter().chain(SEARCHES.iter().filter(|_| has_index)).copied();
    let own = argument("--questions").map(fs::read_to_string).transpose()?;
    let questions: Vec<&str> = own.as_ref().map_or_else(|| usual.collect(), |text| text.lines().collect());
    for question in questions {
        if let Err(error) = ask(&folder, question, times as usize) {
            println!("{}", json!({ "question": question, "error": error.to_string() }));
        }
    }
    println!("{}", json!({ "peak_bytes": peak_bytes() }));
    Ok(())
}

fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// Generates an archive.
fn make(folder: &Path, web: &Web) -> Outcomes<()> {
    let mut store = recorder::open(folder, SegmentOptions::default())?.store;
    let mut credits = Credits::open(store.state())?;
    let mut candidates = Vec::new();
    credits.add_seeds(store.state_mut(), &[web.url(0), MANY.to_owned()])?;
    for number in 0..VISITS + web.pages {
        let location = Location { segment: SegmentId(0), offset: number * 4000, length: 4000 };
        let outcome = match number.checked_sub(VISITS) {
            None => web.visit(number),
            Some(page) => web.outcome(page),
        };
        credits.credit(store.state_mut(), &outcome, location, &mut candidates)?;
        candidates.clear();
        if (number + 1).is_multiple_of(CHECKPOINT) {
            credits.save(store.state_mut())?;
            store.checkpoint()?;
        }
    }
    credits.settle(store.state_mut(), SETTLE_BYTES)?;
    credits.save(store.state_mut())?;
    Ok(prepared::close(&mut store)?)
}

/// Builds the index of an archive and returns its number of documents.
fn make_index(folder: &Path, index: &Path, web: &Web) -> Outcomes<u64> {
    let store = Store::read_only(folder)?;
    let state = store.state();
    let options = IndexOptions { state: state.identity(), memory_bytes: 1 << 30, ..IndexOptions::default() };
    let mut writer = search::IndexWriterOwner::open(index, options)?;
    let mut documents = 0;
    for number in 0..web.pages {
        let draw = mix(number) % 100;
        let is_xml = (15..20).contains(&draw);
        let url = web.url(number);
        let Some(page) = state.find(&url)?.filter(|_| is_xml || !(0..35).contains(&draw)) else { continue };
        let words: Vec<String> = (0..WORDS).map(|place| word(number << 8 | place)).collect();
        let attribute = |name: &str, text: String| Elements {
            name: name.to_owned(),
            wholes: vec![(0, text.clone())],
            text,
            ..Elements::default()
        };
        let elements = vec![
            Elements {
                name: "book".to_owned(),
                text: words.join(" "),
                is_partial: true,
                ..Elements::default()
            },
            attribute("book@lang", ["en", "de", "fr"][number as usize % 3].to_owned()),
            attribute("book@year", (1950 + mix(number ^ 1) % 70).to_string()),
        ];
        writer.add(&IndexedVersion {
            page,
            replaces: false,
            version: None,
            url,
            title: words[..5].join(" "),
            text: words.join(" "),
            headings: String::new(),
            said: archive_web::parse::SaidTexts::default(),
            elements: if is_xml { search::elements::terms(Some(elements), true) } else { String::new() },
            structure: None,
            links: Vec::new(),
        })?;
        documents += 1;
    }
    writer.commit(state.totals().captures)?;
    writer.close()?;
    Ok(documents)
}

/// Draws a word, with a preference for low numbers.
fn word(seed: u64) -> String {
    let uniform = mix(seed) as f64 / u64::MAX as f64;
    format!("w{}", VOCABULARY.powf(uniform) as u64)
}

/// A synthetic web: pages come in runs of one site, and early sites have far more of them.
struct Web {
    pages: u64,
    sites: u64,
    /// Number of URLs that an HTML page links to and that are never fetched.
    found: u64,
}

impl Web {
    /// Returns the site of a page: each site gets one run, the other runs are drawn.
    fn site(&self, page: u64) -> u64 {
        let run = page / RUN;
        if run < self.sites { run } else { early(run, self.sites) }
    }

    fn url(&self, page: u64) -> String {
        format!("http://www.s{}.test/part-{}/page-{page}.html", self.site(page), page % 7)
    }

    fn outcome(&self, page: u64) -> FetchOutcome {
        let draw = mix(page) % 100;
        let (status, media_type, kind) = match draw {
            0..5 => (404, "text/html", DocumentKind::Html),
            5..15 => (200, "application/pdf", DocumentKind::Pdf),
            15..20 => (200, "text/xml", DocumentKind::Xml),
            20..35 => (200, "image/png", DocumentKind::Image),
            _ => (200, "text/html", DocumentKind::Html),
        };
        let targets = if draw < 35 { Vec::new() } else { self.targets(page) };
        let found = if draw < 35 { 0 } else { self.found };
        let found = (0..found).map(|number| format!("{}-{number}", self.url(page)));
        let facts = CrawlerFacts {
            via: page.checked_sub(RUN).map(|via| self.url(via)),
            document: Some(kind),
            title: Some(format!("Page {page} of a site with a name")),
            language: Some(["en", "de", "fr"][page as usize % 3].to_owned()),
            signature: Some(mix(page)),
            links: targets.into_iter().map(|target| self.url(target)).chain(found).map(link).collect(),
            ..CrawlerFacts::default()
        };
        let seconds = (DAYS * 86_400) as u64 * page / self.pages;
        let mut digest = [0; 16];
        digest[..8].copy_from_slice(&mix(page).to_le_bytes());
        FetchOutcome {
            url: self.url(page),
            time: DateTime::<Utc>::from_timestamp(BEGIN, 0).unwrap_or_default()
                + TimeDelta::seconds(seconds as i64),
            kind: CaptureKind::Response,
            status,
            media_type: media_type.to_owned(),
            payload_bytes: 10_000,
            digest,
            original: None,
            validators: None,
            facts,
        }
    }

    /// Returns a capture of [`MANY`].
    fn visit(&self, number: u64) -> FetchOutcome {
        let before = (VISITS - number) as i64 * VISIT_SECONDS;
        let version = mix(number / 10);
        let mut outcome = self.outcome(self.html());
        outcome.url = MANY.to_owned();
        outcome.time = DateTime::from_timestamp(BEGIN - before, 0).unwrap_or_default();
        outcome.digest[..8].copy_from_slice(&version.to_le_bytes());
        outcome.facts.signature = Some(version);
        outcome.facts.via = None;
        outcome
    }

    /// Returns the first HTML page.
    fn html(&self) -> u64 {
        (0..self.pages).find(|page| mix(*page) % 100 >= 35).unwrap_or(0)
    }

    /// Returns the link targets of a page: neighbours, early pages, and the next run.
    fn targets(&self, page: u64) -> Vec<u64> {
        let near = |step: u64| page / RUN * RUN + mix(page ^ step << 40) % RUN;
        let far = |step: u64| early(page ^ step << 50, self.pages);
        let mut targets = vec![near(1), near(2), near(3), far(1), far(2), page + RUN];
        targets.retain(|target| *target != page && *target < self.pages);
        targets.sort_unstable();
        targets.dedup();
        targets
    }
}

fn link(url: String) -> Link {
    Link::new(url, LinkKind::Anchor)
}

/// Draws a number below `end` with a preference for small ones: the third power of a uniform draw.
fn early(seed: u64, end: u64) -> u64 {
    let uniform = mix(seed) as f64 / u64::MAX as f64;
    ((uniform.powi(3) * end as f64) as u64).min(end - 1)
}

/// Returns random-looking bits that are the same in every process (the last steps of SplitMix64).
fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Runs a query and prints its times.
fn ask(folder: &Path, question: &str, times: usize) -> Outcomes<()> {
    // Opening and answer, each in wall-clock and processor time, in milliseconds.
    let mut taken: [Vec<f64>; 4] = Default::default();
    let (mut rows, mut matched) = (0, None);
    for _ in 0..=times {
        let start = now();
        let store = Store::read_only(folder)?;
        let asked = Question::new(&store, Access::unlimited(), question, Utc::now())?;
        let opened = now();
        let answer = asked.answer()?;
        let end = now();
        (rows, matched) = (answer.rows.len(), answer.matched);
        let spans = [opened.0 - start.0, opened.1 - start.1, end.0 - opened.0, end.1 - opened.1];
        taken.iter_mut().zip(spans).for_each(|(taken, span)| taken.push(span));
    }
    let [opening, opening_processor, answer, answer_processor] = taken.map(of_100);
    println!(
        "{}",
        json!({ "question": question, "rows": rows, "matched": matched, "opening": opening,
            "opening_processor": opening_processor, "answer": answer, "answer_processor": answer_processor })
    );
    Ok(())
}

/// Returns the median and the 99th percentile, without the first, unmeasured run.
fn of_100(mut taken: Vec<f64>) -> [f64; 2] {
    taken.remove(0);
    taken.sort_unstable_by(f64::total_cmp);
    [50, 99].map(|share| taken.get(taken.len() * share / 100).copied().unwrap_or_default())
}

/// Returns wall-clock and processor time in milliseconds.
fn now() -> (f64, f64) {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    let clock = START.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e3;
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let scheduled = tasks.filter_map(|task| {
        // The first number is the processor time in nanoseconds.
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    (clock, scheduled.sum::<f64>() / 1e6)
}
