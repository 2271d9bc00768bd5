//! Differences between two versions of a page.

use archive_books::change::{LineMark, MarkedLine, VersionComparison, compare, lines, versions_meant};
use archive_storage::Capture;
use chrono::{DateTime, SecondsFormat, Utc};
use maud::{Markup, html};
use serde::Serialize;

use super::{ArchiveRequest, PageProblem, Reply, Speech, captures, utc};

/// Maximum number of lines shown, and of bytes in them.
const LINES_MAX: usize = 1000;
const BYTES_MAX: usize = 512 << 10;

#[derive(Serialize)]
struct ComparedPage {
    url: String,
    #[serde(serialize_with = "utc")]
    from: Option<DateTime<Utc>>,
    #[serde(serialize_with = "utc")]
    to: Option<DateTime<Utc>>,
    #[serde(flatten)]
    comparison: VersionComparison,
}

pub(super) fn page(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let (store, access) = (asked.opened.store, &asked.opened.access);
    let t = asked.speech;
    let id = captures::find(asked)?;
    let url = store.state().url(id)?;
    let times = (time(t, asked.parameter("from"))?, time(t, asked.parameter("to"))?);
    let (old, new) = versions_meant(store, access, id, times)?
        .ok_or_else(|| PageProblem::Missing(t.fill("The archive has no version of {}.", &[&url])))?;
    // In chronological order, whichever was chosen first.
    let (old, new) = if old.time > new.time { (new, old) } else { (old, new) };
    let comparison = compare(store, access, &old, &new)?;
    let data = ComparedPage { url, from: time_of(&old), to: time_of(&new), comparison };
    Ok(asked.reply(t.say("Differences"), &data, || shown(asked, &data)))
}

/// Parses the time that identifies a capture, in microseconds since 1970; `None` if the text is empty.
pub(super) fn time(t: Speech, text: &str) -> Result<Option<i64>, PageProblem> {
    let read = |text: &str| DateTime::parse_from_rfc3339(text).map(|time| time.timestamp_micros());
    let wrong =
        |_| PageProblem::Wrong(t.fill("“{}” is not a time; write it like 2026-01-31T10:00:00Z.", &[&text]));
    Some(text).filter(|text| !text.is_empty()).map(read).transpose().map_err(wrong)
}

/// Time of a capture.
pub(super) fn time_of(capture: &Capture) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(capture.time)
}

/// The time that identifies a capture in an address.
pub(super) fn name_of(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

fn shown(asked: &ArchiveRequest<'_>, data: &ComparedPage) -> Markup {
    let t = asked.speech;
    let all = lines(&data.comparison, true, *t);
    let (all, mut bytes) = (all.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>(), 0);
    let fits = |line: &&MarkedLine| {
        bytes += line.iter().map(|(_, text)| text.len()).sum::<usize>();
        bytes <= BYTES_MAX
    };
    let some: Vec<&MarkedLine> = all.iter().take(LINES_MAX).take_while(fits).collect();
    html! {
        h1 { (t.say("Differences")) }
        p .url { a href=(t.page_of(&data.url)) { (data.url) } }
        p {
            (t.markup("From {} to {}", &[data.from, data.to].map(|time| html! {
                a href=(asked.replayed(&data.url, time)) { (t.moment(time)) }
            })))
            @if data.from == data.to { ". " (t.say("This is one version, compared with itself.")) }
        }
        p .small { (t.markup("Marked as {} and {}; {} is what changed, {} what was moved.", &[
            html! { del { (t.say("gone")) } }, html! { ins { (t.say("new")) } }, html! { code { "~" } }, html! { code { ">" } },
        ])) }
        div .change {
            @for line in &some {
                p { @for (mark, text) in *line { @match mark {
                    LineMark::Gone => del { (text) },
                    LineMark::Fresh => ins { (text) },
                    LineMark::Plain | LineMark::Moved => (text),
                } } }
            }
        }
        @if some.len() < all.len() {
            p .mistake { (t.fill("These are the first {} of {} lines; JSON has all of them.", &[&t.count(some.len() as u64), &t.count(all.len() as u64)])) }
        }
    }
}
