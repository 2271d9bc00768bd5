//! Paths against documents with known answers, and the index against the documents themselves.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;

use archive_books::search::{
    IndexOptions, IndexView, IndexWriterOwner, IndexedVersion, SearchReader, elements,
};
use archive_storage::{CaptureId, HostId, SiteId, UrlId};
use archive_web::parse::{self, DocumentKind, FetchedDocument, ParseLimits, Structure, parse, with_elements};
use chrono::{DateTime, Utc};
use proptest::prelude::*;
use tempfile::TempDir;
use url::Url;

use super::language::plan::Search;
use super::run::searches::element_query;
use super::*;

/// Documents by number, each a page with one capture of that number.
struct Library {
    documents: Vec<String>,
    /// Number of documents read.
    reads: Cell<usize>,
}

impl Library {
    fn of(documents: Vec<String>) -> Self {
        Self { documents, reads: Cell::new(0) }
    }

    fn row(id: u32) -> PageRow {
        PageRow {
            id: UrlId(id),
            host: HostId(0),
            site: SiteId(0),
            kind: Some(DocumentKind::Xml),
            status: Some(200),
            content_status: Some(200),
            importance: 1.0,
            captures: 1,
            attempts: 1,
            versions: 1,
            first_seen: None,
            last_seen: None,
            last_answer: None,
            last_attempt: None,
            failing_since: None,
            changed: None,
            depth: Some(id),
        }
    }

    /// What is found, with the index and without.
    fn ask(&self, text: &str, index: &IndexView<'_>) -> (Answer, Answer) {
        let plan = Plan::parse(text, &Context { zone: Zone::Utc, ..Context::of(self) })
            .unwrap_or_else(|error| panic!("{text}\n{error}"));
        let with = plan.run(self, Some(index)).unwrap_or_else(|error| panic!("{text}\n{error}"));
        (with, plan.run(self, None).unwrap())
    }

    fn index(&self, folder: &TempDir) -> IndexView<'static> {
        let mut writer = IndexWriterOwner::open(folder.path(), IndexOptions::default()).unwrap();
        for (id, xml) in self.documents.iter().enumerate() {
            let url = Url::parse("http://a.test/").unwrap();
            let content_type = Some("text/xml");
            let source =
                FetchedDocument { url: &url, status: 200, content_type, headers: &[], body: xml.as_bytes() };
            let parsed = parse(&source, &ParseLimits::default());
            let document = IndexedVersion {
                page: UrlId(id as u32),
                replaces: false,
                version: None,
                url: url.into(),
                title: parsed.title,
                text: parsed.text,
                headings: String::new(),
                said: archive_web::parse::SaidTexts::default(),
                elements: match parsed.kind.has_elements() {
                    true => elements::terms(parsed.elements, parsed.text_has_all),
                    false => String::new(),
                },
                structure: parsed.structure,
                links: Vec::new(),
            };
            writer.add(&document).unwrap();
        }
        writer.commit(1).unwrap();
        writer.close().unwrap();
        SearchReader::open(folder.path()).unwrap().into()
    }
}

