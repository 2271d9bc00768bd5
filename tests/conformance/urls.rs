//! URLs: the WHATWG's test cases through the URL parser and as links of a page, and those of the crawler Nutch.

use archive_storage::address::canonical;
use serde_json::Value;
use url::Url;

use super::{Tally, data, read, text};

/// Input, base, and expected result; `None` for a failure.
type Case = (String, Option<String>, Option<String>);

/// Returns the cases that have a base.
fn cases() -> Option<Vec<Case>> {
    let json: Vec<Value> = serde_json::from_slice(&data("url/wpt-urltestdata.json")?).unwrap();
    let string = |value: &Value| value.as_str().map(str::to_owned);
    let case = |case: &Value| Some((string(&case["input"])?, string(&case["base"]), string(&case["href"])));
    Some(json.iter().filter(|value| value.is_object()).filter_map(case).collect())
}

#[test]
fn whatwg_cases_through_the_parser() {
    let Some(cases) = cases() else { return };
    let mut tally = Tally::default();
    for (input, base, expected) in cases {
        let found = match &base {
            Some(base) => Url::parse(base).and_then(|base| base.join(&input)),
            None => Url::parse(&input),
        };
        let found = found.ok().map(String::from);
        if found == expected {
            tally.held();
        } else {
            tally.missed(
                &format!("{input:?} on {base:?} gives {found:?}, not {expected:?}"),
                parser_reason(&input, base.as_deref()),
            );
        }
    }
    tally.finish("WHATWG URL cases, parser", 823);
}

/// Returns the known defect of the crate `url` that affects a case.
fn parser_reason(input: &str, base: Option<&str>) -> Option<&'static str> {
    let is_special = |url: &str| {
        ["http:", "https:", "ftp:", "ws:", "wss:"]
            .iter()
            .any(|scheme| url.trim().to_ascii_lowercase().starts_with(scheme))
    };
    let is_file = |url: &str| url.trim().to_ascii_lowercase().starts_with("file:");
    match base {
        _ if input.to_ascii_lowercase().contains("xn--") => {
            Some("crate url: names that begin with xn-- must decode")
        }
        _ if input.trim_start().starts_with("///") => {
            Some("crate url: three slashes (the link resolver corrects it)")
        }
        _ if input.starts_with("wss:") && input.contains('^') => {
            Some("crate url: ^ in a path is not escaped")
        }
        _ if is_file(input) || base.is_some_and(is_file) => Some("crate url: file URLs"),
        _ if !is_special(input) && base.is_none_or(|base| !is_special(base)) => {
            Some("crate url: schemes other than those of the web")
        }
        _ => None,
    }
}

#[test]
fn whatwg_cases_as_links_of_a_page() {
    let Some(cases) = cases() else { return };
    let mut tally = Tally::default();
    for (input, base, expected) in cases {
        // A reference that begins with the scheme of its base is relative, so the page gets the other scheme.
        let other =
            if input.trim_start().to_ascii_lowercase().starts_with("https:") { "http" } else { "https" };
        let base = base.unwrap_or_else(|| format!("{other}://no.base.example/"));
        if !base.starts_with("http")
            || (expected.is_none() && Url::parse(&base).and_then(|base| base.join(&input)).is_ok())
        {
            continue;
        }
        // The HTML tokenizer would see a carriage return as a line feed.
        let escaped =
            input.replace('&', "&amp;").replace('"', "&quot;").replace('\r', "&#13;").replace('\0', "&#0;");
        if input.contains('\0') {
            continue;
        }
        let parsed = read(&base, "text/html; charset=utf-8", format!("<a href=\"{escaped}\">").as_bytes());
        let found: Vec<&str> = parsed.links.iter().map(|link| link.url.as_str()).collect();
        let expected = expected.as_deref().and_then(|expected| as_link(expected, &input));
        if found == expected.iter().collect::<Vec<_>>() {
            tally.held();
        } else {
            let case = format!("{input:?} on {base:?} gives {found:?}, not {expected:?}");
            tally.missed(&case, parser_reason(&input, Some(&base)));
        }
    }
    tally.finish("WHATWG URL cases, links", 721);
}

/// Returns the link that a reference to this URL yields: canonical, HTTP or HTTPS, and not to the page itself.
fn as_link(expected: &str, input: &str) -> Option<String> {
    let Ok(url) = Url::parse(expected) else { return Some(expected.to_owned()) };
    let trimmed = input.trim_matches(|c: char| c <= ' ');
    let is_web = matches!(url.scheme(), "http" | "https");
    (is_web && !trimmed.is_empty() && !trimmed.starts_with('#')).then(|| canonical(&url))
}

