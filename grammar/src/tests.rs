//! The language as users see it: canonical text, trees, messages, recovery, limits.

use std::fmt::Write;

use crate::{Condition, DEPTH_MAX, Query, TEXT_BYTES_MAX, parse, parse_lenient};

mod round_trip;

/// Texts with their canonical text; empty if the text is already canonical.
const CANONICAL: &[(&str, &str)] = &[
    ("site importance > 10", "site importance > 10"),
    ("SITES WHERE Importance>1e1", "site importance > 10"),
    ("page importance > 2 and type = xml order by importance desc limit 20", ""),
    ("page text contains \"open access\" order by score limit 10", ""),
    ("page host = \"example.org\" and not (status >= 400 or url ~ \"*/archive/*\")", ""),
    ("importance > 2", "page importance > 2"),
    ("page", "page"),
    ("sites", "site"),
    ("site = example.org", "page site = \"example.org\""),
    ("site site = example.org", "site site = \"example.org\""),
    ("pages > 10", "page pages > 10"),
    ("site pages > 10k", "site pages > 10000"),
    ("pages in (1, 2.5M)", "page pages in (1, 2500000)"),
    ("page not status = 404", "page not status = 404"),
    ("page not in (1)", "page page not in (1)"),
    ("first  SEEN > 2026-01-31", "page first seen > 2026-01-31"),
    ("last_seen <= 30 days ago", "page last seen <= 30 days ago"),
    ("changed > 1d ago or changed < 2 min ago", "page changed > 1 day ago or changed < 2 minutes ago"),
    ("changed between 2026-01 and 2026-01-31T10:00Z", "page changed between 2026-01 and 2026-01-31T10:00Z"),
    ("changed = 2026-01-31 10:00:09+01:30", "page changed = 2026-01-31T10:00:09+01:30"),
    ("select url, title from pages where status in (404,410)", "page status in (404, 410) select url, title"),
    ("select url,last seen limit 3", "page select url, last seen limit 3"),
    ("limit 5 offset 2 order by host, importance asc", "page order by host, importance asc limit 5 offset 2"),
    ("a=1 and (b=2 and c=3)", "page a = 1 and b = 2 and c = 3"),
    ("a=1 or b=2 and c=3", "page a = 1 or b = 2 and c = 3"),
    ("(a=1 or b=2) and c=3", "page (a = 1 or b = 2) and c = 3"),
    ("not not a=1", "page a = 1"),
    ("not (not (a=1))", "page a = 1"),
    ("not (a=1 and b=2)", "page not (a = 1 and b = 2)"),
    ("title is empty or title is not null", "page title is empty or title is not empty"),
    ("type is xml and type is not feed", "page type = xml and type != feed"),
    ("type <> xml and type == feed", "page type != xml and type = feed"),
    ("url !~ '*.pdf'", "page url !~ \"*.pdf\""),
    ("url ~ \"a\\*b\"", "page url ~ \"a\\\\*b\""),
    ("title contains bibliothèque", "page title contains \"bibliothèque\""),
    (
        "text contains all (a, 'b c') and text not contains any (d, e)",
        "page text contains all (\"a\", \"b c\") and text not contains any (\"d\", \"e\")",
    ),
    ("text contains any (a)", "page text contains \"a\""),
    ("title = 'it is \"quoted\"\\n'", "page title = \"it is \\\"quoted\\\"\\n\""),
    ("a = -0.5 -- a comment\n and b = 2 -- another", "page a = -0.5 and b = 2"),
    ("order by importance", "page order by importance"),
    ("count pages where status = 404", "page status = 404 select count"),
    ("count(*) = 1", "page count() = 1"),
    ("COUNT hosts", "host select count"),
    ("count pages group by host", "page group by host"),
    ("sum(size) captures status = 200", "capture status = 200 select sum(size)"),
    (
        "min(size), max(size) as most pages group by host order by most",
        "page select host, min(size), max(size) as most group by host order by most",
    ),
    ("length(title) > 3", "page length(title) > 3"),
    (
        "select host, count, sum(size) as bytes from captures where size > 1 MB group by host having count > 3",
        "capture size > 1000000 select host, count, sum(size) as bytes group by host having count > 3",
    ),
    ("version time since 2026-01 until today sample 10 seed 3", ""),
    ("hosts as of 2026-01-31", "host as of 2026-01-31"),
    ("page as of 2 days ago where type = xml", "page type = xml as of 2 days ago"),
    ("link target.status >= 400 select source, target", ""),
    ("size between 1KiB and 2.5 MiB", "page size between 1024 and 2621440"),
    ("last seen - first seen > 30 days", "page last seen - first seen > 30 days"),
    ("captures * 2 - 1 > (versions + 1) * 3 / 4", "page captures * 2 - 1 > (versions + 1) * 3 / 4"),
    ("captures - (versions - 1) > 1", "page captures - (versions - 1) > 1"),
    ("captures > versions", "page captures > versions"),
    ("year(Changed) = 2026 and lower(title) = 'a'", "page year(changed) = 2026 and lower(title) = a"),
    ("header('X-Y') is empty", "page header(\"X-Y\") is empty"),
    (
        r#"url matches "\d+\.pdf$" and url not matches '\'"'"#,
        r#"page url matches "\d+\.pdf$" and url not matches "'\"""#,
    ),
    (
        "url begins with a and url not ends with '.pdf'",
        "page url starts with \"a\" and url not ends with \".pdf\"",
    ),
    ("site.importance > 2 or site.first seen < 2026", "page site.importance > 2 or site.first_seen < 2026"),
    (
        "links to 'http://a.test/' and not linked from (site importance > 2)",
        "page links to \"http://a.test/\" and not linked from (site importance > 2)",
    ),
    (
        "redirects to (count pages) or duplicates or same content as x",
        "page redirects to (page select count) or duplicates or same content as \"x\"",
    ),
    (
        "title = group or title contains sample or title = count",
        "page title = group or title contains \"sample\" or title = count",
    ),
    (
        "group = 1 and sample > 2 and count = 3 and as = 4",
        "page group = 1 and sample > 2 and count = 3 and as = 4",
    ),
    ("page having = 1 having count > 2", ""),
    (
        "links > 3 and link = 2 and host = x and versions * 2 > 3",
        "page links > 3 and link = 2 and host = x and versions * 2 > 3",
    ),
    ("orders > 3 and android = 1", "page orders > 3 and android = 1"),
    (
        "//book[ author contains 'Eco' ]/title contains rose",
        "page //book[author contains \"Eco\"]/title contains \"rose\"",
    ),
    (
        "/Feed/entry[@xml:lang = 'fr' and not (.//x-y or ./from is empty)][price >= 10]//* limit 3",
        "page /Feed/entry[@xml:lang = fr and not (.//x-y or ./from is empty)][price >= 10]//* limit 3",
    ),
    (
        "not //a is not empty and (//b[. between 1 and 2] is empty)",
        "page not //a and //b[. between 1 and 2] is empty",
    ),
    (
        "select //title, length(//a/@href) as n from pages //a",
        "page //a select //title, length(//a/@href) as n",
    ),
    ("captures / 2 > 1 order by //dc:* desc", "page captures / 2 > 1 order by //dc:* desc"),
    ("e +  and-=   a", "page e + and- = a"),
    ("in.a =b", "page in.a = b"),
];