impl Rows for Library {
    fn pages(&self) -> Box<dyn Iterator<Item = Result<PageRow, RowsError>> + '_> {
        Box::new((0..self.documents.len() as u32).map(|id| Ok(Self::row(id))))
    }

    fn page(&self, id: UrlId) -> Result<Option<PageRow>, RowsError> {
        Ok(Some(Self::row(id.0)))
    }

    fn text(&self, _: &PageRow, _: PageText) -> Result<Option<Cow<'_, str>>, RowsError> {
        Ok(None)
    }

    fn sites(&self) -> Box<dyn Iterator<Item = Result<SiteRow, RowsError>> + '_> {
        Box::new(std::iter::empty())
    }

    fn history(
        &self,
        page: UrlId,
    ) -> Result<Box<dyn Iterator<Item = Result<CaptureRow, RowsError>> + '_>, RowsError> {
        Ok(Box::new(std::iter::once(Ok(CaptureRow {
            id: CaptureId(page.0),
            page,
            time: DateTime::<Utc>::UNIX_EPOCH,
            is_content: true,
            kind: "response",
            status: Some(200),
            content_type: "text/xml".to_owned(),
            size: None,
            stored: 0,
            digest: [0; 16],
            content_changed: true,
            bytes_changed: true,
        }))))
    }

    fn document(&self, capture: CaptureId, read: &mut DocumentReader<'_>) -> Result<(), RowsError> {
        let xml = &self.documents[capture.0 as usize];
        self.reads.set(self.reads.get() + 1);
        with_elements(xml.as_bytes(), Some("text/xml"), &ParseLimits::default(), read).unwrap_or(Ok(()))
    }

    fn structure(&self, capture: CaptureId) -> Result<Option<Structure>, RowsError> {
        let xml = self.documents[capture.0 as usize].as_bytes();
        self.reads.set(self.reads.get() + 1);
        let url = Url::parse("http://a.test/").unwrap();
        let source = FetchedDocument {
            url: &url,
            status: 200,
            content_type: Some("text/xml"),
            headers: &[],
            body: xml,
        };
        let problems: Vec<_> =
            parse(&source, &ParseLimits::default()).problems.iter().map(ToString::to_string).collect();
        Ok(parse::structure(xml, Some("text/xml"), &problems, &ParseLimits::default()))
    }
}

const DOCUMENTS: [&str; 8] = [
    "<catalogue><book year='1980'><author>Umberto <b>Eco</b></author><title>The Name of the Rose</title>\
     <price>12.50</price></book><book year='1988'><author>Umberto Eco</author><title>Foucault's Pendulum</title></book>\
     </catalogue>",
    "<catalogue><book year='1856'><author>Charles Baudelaire</author><title>A rose</title><price>9</price></book>\
     <magazine><author>Eco</author></magazine></catalogue>",
    "<r:rdf xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:x='http://purl.org/dc/elements/1.1/'>\
     <x:title>Rose</x:title><x:date>2026-02-03</x:date></r:rdf>",
    "<rss><channel><title>News</title><item><title>First</title><pubDate>Mon, 02 Feb 2026 10:00:00 GMT</pubDate></item>\
     </channel></rss>",
    "<!DOCTYPE a [<!ENTITY who 'Eco'>]><a><author>&who;</author><a><a deep='yes'>Umberto<![CDATA[ Eco]]></a></a></a>",
    "<Book><Title>Rose</Title><broken></Book>",
    "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>http://a.test/rose</loc></url></urlset>",
    "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>Rose</title></head><body/></html>",
];

