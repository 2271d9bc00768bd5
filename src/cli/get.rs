//! `archive get`: prints the archived content of a URL.

use archive_base::access::Access;
use archive_books::ledger::CrawlerFacts;
use archive_storage::address::{method_of, without_request};
use archive_storage::warc::split;
use archive_storage::{CaptureKind, Store, UrlId};
use archive_web::parse::decode_content;
use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, Utc};

use super::options::ReadArgs;
use super::{During, Result, output, usage};

/// Maximum size of a decoded payload in bytes.
const DECODED_BYTES_MAX: usize = 1 << 30;

/// Print a version of a URL: the newest, or the one nearest to a time.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive get https://www.example.org/ > page.html
  archive get https://www.example.org/ --at 2026-01-31
  archive get https://www.example.org/ --headers")]
pub(crate) struct Args {
    /// URL of the page
    url: String,
    #[command(flatten)]
    archive: ReadArgs,
    /// Print the version nearest to this time (2026-01-31, 2026-01-31T10:00, 20260131100000, or with a zone)
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Print the answer to a request with this method, such as POST; that of the newest, whatever it sent
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// Print the HTTP head as received instead of the content
    #[arg(long, conflicts_with = "raw")]
    headers: bool,
    /// Print head and body exactly as received, still encoded
    #[arg(long)]
    raw: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let time = args.at.as_deref().map(read_time).transpose()?;
    let (store, access) = args.archive.open()?;
    let id = match args.method.to_ascii_uppercase().as_str() {
        "GET" => super::find_shown(&store, &access, &args.url)?,
        method => find_request(&store, &access, &args.url, method)?,
    };
    let time = time.unwrap_or(DateTime::<Utc>::MAX_UTC).timestamp_micros();
    let mut nearest = None;
    for capture in access.history(store.state(), id)? {
        let (_, capture) = capture?;
        // A part of a body is printed only where there is nothing else.
        let distance = (capture.status == 206, capture.time.abs_diff(time));
        let is_nearer = nearest.as_ref().is_none_or(|(best, _)| distance < *best);
        if capture.kind != CaptureKind::Failed && is_nearer {
            nearest = Some((distance, capture));
        }
    }
    let Some((_, capture)) = nearest else {
        if let Some((_, newest)) = access.history(store.state(), id)?.next().transpose()?
            && let (_, Some(erased)) = CrawlerFacts::failure(&store, &newest)?
        {
            fail!("{} was {erased}", args.url)
        }
        fail!("{} was never captured: every fetch failed", args.url)
    };
    let original =
        store.original(&capture)?.within("the capture that this one refers to is not in the archive")?;
    let record = store.record(original.location)?;
    if args.raw {
        output::content(&record.content)?;
    } else if args.headers {
        output::content(&split(&record.content).0)?;
    } else {
        let head = record.http_head();
        if let Some(range) = head.get("Content-Range").filter(|_| head.status() == Some(206)) {
            note!("only a part was captured: {range}");
        }
        let payload = record.payload();
        let plain = decode_content(&payload, &head.list("Content-Encoding"), DECODED_BYTES_MAX);
        output::content(&plain.body)?;
    }
    Ok(())
}

/// The page of the newest request with a method for a URL.
fn find_request(store: &Store, access: &Access, url: &str, method: &str) -> Result<UrlId> {
    let (state, url) = (store.state(), super::url_of(url)?);
    let mut found = Vec::new();
    state.scan_urls(0..state.url_count(), |id, name| {
        if name.starts_with(&url) && without_request(name) == url && method_of(name) == Some(method) {
            found.push(id);
        }
        Ok(())
    })?;
    let mut newest = None;
    for id in found {
        if let Some((_, capture)) = access.history(state, id)?.next().transpose()? {
            newest = newest.max(Some((capture.time, id)));
        }
    }
    let (_, id) = newest.within(format_args!("no answer to {method} {url} is in the archive"))?;
    Ok(id)
}

/// Parses a time; without a time zone it is local time.
pub(crate) fn read_time(text: &str) -> Result<DateTime<Utc>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.with_timezone(&Utc));
    }
    // The format of CDX lines and Memento URLs is in UTC.
    if let Ok(time) = NaiveDateTime::parse_from_str(text, "%Y%m%d%H%M%S") {
        return Ok(time.and_utc());
    }
    let forms = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"];
    let local = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    // A month or a year is its first day.
    let day = |text: &str| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
    let endings = if text.len() < 4 { &[][..] } else { &["", "-01", "-01-01"] };
    let first = || endings.iter().find_map(|end| day(&format!("{text}{end}")));
    let local = local.or_else(first).and_then(|time| time.and_local_timezone(Local).earliest());
    local.map(|time| time.with_timezone(&Utc)).ok_or_else(|| {
        usage(format!(
            "'{text}' is not a time; write it like 2026, 2026-01, 2026-01-31, 2026-01-31T10:00 or 20260131100000"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::read_time;

    #[test]
    fn times_are_read_in_the_usual_forms() {
        for text in [
            "2026",
            "2026-01",
            "2026-01-31",
            "2026-01-31T10:00",
            "2026-01-31 10:00:05",
            "20260131100000",
            "2026-01-31T10:00:00Z",
        ] {
            assert!(read_time(text).is_ok(), "{text}");
        }
        assert_eq!(read_time("20260131100000").unwrap(), read_time("2026-01-31T12:00:00+02:00").unwrap());
        assert_eq!(read_time("2026").unwrap(), read_time("2026-01-01T00:00").unwrap());
        assert_eq!(read_time("2026-06").unwrap(), read_time("2026-06-01").unwrap());
        for text in ["yesterday", "", "20", "2026-13", "2026-1-1-01"] {
            assert!(read_time(text).is_err(), "{text}");
        }
    }
}