#[test]
fn prints_canonical_text() {
    for &(text, canonical) in CANONICAL {
        let printed = parse(text).unwrap_or_else(|e| panic!("{text}\n{e}")).to_string();
        assert_eq!(printed, if canonical.is_empty() { text } else { canonical });
        assert_eq!(parse(&printed).as_ref().map(ToString::to_string), Ok(printed));
    }
}

#[test]
fn gives_trees_with_places() {
    let mut report = String::new();
    for text in [
        "page importance > 2k and type = xml order by importance desc, url limit 20",
        "site not (a in (1, b) or c not between 30 days ago and 2026-01-31T10:00Z) select site",
        "page text contains any (\"open access\", open*) offset 5",
    ] {
        let quoted = text.replace("open*", "'open*'");
        writeln!(report, "{quoted}\n{:#?}\n", parse(&quoted).unwrap()).unwrap();
    }
    insta::assert_snapshot!(report);
}

/// Typical mistakes. The snapshot contains the messages.
const MISTAKES: &[&str] = &[
    "",
    "  -- only a comment",
    "importance 2",
    "importance >",
    "page importance > 2 ordr by importance",
    "page importance > 2\n  and type = xml\n  an host = x",
    "importance > 10kk",
    "importance > 2 importance < 3",
    "importance > 3 weken",
    "page group host",
    "page select count group by",
    "page sample many",
    "page as of",
    "links to (page status = 404",
    "links to 3",
    "title starts \"a\"",
    "title matches a",
    "length(title > 3",
    "(captures + versions) > 3",
    "captures+1 > 3",
    "changed since",
    "capture host = x order by",
    "sites group by site having",
    "page lst seen > 3 days ago",
    "pge importance > 3",
    "order importance",
    "order by",
    "order by importance descending,",
    "limit x",
    "limit 2.5",
    "limit -1",
    "limit 1 limit 2",
    "select a,",
    "select a from",
    "(a > 2",
    "a > 2)",
    "()",
    "a = ()",
    "title contains “x”",
    "title contains",
    "title contains 3",
    "url ~ 3",
    "url like \"*x*\"",
    "status in 3",
    "status in ()",
    "status in (1 2)",
    "a between 1 or 2",
    "importance > 2 && x > 3",
    "not",
    "x not 3",
    "x is",
    "a = 2026-13-40",
    "a = 2026-01-31T25:00",
    "a = 2026-01-31T10:00+99:00",
    "a = 2026-1-3",
    "a = 1e999",
    "a = 'x\\q'",
    "a = \"x",
    "a > 2;",
    "page where",
    "a = order",
    "\ttitle\t=\t)",
    "host = http://example.org/",
];