#[test]
fn paths_find_the_contents_of_documents() {
    let library = Library::of(DOCUMENTS.map(str::to_owned).to_vec());
    let folder = TempDir::new().unwrap();
    let index = library.index(&folder);
    for (text, expected) in [
        ("//book[author contains Eco]/title contains rose", &[0][..]),
        ("//book[author contains 'umberto eco']", &[0]),
        ("//book[author contains 'eco umberto']", &[]),
        ("//author contains Eco", &[0, 1, 4]),
        ("//book//b contains Eco", &[0]),
        ("/catalogue/book", &[0, 1]),
        ("/book", &[]),
        ("/*/book[price]", &[0, 1]),
        ("//book[price > 10]", &[0]),
        ("//book[price between 9 and 12.5 and title contains rose]", &[0, 1]),
        ("//book[not price]", &[0]),
        ("//book[@year = 1856 or @year = 1988]", &[0, 1]),
        ("//@year in (1856, 1)", &[1]),
        ("//book/@year < 1900", &[1]),
        ("//@deep", &[4]),
        ("//a/a/a[. = 'umberto eco' and @deep = yes]", &[4]),
        ("//a[.//a]/author contains eco", &[4]),
        ("//dc:title = rose", &[2]),
        ("//x:title = rose", &[2]),
        ("//dc:*[. contains rose]", &[2]),
        ("//db:title", &[]),
        ("//dc:date since 2026-02 until 2026-02-03", &[2]),
        ("//pubDate = 2026-02-02", &[3]),
        ("//pubDate > 2026-02-02", &[]),
        ("//title contains all (rose, name)", &[0]),
        ("//title contains any (pendulum, first)", &[0, 3]),
        ("//title starts with 'a '", &[1]),
        ("//title matches 'r.se$'", &[0, 1, 2]),
        ("//Title contains rose", &[5]),
        ("//loc", &[]),
        ("//head", &[]),
        ("//* contains rose", &[0, 1, 2, 5]),
        ("//@* = yes", &[4]),
        ("//catalogue[magazine/author contains eco][book/@year]", &[1]),
        ("//book[author contains Baudelaire] is empty", &[0, 2, 3, 4, 5, 6, 7]),
        ("//title not contains rose and //book", &[]),
        ("not //author and //title", &[2, 3]),
        ("//title contains rose or //author contains eco", &[0, 1, 2, 4]),
    ] {
        let (with, without) = library.ask(&format!("page {text} select depth order by depth asc"), &index);
        let ids = |answer: &Answer| -> Vec<u64> {
            answer.rows.iter().filter_map(|row| row[0].as_number()).map(|id| id as u64).collect()
        };
        assert_eq!(ids(&without), expected, "{text}, by reading");
        assert_eq!(ids(&with), expected, "{text}, by the index");
    }
    let (titles, _) = library.ask("//book select //book[@year > 1900]/title, length(//magazine)", &index);
    let row = |title: Value, length| vec![title, length];
    let roses = Value::Text("The Name of the Rose | Foucault's Pendulum".to_owned());
    assert_eq!(titles.rows, [row(roses, Value::Empty), row(Value::Empty, Value::Integer(3))]);
    let (groups, _) = library.ask("count pages //author group by //book/@year order by count", &index);
    assert_eq!(groups.rows.len(), 3);
}

#[test]
fn an_index_reads_few_documents() {
    let library = Library::of(DOCUMENTS.map(str::to_owned).to_vec());
    let folder = TempDir::new().unwrap();
    let index = library.index(&folder);
    let found = |text: &str| {
        let plan = Plan::parse(text, &Context::of(&library)).unwrap();
        let mut found = BTreeSet::new();
        for search in &plan.searches {
            let Search::Elements { condition, are_known } = search else { continue };
            let query = element_query(condition, *are_known);
            found.extend(index.documents(&query, *are_known).unwrap().unwrap().into_iter().map(|id| id.0));
        }
        found
    };
    assert_eq!(found("//book[author contains Eco]/title contains rose"), BTreeSet::from([0]));
    assert_eq!(found("//@year = '1856'"), BTreeSet::from([1]));
    assert_eq!(found("//magazine"), BTreeSet::from([1]));
    assert!(found("//author contains pendulum").is_empty());
    assert_eq!(found("//catalogue contains rose"), BTreeSet::from([0, 1]));
    assert!(found("//@deep = no").is_empty());
}

#[test]
fn what_makes_no_sense_is_said() {
    let library = Library::of(Vec::new());
    let mut report = String::new();
    for text in [
        "site //a",
        "//a/@b/c",
        "//a contains '-'",
        "//a > //b",
        "//a = site.site",
        "//a[b contains]",
        "//a[b",
        "//a]",
        "//",
        "//a[]",
        "page select //a, count",
        "links to (page //a) and // a",
    ] {
        let mistake = Plan::parse(text, &Context::of(&library)).expect_err(text);
        report.push_str(&format!("{text}\n{mistake}\n\n"));
    }
    insta::assert_snapshot!(report);
}

#[test]
fn a_document_is_read_only_up_to_a_limit() {
    let deep = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    let documents = vec![format!("<r>{}</r>", deep(200).repeat(3000))];
    let library = Library::of(documents);
    let plan = Plan::parse("//a[.//a[.//b]]", &Context::of(&library)).unwrap();
    let error = plan.run(&library, None).unwrap_err();
    assert!(
        matches!(&error, Error::Rows(why) if why.to_string().contains("nodes of one document")),
        "{error:?}"
    );
}