#[test]
fn canonical_urls_of_all_cases_are_stable() {
    let Some(cases) = cases() else { return };
    let mut count = 0;
    for expected in cases.into_iter().filter_map(|(_, _, expected)| expected) {
        let Ok(url) = Url::parse(&expected) else { continue };
        let once = canonical(&url);
        if matches!(url.scheme(), "http" | "https" | "ftp") {
            assert_eq!(canonical(&Url::parse(&once).unwrap()), once);
            count += 1;
        }
    }
    println!("canonical URLs: {count} of {count} are stable");
    assert!(count >= 244);
}

/// Splits lines of comma-separated values with CSV quoting.
fn rows(csv: &str) -> Vec<Vec<String>> {
    csv.split('\n')
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| {
            let mut fields = vec![String::new()];
            let mut in_quotes = false;
            let mut characters = line.trim_end_matches('\r').chars().peekable();
            while let Some(character) = characters.next() {
                let field = fields.last_mut().unwrap();
                match character {
                    '"' if in_quotes && characters.next_if_eq(&'"').is_some() => field.push('"'),
                    '"' => in_quotes = !in_quotes,
                    ',' if !in_quotes => fields.push(String::new()),
                    _ => field.push(character),
                }
            }
            fields.iter().map(|field| field.trim_matches(' ').to_owned()).collect()
        })
        .collect()
}

#[test]
fn nutch_normal_forms() {
    let Some(csv) = text("url/weirdToNormalizedUrls.csv") else { return };
    let mut tally = Tally::default();
    for row in rows(&csv) {
        let [input, expected] = &row[..] else { panic!("{row:?}") };
        let found = Url::parse(input).map(|url| canonical(&url)).unwrap_or_default();
        if found == *expected {
            tally.held();
        } else {
            tally.missed(
                &format!("{input:?} gives {found:?}, not {expected:?}"),
                nutch_reason(input, expected),
            );
        }
    }
    tally.finish("Nutch normal forms", 79);
}

/// Returns the reason for a miss: a canonical URL must still fetch the same page, so normalizations that only suit a
/// key are left out.
fn nutch_reason(input: &str, expected: &str) -> Option<&'static str> {
    let path = input.split("://").nth(1).unwrap_or_default();
    if expected.starts_with("file:") || expected.starts_with("ftp:/") || expected == "http:/" {
        return Some("no URL that a crawler fetches");
    }
    if !input.contains("://") {
        return Some("a reference without a scheme is a path");
    }
    if expected.contains('?')
        && path.contains(['&', '='])
        && !path.contains(['%', '[', '<', '>', '`', '|', '^', '"', '{'])
    {
        return Some(
            "the order and form of a query are the server's: it is not sorted or trimmed (the SURT is)",
        );
    }
    if path.contains("//") {
        return Some("slashes are not merged: some servers distinguish them (the SURT merges them)");
    }
    if path.contains('%') {
        return Some("a bare % stays, as browsers send it");
    }
    path.contains(['[', ']', '|', '^', '`', '"', '{'])
        .then_some("escaped as WHATWG says, which is what browsers send")
}

#[test]
fn nutch_references() {
    let Some(csv) = text("url/url-resolve.csv") else { return };
    let mut tally = Tally::default();
    for row in rows(&csv) {
        let [reference, base, expected] = &row[..] else { panic!("{row:?}") };
        let found = match base.as_str() {
            "" => Url::parse(reference),
            base => Url::parse(base).and_then(|base| base.join(reference)),
        };
        let found = found.map(String::from).unwrap_or_default();
        if found == *expected {
            tally.held();
        } else {
            tally.missed(&format!("{reference:?} on {base:?} gives {found:?}, not {expected:?}"), None);
        }
    }
    tally.finish("Nutch references", 22);
}

#[test]
fn nutch_invalid_urls() {
    let Some(csv) = text("url/invalidUrls.csv") else { return };
    let mut tally = Tally::default();
    for row in rows(&csv) {
        if Url::parse(&row[0]).is_err() {
            tally.held();
        } else {
            tally.missed(&row[0], None);
        }
    }
    tally.finish("Nutch invalid URLs", 2);
}
