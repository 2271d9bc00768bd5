//! Tests of exporting sheets and reading ratings back.

use std::borrow::Cow;

use archive_base::decisions::DecisionVerdict;
use archive_storage::{HostId, SiteId, UrlId};
use archive_web::parse::DocumentKind;
use chrono::{DateTime, TimeZone, Utc};

use super::csv::{guarded, unguarded};
use super::{RATINGS_BYTES_MAX, Rating, Score, Sheet, read_ratings};
use crate::query::{Context, PageRow, PageText, Plan, Rows, RowsError, SiteRow};

/// Pages that would be harmful if they were not escaped, on sites of different sizes.
struct HarmfulWeb;

const TITLES: [&str; 7] = [
    "Home",
    "=HYPERLINK(\"http://evil.example\")",
    "<script>alert(1)</script>",
    "Ü, \"quoted\"\nand a new line",
    "  ",
    "Sixth",
    "Picture",
];

fn noon(day: u32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 1, day, 12, 0, 0).unwrap()
}

impl HarmfulWeb {
    fn url_of(page: u32) -> String {
        match page {
            3 => "javascript:alert(1)".to_owned(),
            page => format!("http://one.example/{page}?a=1&b=2"),
        }
    }
}

impl Rows for HarmfulWeb {
    fn pages(&self) -> Box<dyn Iterator<Item = Result<PageRow, RowsError>> + '_> {
        let page = |id: u32| PageRow {
            id: UrlId(id),
            host: HostId(0),
            site: SiteId(0),
            kind: Some(if id == 6 { DocumentKind::Image } else { DocumentKind::Html }),
            status: Some(200),
            content_status: Some(200),
            importance: if id == 6 { 99.0 } else { f64::from(10 - id) },
            captures: 1,
            attempts: 1,
            versions: 1,
            first_seen: Some(noon(1)),
            last_seen: Some(noon(2)),
            last_answer: None,
            last_attempt: None,
            failing_since: None,
            changed: Some(noon(1)),
            depth: Some(0),
        };
        Box::new((0..7).rev().map(move |id| Ok(page(id))))
    }

    fn page(&self, _: UrlId) -> Result<Option<PageRow>, RowsError> {
        Ok(None)
    }

    fn text(&self, page: &PageRow, text: PageText) -> Result<Option<Cow<'_, str>>, RowsError> {
        Ok(match text {
            PageText::Title => Some(TITLES[page.id.index()].into()),
            _ => Some(Self::url_of(page.id.0).into()),
        })
    }

    fn sites(&self) -> Box<dyn Iterator<Item = Result<SiteRow, RowsError>> + '_> {
        let site = |id: u32, name: &str, importance: f64| SiteRow {
            id: SiteId(id),
            name: name.to_owned(),
            importance,
            pages: 12_345,
            captures: 20_000,
            html: 12_000,
            xml: 45,
            first_seen: Some(noon(1)),
            last_seen: (id == 0).then(|| noon(2)),
        };
        Box::new([Ok(site(0, "one.example", 12.25)), Ok(site(1, "@two.example", 0.5))].into_iter())
    }
}

fn sheet() -> Sheet {
    let plan = Plan::parse("site", &Context::of(&HarmfulWeb)).unwrap();
    Sheet::collect(&plan, &HarmfulWeb, "web.archive".to_owned(), "site".to_owned(), noon(3)).unwrap()
}

#[test]
fn ratings_beyond_their_limit_are_not_read() {
    let refusal = |bytes| read_ratings(&vec![b'x'; bytes]).unwrap_err().to_string();
    assert!(refusal(RATINGS_BYTES_MAX + 1).contains("larger than 67108864 bytes"));
    assert!(!refusal(RATINGS_BYTES_MAX).contains("larger"));
}

#[test]
fn picks_the_most_important_documents() {
    let sheet = sheet();
    let samples = &sheet.entries[0].samples;
    let expected: Vec<_> = (0..5).map(HarmfulWeb::url_of).collect();
    assert!(samples.iter().map(|sample| &sample.url).eq(&expected), "{samples:?}");
    assert_eq!(samples[4].title, None);
    assert!(sheet.entries[1].samples.is_empty());
}