#[test]
fn texts_of_elements_end_somewhere() {
    let library =
        Library::of(vec![format!("<r>{}</r>", format!("<a>{}</a>", "x".repeat(1000)).repeat(2000))]);
    let plan = Plan::parse("page select length(//a), length(//r)", &Context::of(&library)).unwrap();
    let row = plan.run(&library, None).unwrap().rows.remove(0);
    let length = row[0].as_number().unwrap();
    assert!((1_048_576.0..1_050_000.0).contains(&length), "{length}");
    assert_eq!(row[1], Value::Integer(2_000_000 + 1999), "one element is shown whole");
}

/// A small document of few names and words.
fn tree() -> impl Strategy<Value = String> {
    let long = "one two three four five six seven eight nine ten eleven twelve thirteen";
    let word = || prop::sample::select(vec!["one ", "two", " Two three", "", long]);
    let leaf = word().prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let name = prop::sample::select(vec!["a", "b", "c"]);
        let attribute = prop::option::of(prop::sample::select(vec![" x='one'", " y='two three'", " x='2'"]));
        (name, attribute, prop::collection::vec(inner, 0..4)).prop_map(|(name, attribute, inner)| {
            format!("<{name}{}>{}</{name}>", attribute.unwrap_or_default(), inner.concat())
        })
    })
    .prop_map(|inner| format!("<r>{inner}</r>"))
}

fn path(depth: u32) -> BoxedStrategy<String> {
    let name = prop::sample::select(vec!["a", "b", "c", "*"]);
    let predicate = if depth == 0 { Just(String::new()).boxed() } else { predicate(depth - 1) };
    let step =
        (prop::sample::select(vec!["/", "//"]), name, predicate).prop_map(|(a, b, c)| format!("{a}{b}{c}"));
    let end = prop::option::of(prop::sample::select(vec!["/@x", "//@y", "/@*"]));
    (prop::collection::vec(step, 1..3), end)
        .prop_map(|(steps, end)| steps.concat() + end.unwrap_or_default())
        .boxed()
}

fn check() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        " contains two",
        " contains 'two three'",
        " = two",
        " = 'two three'",
        " != one",
        " > 1",
        " is empty",
        " contains any (one, three)",
        " not contains all (one, two)",
        " in (one, 'two')",
        " starts with t",
        " matches 'T.o'",
        " between 1 and 3",
        " since 2000-01",
        " ~ '*two*'",
    ])
}