#[test]
fn explains_mistakes() {
    let mut report = String::new();
    for text in MISTAKES {
        let mistake = parse(text).expect_err(text);
        assert!(text.get(mistake.span()).is_some());
        writeln!(report, "{text}\n{mistake}\n").unwrap();
    }
    insta::assert_snapshot!(report);
}

#[test]
fn shows_a_window_of_long_lines() {
    let text = format!("{} = 1 and b ! 2 and {} = 3", "a".repeat(300), "c".repeat(300));
    let mistake = parse(&text).unwrap_err();
    let shown = mistake.to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(mistake.column(), 312);
    assert!(lines[1].chars().count() < 110, "{shown}");
    assert_eq!(lines[1].chars().nth(lines[2].chars().count() - 1), Some('!'), "{shown}");
}

#[test]
fn understands_the_rest() {
    let mut report = String::new();
    for text in MISTAKES.iter().chain(&[
        "importance > 2 and type = and host = x limit 3",
        "importance > 2 and (type = or host = x) order by , url limit x",
        "importance > and (type =)",
        "importance > 2 junk and host = x",
        "title = \"open acc",
        "(importance > 2 and (type = xml",
        "importance > 2 and",
        "((()) and a = 1",
    ]) {
        let (query, mistakes) = parse_lenient(text);
        assert_eq!(
            mistakes.is_empty(),
            parse(text).is_ok() || query == Query::default() && mistakes.is_empty()
        );
        writeln!(report, "{text}\n => {query}   ({} mistakes)\n", mistakes.len()).unwrap();
    }
    insta::assert_snapshot!(report);
}

#[test]
fn limits_nesting_and_length() {
    let nested = |depth: usize| format!("{}a = 1{}", "not (".repeat(depth), ")".repeat(depth));
    let expected = if DEPTH_MAX.is_multiple_of(2) { "page a = 1" } else { "page not a = 1" };
    assert_eq!(parse(&nested(DEPTH_MAX)).unwrap().to_string(), expected);
    let mistake = parse(&nested(DEPTH_MAX + 1)).unwrap_err();
    assert_eq!(mistake.message(), "parentheses are nested more than 64 deep");
    assert_eq!(mistake.column(), 5 * (DEPTH_MAX + 1));

    let deep = |depth: usize| format!("{}a = 1{}", "not (b = 1 or ".repeat(depth), ")".repeat(depth));
    assert!(parse(&deep(DEPTH_MAX)).is_ok());
    assert!(parse(&"(".repeat(TEXT_BYTES_MAX)).is_err());
    assert_eq!(parse(&format!("{}a = 1", "not ".repeat(10_001))).unwrap().to_string(), "page not a = 1");

    let long = |bytes: usize| format!("a = \"{}\"", "x".repeat(bytes - 6));
    assert!(parse(&long(TEXT_BYTES_MAX)).is_ok());
    assert!(parse(&long(TEXT_BYTES_MAX + 1)).unwrap_err().message().contains("at most 65536 bytes"));
    assert_eq!(parse_lenient(&long(TEXT_BYTES_MAX + 1)).1.len(), 1);
}

#[test]
fn keeps_chains_flat() {
    let text = vec!["a = 1"; 5_000].join(" or ");
    match parse(&text).unwrap().condition {
        Some(Condition::Any(parts)) => assert_eq!(parts.len(), 5_000),
        other => panic!("{other:?}"),
    }
}