#[test]
fn writes_csv_for_spreadsheets() {
    let mut out = Vec::new();
    sheet().write_csv(&mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap().replace("\r\n", "␍\n"));
}

#[test]
fn writes_a_page_that_needs_nothing_else() {
    let page = sheet().html();
    assert!(!page.contains("<script>alert"), "titles are escaped");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!page.contains("href=\"javascript:"), "only web addresses become links");
    assert!(page.contains("12\u{202f}345"));
    for elsewhere in ["src=", "<link", "@import", "url("] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    let table = &page[page.find("<tbody>").unwrap()..page.find("</tbody>").unwrap()];
    insta::assert_snapshot!(table.replace("><", ">\n<"));
}

#[test]
fn reads_what_it_wrote() {
    let mut out = Vec::new();
    sheet().write_csv(&mut out).unwrap();
    assert_eq!(read_ratings(&out), Ok(Vec::new()), "nothing is rated yet");
    let text = String::from_utf8(out).unwrap();
    let rated = text.replace("'@two.example,,,,", "'@two.example,4,'=good,keep,");
    let ratings = read_ratings(rated.as_bytes()).unwrap();
    let [rating] = ratings.as_slice() else { panic!("{ratings:?}") };
    assert_eq!((rating.site.as_str(), rating.comment.as_str()), ("@two.example", "=good"));
    assert_eq!((rating.score, rating.verdict), (Score::new(4), Some(DecisionVerdict::Keep)));
    assert_eq!(rating.exported, Some(noon(3)));
}

#[test]
fn reads_what_spreadsheets_write() {
    let expected = [
        Rating {
            line: 2,
            site: "a.example".to_owned(),
            score: Score::new(3),
            comment: "schön; gut".to_owned(),
            ..Rating::default()
        },
        Rating {
            line: 3,
            site: "b.example".to_owned(),
            comment: "two\nlines".to_owned(),
            ..Rating::default()
        },
        Rating { line: 5, site: "c.example".to_owned(), score: Score::new(1), ..Rating::default() },
    ];
    let comma = "\u{feff}site,rating,comment\r\nA.example,3,schön; gut\r\nb.example,,\"two\nlines\"\r\nc.example,1.0,\r\n";
    assert_eq!(read_ratings(comma.as_bytes()), Ok(expected.to_vec()));
    let semicolon =
        "Comment;Rating;Site\n\"schön; gut\";3,00;a.example\n\"two\nlines\";;b.example\n;1;c.example\n;;\n";
    assert_eq!(read_ratings(semicolon.as_bytes()), Ok(expected.to_vec()));
    let (windows, ..) = encoding_rs::WINDOWS_1252.encode(semicolon);
    assert_eq!(read_ratings(&windows), Ok(expected.to_vec()));
    let tab = comma.replace(',', "\t");
    let utf16: Vec<u8> = tab.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(read_ratings(&utf16), Ok(expected.to_vec()));
}

#[test]
fn says_which_lines_are_wrong() {
    let file = "site,rating\na.example,5\nb.example,2.5\n,3\nc.example,good\nd.example,4\nD.example,3\n";
    insta::assert_snapshot!(read_ratings(file.as_bytes()).unwrap_err());
    for (file, expected) in [
        ("", "line 1: the file is empty: expected the columns site and rating"),
        (
            "site,note\n",
            "line 1: there is no column rating: expected the columns site and rating, found site, note",
        ),
        (
            "rating\n1\n",
            "line 1: there is no column site: expected the columns site and rating, found rating",
        ),
    ] {
        assert_eq!(read_ratings(file.as_bytes()).unwrap_err().to_string(), expected);
    }
    let many = format!("site,rating\n{}", "x.example,9\n".repeat(30));
    let mistakes = read_ratings(many.as_bytes()).unwrap_err();
    assert_eq!((mistakes.first.len(), mistakes.more), (20, 10));
}

#[test]
fn guards_against_formulas() {
    for text in ["=1+1", "+1", "-1", "@x", "\tx", "＝1"] {
        assert_eq!(guarded(text), format!("'{text}"));
        assert_eq!(unguarded(&guarded(text)), text);
    }
    for text in ["", "a=1", "'tis", "'x"] {
        assert_eq!(guarded(text), text);
        assert_eq!(unguarded(text), text);
    }
}