fn predicate(depth: u32) -> BoxedStrategy<String> {
    let test = (path(depth), check()).prop_map(|(path, check)| format!(".{path}{check}"));
    let own = prop::sample::select(vec![
        "@x",
        "@x = one",
        ". contains two",
        "b",
        "not c",
        "a or @y contains three",
        "@x = one and b = two",
        "b contains two and . contains one",
        "@x = one and (@y contains two or c contains three)",
    ]);
    prop_oneof![
        Just(String::new()),
        own.prop_map(|own| format!("[{own}]")),
        test.prop_map(|test| format!("[{test}]")),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_index_leaves_nothing_out(
        documents in prop::collection::vec(tree(), 1..12),
        tests in prop::collection::vec((path(2), check(), any::<bool>()), 40),
    ) {
        let library = Library::of(documents);
        let folder = TempDir::new().unwrap();
        let index = library.index(&folder);
        for (path, check, negated) in tests {
            let not = if negated { "not " } else { "" };
            let text = format!("page {not}/{}{check} select depth order by depth", path.trim_start_matches('/'));
            let (with, without) = library.ask(&text, &index);
            prop_assert_eq!(with.rows, without.rows, "{} of {:?}", text, library.documents);
        }
    }

    /// What the index decides agrees with the documents themselves, and no document is read for it.
    #[test]
    fn the_index_decides_on_names_and_whole_texts(
        documents in prop::collection::vec(lettered_tree(), 1..12),
        tests in prop::collection::vec((decided_path(), any::<bool>()), 40),
    ) {
        let library = Library::of(documents);
        let folder = TempDir::new().unwrap();
        let index = library.index(&folder);
        for (path, negated) in tests {
            let text = format!("page {}{path} select depth order by depth", if negated { "not " } else { "" });
            let plan = Plan::parse(&text, &Context::of(&library)).unwrap();
            library.reads.set(0);
            let with = plan.run(&library, Some(&index)).unwrap();
            prop_assert_eq!(library.reads.get(), 0, "{}", text);
            prop_assert_eq!(with.rows, plan.run(&library, None).unwrap().rows, "{} of {:?}", text, library.documents);
        }
    }
}

/// The index decides conditions on one element if its texts are short.
#[test]
fn the_index_decides_on_one_element() {
    let library = Library::of(DOCUMENTS.map(str::to_owned).to_vec());
    let folder = TempDir::new().unwrap();
    let index = library.index(&folder);
    for (text, expected) in [
        ("//book[author contains eco]/title contains rose", &[0][..]),
        ("//book[author contains eco and @year = '1988']/title contains rose", &[]),
        ("//book[author contains eco and @year < 1988]/title contains rose", &[0]),
        ("//book[author = 'Umberto Eco' and @year in (1980, 1999)]/title = 'the name of the rose'", &[0]),
        ("//book[@year = 1856 and (title contains rose or title contains name)]", &[1]),
        ("//magazine/author = eco", &[1]),
        ("//book/author = eco", &[]),
        ("//item/title starts with fi", &[3]),
        ("//book[price > 10]", &[0]),
        ("//author contains eco", &[0, 1, 4]),
    ] {
        let plan =
            Plan::parse(&format!("page {text} select depth order by depth asc"), &Context::of(&library));
        library.reads.set(0);
        let answer = plan.unwrap().run(&library, Some(&index)).unwrap();
        let ids = answer.rows.iter().filter_map(|row| row[0].as_number()).map(|id| id as u64);
        assert_eq!(ids.collect::<Vec<_>>(), expected, "{text}");
        assert_eq!(library.reads.get(), 0, "{text}");
    }
}

#[test]
fn what_the_index_compares_has_limits() {
    let reads = |documents: Vec<String>, path: &str| {
        let library = Library::of(documents);
        let folder = TempDir::new().unwrap();
        let plan = Plan::parse(&format!("page {path}"), &Context::of(&library)).unwrap();
        plan.run(&library, Some(&library.index(&folder))).unwrap();
        library.reads.get()
    };
    let values = |count: usize| -> Vec<String> {
        let value = |first: usize| (first..count).step_by(4).map(|value| format!("<a>{value}</a>"));
        [0, 1, 2, 3].map(|first| format!("<r>{}</r>", value(first).collect::<String>())).to_vec()
    };
    assert_eq!(reads(values(elements::VALUES_MAX), "//a starts with x"), 0);
    assert_eq!(reads(values(elements::VALUES_MAX + 1), "//a starts with x"), 4);
    let document = "<r><a x='0'/><a y='0'/></r>".to_owned();
    let combined = |count: usize| {
        let texts: Vec<_> = (0..count).map(|text| text.to_string()).collect();
        let path = format!("//a[@x in ('{}') and @y in ('0', '1')]", texts.join("', '"));
        reads(vec![document.clone()], &path)
    };
    assert_eq!(combined(elements::COMBINATIONS_MAX / 2), 0);
    assert_eq!(combined(elements::COMBINATIONS_MAX / 2 + 1), 1);
}

const LETTERED: [&str; 9] = [
    "guide",
    "Guide",
    "",
    " guide ",
    "a guide",
    "a\tGuide",
    "\u{212A}ein",
    "stra\u{1E9E}e",
    "\u{3A3}\u{39F}\u{3A3}",
];

/// A document with attributes that differ only in case and white space, some of them long.
fn lettered_tree() -> impl Strategy<Value = String> {
    let value = prop::sample::select(LETTERED.to_vec())
        .prop_map(str::to_owned)
        .boxed()
        .prop_union((62..66_usize).prop_map(|bytes| "x".repeat(bytes)).boxed());
    let element =
        (prop::sample::select(vec!["a", "b", "n:b"]), prop::sample::select(vec!["x", "y", "n:x"]), value);
    prop::collection::vec(element, 0..4).prop_map(|elements| {
        let inner = elements.into_iter().map(|(name, attribute, value)| {
            format!("<{name} {attribute}='{}'><c/></{name}>", value.replace('\t', "&#9;"))
        });
        format!("<a xmlns:n='n'>{}</a>", inner.collect::<String>())
    })
}

fn decided_path() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["a", "b", "c", "*"]);
    let attribute = || prop::sample::select(vec!["@x", "@y", "@z"]);
    let value = prop::sample::select(LETTERED.to_vec());
    let check = prop::option::of((value, any::<bool>())).prop_map(|check| match check {
        None => String::new(),
        Some((value, true)) => format!(" = \"{value}\""),
        Some((value, false)) => format!(" in (\"{value}\", guide)"),
    });
    let check = check.boxed();
    prop_oneof![
        (name(), attribute(), check.clone()).prop_map(|(a, b, c)| format!("//{a}/{b}{c}")),
        (name(), attribute(), check.clone()).prop_map(|(a, b, c)| format!("//{a}[{b}{c}]")),
        (name(), attribute(), check.clone()).prop_map(|(a, b, c)| format!("//{a}[{b}{c} or @y = guide]")),
        (attribute(), check.clone()).prop_map(|(a, b)| format!("//{a}{b}")),
        (attribute(), check.clone(), attribute(), check.clone())
            .prop_filter("existence alone", |(_, left, _, right)| !left.is_empty() && !right.is_empty())
            .prop_map(|(a, left, b, right)| format!("//b[{a}{left} and {b}{right}]")),
        prop::sample::select(vec!["//a", "//b", "//c", "/a", "/b"]).prop_map(str::to_owned),
    ]
}

#[test]
fn documents_are_asked_for_as_a_whole() {
    let mut documents = DOCUMENTS.map(str::to_owned).to_vec();
    documents.push("<!DOCTYPE b PUBLIC '-//X//DTD B//EN' 'b.dtd'><b>&#0;</b>".to_owned());
    let library = Library::of(documents);
    let folder = TempDir::new().unwrap();
    let index = library.index(&folder);
    for (text, expected) in [
        ("root = catalogue", &[0, 1][..]),
        ("root in (rss, rdf)", &[2, 3]),
        ("namespace = 'http://www.w3.org/1999/02/22-rdf-syntax-ns#'", &[2]),
        ("namespace is not empty and not namespace contains w3", &[6]),
        ("doctype = a", &[4]),
        ("doctype contains 'DTD B'", &[8]),
        ("doctype is empty and root = Book", &[5]),
        ("well-formed = no", &[5, 8]),
        ("well formed = yes and well_formed != no", &[0, 1, 2, 3, 4, 6, 7]),
    ] {
        library.reads.set(0);
        let (with, without) = library.ask(&format!("page {text} select depth order by depth asc"), &index);
        let ids = |answer: &Answer| -> Vec<u64> {
            answer.rows.iter().filter_map(|row| row[0].as_number()).map(|id| id as u64).collect()
        };
        assert_eq!(ids(&without), expected, "{text}, by reading");
        assert_eq!(ids(&with), expected, "{text}, by the index");
        assert_eq!(library.reads.get(), 9, "{text}: by the index none");
    }
    let (groups, _) = library.ask("page select root, count group by root having count > 1", &index);
    assert_eq!(groups.rows, [vec![Value::Text("catalogue".to_owned()), Value::Integer(2)]]);
    let (row, _) = library.ask("page root = b select namespace, doctype, well-formed", &index);
    let [doctype, no] = ["b -//X//DTD B//EN", "no"].map(|text| Value::Text(text.to_owned()));
    assert_eq!(row.rows, [vec![Value::Empty, doctype, no]]);
}
