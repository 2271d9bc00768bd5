//! Write, commit, replace, remove, search: on real folders.

use std::path::Path;

use archive_storage::UrlId;
use archive_web::parse::SaidTexts;
use proptest::prelude::*;

use super::{
    FIND_WORDS_MAX, FieldPhrase, Find, IndexOptions, IndexView, IndexWriterOwner, IndexedVersion, Needs,
    Readers, SearchError, SearchReader, TEXT_BYTES_MAX, TextField, TextQuery, check, language_term,
    sign_terms,
};

fn document(page: u32, title: &str, text: &str) -> IndexedVersion {
    IndexedVersion {
        page: UrlId(page),
        replaces: false,
        version: None,
        url: format!("http://example.org/page-{page}"),
        title: title.to_owned(),
        text: text.to_owned(),
        headings: String::new(),
        said: SaidTexts::default(),
        elements: String::new(),
        structure: None,
        links: Vec::new(),
    }
}

fn writer(folder: &Path) -> IndexWriterOwner {
    let options = IndexOptions {
        memory_bytes: IndexOptions::MEMORY_BYTES_MIN,
        backlog_bytes: 1024,
        state: 7,
        of_versions: false,
    };
    IndexWriterOwner::open(folder, options).unwrap()
}

fn library(folder: &Path) -> SearchReader {
    let mut writer = writer(folder);
    for (page, title, text) in [
        (1, "Open access", "Journals that everybody may read."),
        (2, "Journals", "Some of them are open; access to others costs money. Open access is growing."),
        (3, "Doors", "Access is open all day."),
        (4, "Bibliothèque nationale", "L'accès est libre. 图书馆的开放时间"),
        (5, "", "Librarians and libraries"),
    ] {
        writer.add(&document(page, title, text)).unwrap();
    }
    writer.commit(42).unwrap();
    writer.close().unwrap();
    SearchReader::open(folder).unwrap()
}

fn found(reader: &SearchReader, query: &TextQuery) -> Vec<u32> {
    let found = IndexView::from(reader.clone()).search(query).unwrap();
    let mut pages: Vec<u32> = found.into_iter().map(|(page, _)| page.0).collect();
    pages.sort_unstable();
    pages
}

#[test]
fn finds_phrases_prefixes_and_combinations() {
    let folder = tempfile::tempdir().unwrap();
    let reader = library(folder.path());
    assert_eq!((reader.pages(), reader.watermark()), (5, 42));
    for (text, pages) in [
        ("open access", &[1, 2][..]),
        ("OPEN  access!", &[1, 2]),
        ("access open", &[]),
        ("access", &[1, 2, 3]),
        ("acces", &[4]),
        ("bibliotheque", &[4]),
        ("图书", &[4]),
        ("书图", &[]),
        ("librar*", &[5]),
        ("open acc*", &[1, 2]),
        ("librar", &[]),
        ("page 3", &[3]),
        ("…", &[]),
    ] {
        assert_eq!(found(&reader, &TextQuery::phrase(text)), pages, "{text}");
    }
    let texts = vec!["open access".to_owned(), "journals".to_owned(), "money".to_owned()];
    assert_eq!(found(&reader, &TextQuery { field: None, all: true, texts: texts.clone() }), [2]);
    assert_eq!(found(&reader, &TextQuery { field: None, all: false, texts }), [1, 2]);
    assert_eq!(found(&reader, &TextQuery { field: None, all: true, texts: Vec::new() }), [0; 0]);
}

#[test]
fn ranks_titles_before_bodies() {
    let folder = tempfile::tempdir().unwrap();
    let reader = library(folder.path());
    let mut hits = IndexView::from(reader).search(&TextQuery::phrase("open access")).unwrap();
    hits.sort_by(|left, right| right.1.total_cmp(&left.1));
    assert_eq!(hits.iter().map(|(page, _)| page.0).collect::<Vec<_>>(), [1, 2]);
    assert!(hits.iter().all(|(_, bm25)| *bm25 > 0.0));
}

/// However many documents one processor looks at, and whether they are scored or not.
#[test]
fn finds_the_same_pages_and_scores_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let mut writer = writer(folder.path());
    writer.add(&IndexedVersion { replaces: true, ..document(1, "Access", "Open access again.") }).unwrap();
    (6..200).for_each(|page| {
        writer.add(&document(page, "Access", &"open access ".repeat(page as usize % 7))).unwrap();
    });
    writer.remove(UrlId(3));
    writer.commit(43).unwrap();
    writer.close().unwrap();
    let view = IndexView::from(SearchReader::open(folder.path()).unwrap());
    let any =
        TextQuery { field: None, all: false, texts: vec!["libraries".to_owned(), "open access".to_owned()] };
    let queries = ["open access", "access", "acc*", "librar*", "page 3", "page"].map(TextQuery::phrase);
    for query in queries.iter().chain([&any]) {
        let (mut scored, mut pages) = (view.search(query).unwrap(), view.pages_with(query).unwrap());
        scored.sort_by_key(|(page, _)| *page);
        pages.sort();
        assert_eq!(pages, scored.iter().map(|(page, _)| *page).collect::<Vec<_>>(), "{query:?}");
        for page in (1..210).map(UrlId) {
            let one = scored.iter().find(|(other, _)| *other == page).map_or(0.0, |(_, bm25)| *bm25);
            assert_eq!(view.bm25(query, page).unwrap(), one, "{query:?} {page:?}");
        }
    }
    assert_eq!(view.search(&queries[1]).unwrap().len(), 196);
}

#[test]
fn keeps_one_document_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let reader = library(folder.path());
    let mut writer = writer(folder.path());
    assert_eq!(writer.watermark(), 42);
    writer.add(&IndexedVersion { replaces: true, ..document(1, "Closed access", "No more.") }).unwrap();
    writer.remove(UrlId(2));
    assert_eq!(found(&reader, &TextQuery::phrase("open access")), [1, 2]);
    writer.commit(43).unwrap();

    assert_eq!(found(&reader, &TextQuery::phrase("open access")), [1, 2], "a reader stays at its commit");
    let reader = SearchReader::open(folder.path()).unwrap();
    assert_eq!(found(&reader, &TextQuery::phrase("open access")), [0; 0]);
    assert_eq!(found(&reader, &TextQuery::phrase("closed access")), [1]);
    assert_eq!((reader.pages(), reader.watermark()), (4, 43));
}

#[test]
fn an_index_stays_open_until_its_next_commit() {
    let folder = tempfile::tempdir().unwrap();
    let (path, readers) = (folder.path().join("index"), Readers::default());
    assert!(matches!(readers.open(&path), Err(SearchError::Missing { .. })));
    library(&path);
    let open = || readers.open(&path).map(|reader| found(&reader, &TextQuery::phrase("open access")));
    assert_eq!(open().unwrap(), [1, 2]);
    // It is not looked for again.
    let is_of_words =
        |file: &std::path::PathBuf| file.extension().is_some_and(|extension| extension == "idx");
    let mut files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let words = files.find(is_of_words).unwrap();
    let away = folder.path().join("away");
    std::fs::rename(&words, &away).unwrap();
    assert_eq!(open().unwrap(), [1, 2]);
    assert!(SearchReader::open(&path).is_err());
    std::fs::rename(&away, &words).unwrap();

    let mut writer = writer(&path);
    writer.remove(UrlId(2));
    writer.commit(43).unwrap();
    assert_eq!(open().unwrap(), [1]);
    writer.close().unwrap();
    // A rebuild puts another one in its place.
    std::fs::rename(&path, &away).unwrap();
    assert!(matches!(readers.open(&path), Err(SearchError::Missing { .. })));
    library(&path);
    assert_eq!(open().unwrap(), [1, 2]);
}

#[test]
fn loses_only_what_was_not_committed() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = writer(folder.path());
    assert_eq!(first.watermark(), 0);
    first.add(&document(1, "kept", "")).unwrap();
    first.commit(7).unwrap();
    first.add(&document(2, "lost", "")).unwrap();
    drop(first);
    let second = writer(folder.path());
    assert_eq!(second.watermark(), 7);
    let reader = SearchReader::open(folder.path()).unwrap();
    assert_eq!(reader.pages(), 1);
}

/// A commit writes which pages of a file set were removed into a file whose name follows from the number of the operation. A
/// process that is killed before it has written `meta.json` leaves that file, and the next one comes to the same number.
#[test]
fn what_a_killed_commit_left_is_not_in_the_way_of_the_next() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let meta = folder.path().join("meta.json");
    let before = std::fs::read(&meta).unwrap();
    let commit = || {
        let mut writer = writer(folder.path());
        writer.remove(UrlId(1));
        writer.commit(43).unwrap();
        writer.close().unwrap();
    };
    commit();
    std::fs::write(&meta, before).unwrap();
    assert_eq!(SearchReader::open(folder.path()).unwrap().pages(), 5);
    commit();
    assert_eq!(SearchReader::open(folder.path()).unwrap().pages(), 4);
}

#[test]
fn has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let _first = writer(folder.path());
    let second = IndexWriterOwner::open(folder.path(), IndexOptions::default()).err().unwrap();
    assert!(matches!(second, SearchError::Locked { .. }), "{second}");
}

#[test]
fn says_what_is_wrong_with_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let missing = SearchReader::open(&folder.path().join("none")).unwrap_err();
    assert!(matches!(missing, SearchError::Missing { .. }), "{missing:?}");
    let missing = SearchReader::open(folder.path()).unwrap_err();
    assert!(matches!(missing, SearchError::Missing { .. }), "{missing:?}");

    let other = tempfile::tempdir().unwrap();
    let mut schema = tantivy::schema::Schema::builder();
    schema.add_text_field("words", tantivy::schema::TEXT);
    tantivy::Index::create_in_dir(other.path(), schema.build()).unwrap();
    let refused = SearchReader::open(other.path()).unwrap_err();
    assert!(matches!(refused, SearchError::OtherVersion { .. }), "{refused:?}");
    let refused = IndexWriterOwner::open(other.path(), IndexOptions::default()).err().unwrap();
    assert!(matches!(refused, SearchError::OtherVersion { .. }), "{refused:?}");

    library(folder.path());
    std::fs::write(folder.path().join("meta.json"), b"{").unwrap();
    let damaged = SearchReader::open(folder.path()).unwrap_err();
    assert!(matches!(damaged, SearchError::Damaged { .. }), "{damaged:?}");
}

#[test]
fn cuts_very_long_texts_at_a_character() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(folder.path());
    let filler = "é ".repeat(TEXT_BYTES_MAX / 3);
    writer.add(&document(1, "", &format!("first {filler}é last"))).unwrap();
    writer.commit(1).unwrap();
    let reader = SearchReader::open(folder.path()).unwrap();
    assert_eq!(found(&reader, &TextQuery::phrase("first")), [1]);
    assert_eq!(found(&reader, &TextQuery::phrase("last")), [0; 0]);
}

#[test]
fn shows_where_the_words_are() {
    let folder = tempfile::tempdir().unwrap();
    let reader = library(folder.path());
    let text = format!("{} Open access is growing. {}", "Before. ".repeat(50), "After. ".repeat(50));
    let reader = IndexView::from(reader);
    let marked = reader.marked(&TextQuery::phrase("open access")).unwrap();
    let snippet = marked.snippet(&text).unwrap();
    let words: Vec<&str> = snippet.found.iter().map(|range| &snippet.text[range.clone()]).collect();
    assert_eq!(words, ["Open", "access"]);
    // Of equal parts the first one, by words as the index has them.
    let twice = format!("ACCESS {} açcess", "between ".repeat(30));
    let snippet = marked.snippet(&twice).unwrap();
    assert!(
        snippet.text.starts_with("ACCESS between") && snippet.found.first() == Some(&(0..6)),
        "{snippet:?}"
    );
    assert!(snippet.text.len() <= super::SNIPPET_CHARACTERS_MAX);
    assert_eq!(marked.snippet("nothing"), None);
    // Far from the word before, and after a word that takes too many bytes.
    for far in [" ".repeat(255), " ".repeat(256), " ".repeat(5000), format!(" a{}b ", "\u{ad}".repeat(200))] {
        let snippet = marked.snippet(&format!("Before.{far}open access")).unwrap();
        let words: Vec<&str> = snippet.found.iter().map(|range| &snippet.text[range.clone()]).collect();
        assert_eq!(words, ["open", "access"], "{} bytes", far.len());
    }
}

#[test]
fn a_wrong_bit_in_any_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    assert_eq!(check(folder.path(), 7), [] as [String; 0]);
    assert_eq!(check(folder.path(), 8).len(), 1, "of another state");
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|file| std::fs::metadata(file).unwrap().len() > 0) {
        let good = std::fs::read(&file).unwrap();
        for byte in [0, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[byte] ^= 4;
            std::fs::write(&file, bad).unwrap();
            assert_ne!(check(folder.path(), 7), [] as [String; 0], "byte {byte} of {}", file.display());
            // A search gets an answer or an error.
            let open = TextQuery::phrase("open");
            let _ =
                SearchReader::open(folder.path()).and_then(|reader| IndexView::from(reader).search(&open));
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(check(folder.path(), 7).is_empty(), file.ends_with("files.xxh3"), "{}", file.display());
        std::fs::write(&file, good).unwrap();
    }
    assert_eq!(check(folder.path(), 7), [] as [String; 0]);
    // A writer that ends in the middle of its work leaves the list of what had been there before.
    let mut unfinished = writer(folder.path());
    unfinished.add(&document(6, "Six", "more words")).unwrap();
    unfinished.commit(43).unwrap();
    drop(unfinished);
    assert_eq!(check(folder.path(), 7), [] as [String; 0]);
    // One that is killed just before the end leaves a list that has no place yet.
    std::fs::write(folder.path().join("files.xxh3.new"), "0").unwrap();
    writer(folder.path()).close().unwrap();
    assert_eq!(check(folder.path(), 7), [] as [String; 0]);
}

#[test]
fn finds_what_pages_say_of_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(folder.path());
    let text = |text: &str| text.to_owned();
    let said = [
        SaidTexts { author: text("Ada Lovelace"), ..SaidTexts::default() },
        SaidTexts { keywords: text("engines, sketches"), ..SaidTexts::default() },
        SaidTexts {
            description: text("About engines"),
            headline: text("Ada speaks"),
            ..SaidTexts::default()
        },
        SaidTexts::default(),
    ];
    for (page, said) in (1..).zip(said) {
        writer.add(&IndexedVersion { said, ..document(page, "Notes", "Numbers.") }).unwrap();
    }
    writer.add(&document(5, "Ada", "Of engines and of Ada Lovelace, who wrote notes.")).unwrap();
    writer.commit(1).unwrap();
    writer.close().unwrap();
    let view = IndexView::from(SearchReader::open(folder.path()).unwrap());
    let found = |find: &Find| {
        let mut pages: Vec<u32> = view.find(find).unwrap().judge().iter().map(|found| found.page.0).collect();
        pages.sort_unstable();
        pages
    };
    assert_eq!(found(&typed("ada")), [1, 3, 5]);
    assert_eq!(found(&typed("engines")), [2, 3, 5]);
    let within = |field, text: &str, is_unwanted| FieldPhrase { field, text: text.to_owned(), is_unwanted };
    let only = |phrase| Find { within: vec![phrase], ..Find::default() };
    assert_eq!(found(&only(within(TextField::Author, "ada lovelace", false))), [1]);
    assert_eq!(found(&only(within(TextField::Author, "lovelace ada", false))), [0; 0]);
    assert_eq!(found(&only(within(TextField::Keywords, "sketches", false))), [2]);
    assert_eq!(found(&only(within(TextField::Description, "speaks", false))), [3]);
    assert_eq!(found(&only(within(TextField::Title, "ada", false))), [5]);
    let without = Find { within: vec![within(TextField::Title, "ada", true)], ..typed("engines") };
    assert_eq!(found(&without), [2, 3]);
    // A headline is a name of the page.
    let best = view.find(&typed("ada speaks")).unwrap().judge();
    assert_eq!(best.iter().max_by(|left, right| left.score.total_cmp(&right.score)).unwrap().page.0, 3);
    // A query for text finds what pages show.
    let shown: Vec<u32> =
        view.search(&TextQuery::phrase("ada")).unwrap().iter().map(|(page, _)| page.0).collect();
    assert_eq!(shown, [5]);
    assert!(view.like("sketches").unwrap().is_none(), "a page has it");
}

fn typed(words: &str) -> Find {
    Find { words: words.to_owned(), ..Find::default() }
}

#[test]
fn words_that_look_alike_have_one_letter_more_less_or_other_or_two_in_another_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(folder.path());
    for (page, text) in [(1, "opening orchid ocean"), (2, "orchids opening open"), (3, "opera égalité")] {
        writer.add(&document(page, "", text)).unwrap();
    }
    writer.commit(1).unwrap();
    writer.close().unwrap();
    let view = IndexView::from(SearchReader::open(folder.path()).unwrap());
    let like = |word: &str| {
        let mut like: Vec<(String, u64)> = view.like(word).unwrap().unwrap().into_iter().collect();
        like.sort();
        like
    };
    let one = |word: &str, count| vec![(word.to_owned(), count)];
    assert_eq!(like("oepn"), one("open", 1), "two letters in another order");
    assert_eq!(like("ocan"), one("ocean", 1));
    assert_eq!(like("opem"), one("open", 1));
    assert_eq!(like("opern"), [one("open", 1), one("opera", 1)].concat());
    // Two of a long word.
    assert_eq!(like("openninng"), one("opening", 2));
    assert_eq!(like("orchidx"), [one("orchid", 1), one("orchids", 1)].concat());
    assert_eq!(like("openin"), [one("open", 1), one("opening", 2)].concat());
    // The first letter has to be right.
    assert_eq!(like("pening"), []);
    assert_eq!(view.like("open").unwrap(), None, "some page has it");
    assert_eq!(like(""), []);
    assert_eq!(like(&"o".repeat(5000)), []);
}

fn best(reader: &IndexView<'_>, find: &Find) -> Vec<u32> {
    let mut found = reader.find(find).unwrap().judge();
    found.sort_by(|left, right| right.score.total_cmp(&left.score));
    found.iter().map(|found| found.page.0).collect()
}

#[test]
fn what_names_a_page_ranks_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(folder.path());
    let filler = "The catalogue of journals is described elsewhere. ".repeat(20);
    for (page, title, headings) in [
        (1, "Help", "Catalogue of journals"),
        (2, "Help", "More\nCatalogue"),
        (3, "Catalogue of journals", ""),
    ] {
        writer
            .add(&IndexedVersion { headings: headings.to_owned(), ..document(page, title, &filler) })
            .unwrap();
    }
    let links = vec![
        (UrlId(9), "Somewhere else".to_owned()),
        (UrlId(2), "journals".to_owned()),
        (UrlId(7), "A picture of it".to_owned()),
    ];
    writer.add(&IndexedVersion { links, ..document(4, "Start", "Nothing of that here.") }).unwrap();
    writer.commit(4).unwrap();
    let reader = SearchReader::open(folder.path()).unwrap();
    // A link that says just that goes before headings, and a heading before a longer one.
    let reader = IndexView::from(reader);
    assert_eq!(best(&reader, &typed("journals"))[0], 2);
    assert_eq!(best(&reader, &typed("catalogue of journals"))[0], 3);
    assert_eq!(best(&reader, &typed("catalogue"))[0], 2);
    // Nobody has read this page, but a link says what it is.
    assert_eq!(best(&reader, &typed("picture")), [7]);
    let found = reader.find(&typed("picture nothing")).unwrap().judge();
    assert!(found.iter().all(|found| !found.has_all), "{found:?}");
    let phrase = Find { phrases: vec!["nothing of that".to_owned()], ..Find::default() };
    assert_eq!(best(&reader, &phrase), [4]);
    let without = Find { without: vec!["catalogue".to_owned()], ..typed("help start") };
    assert_eq!(best(&reader, &without), [4]);
    assert!(reader.find(&Find::default()).unwrap().judge().is_empty());
    let many: Vec<String> = (0..FIND_WORDS_MAX + 5).map(|number| format!("w{number}")).collect();
    assert!(reader.find(&typed(&many.join(" "))).unwrap().judge().is_empty());
}

#[test]
fn finds_other_forms_of_words_in_the_language_of_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(folder.path());
    for (page, language, text) in [
        (1, Some("en-GB"), "Libraries are open."),
        (2, Some("en"), "A library is open."),
        (3, Some("fr"), "Les libraries sont ouvertes. Des notes."),
        (4, Some("pl"), "Noted libraries."),
        (5, None, "Noted."),
        (6, Some("en"), "Noted."),
        (7, Some("fr"), "Noted."),
        (8, Some("en"), "Pasture cows."),
        (9, Some("en"), "Pasture pastures."),
    ] {
        let elements = language.map(language_term).unwrap_or_default();
        writer.add(&IndexedVersion { elements, ..document(page, "", text) }).unwrap();
    }
    writer.commit(1).unwrap();
    writer.close().unwrap();
    let view = IndexView::from(SearchReader::open(folder.path()).unwrap());
    let sorted = |words: &str| {
        let mut pages = best(&view, &typed(words));
        pages.sort_unstable();
        pages
    };
    assert_eq!(best(&view, &typed("library")), [2, 1], "the word as it is typed comes first");
    assert!(view.find(&typed("library open")).unwrap().judge().iter().all(|found| found.has_all));
    assert_eq!(sorted("note"), [3, 5, 6], "the language of 5 is not known");
    assert_eq!(view.forms(&typed("note")).unwrap(), ["noted", "notes"]);
    let phrase = Find { phrases: vec!["library".to_owned()], ..Find::default() };
    assert_eq!(best(&view, &phrase), [2], "quoted words have no other forms");
    let scores = |words: &str| {
        let mut found = view.find(&typed(words)).unwrap().judge();
        found.sort_unstable_by_key(|found| found.page);
        found.into_iter().map(|found| (found.page.0, found.score)).collect::<Vec<_>>()
    };
    let [(8, one), (9, both)] = scores("pasture")[..] else { panic!("two pages have the word as typed") };
    assert_eq!(one, both, "a form adds nothing to a word that a page has as typed");
    // Only page 2 has the one, and only page 1 the other: neither counts as a form of its neighbour.
    assert!(view.find(&typed("library libraries")).unwrap().judge().iter().all(|found| !found.has_all));
}

/// An index of texts with the terms of their signs, as a crawl writes it; the first line of each is its title.
fn indexed(folder: &Path, texts: &[String]) -> IndexView<'static> {
    let mut writer = writer(folder);
    for (page, text) in (0..).zip(texts) {
        let (title, text) = text.split_once('\n').unwrap_or(("", text));
        writer
            .add(&IndexedVersion { elements: sign_terms(title, text), ..document(page, title, text) })
            .unwrap();
    }
    writer.commit(texts.len() as u64).unwrap();
    writer.close().unwrap();
    SearchReader::open(folder).unwrap().into()
}

fn lacking(view: &IndexView<'_>, expression: &str) -> Vec<u32> {
    let needs = Needs::of(expression, true, false).unwrap();
    let mut pages: Vec<u32> = view.lacking(&needs).unwrap().into_iter().map(|page| page.0).collect();
    pages.sort_unstable();
    pages
}

#[test]
fn pages_lack_what_a_pattern_needs() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("librarian@{}", "x".repeat(65));
    let texts =
        ["Mail\nlibrarian@museum.example", "librarian at museum.example", "图书馆 RÉSUMÉ", &long, "1-2"];
    let view = indexed(folder.path(), &texts.map(str::to_owned));
    for (expression, pages) in [
        ("@museum", &[1, 2, 4][..]),
        ("ian@", &[1, 2, 4]),
        ("museum", &[2, 4]),
        ("[a-z]+@(museum|library)", &[1, 2, 4]),
        ("mail", &[1, 2, 4]),
        ("resume", &[0, 1, 4]),
        ("书馆", &[0, 1, 4]),
        ("(书馆|mail)", &[1, 4]),
        ("[0-9]-[0-9]", &[0, 1, 2]),
    ] {
        assert_eq!(lacking(&view, expression), pages, "{expression}");
    }
    // More words than are looked up may fit.
    let many: Vec<String> = (0..257).map(|word| format!("w{word}")).collect();
    let folder = tempfile::tempdir().unwrap();
    let view = indexed(folder.path(), &[many[..256].join(" "), "none".to_owned()]);
    assert_eq!(lacking(&view, "w[0-9]"), [1]);
    let folder = tempfile::tempdir().unwrap();
    let view = indexed(folder.path(), &[many.join(" "), "none".to_owned()]);
    assert_eq!(lacking(&view, "w[0-9]"), [0; 0]);
    // What another commit has is not known.
    let mut writer = writer(folder.path());
    writer.add(&document(3, "", "none")).unwrap();
    writer.commit(43).unwrap();
    assert_eq!(lacking(&view, "nowhere"), [0; 0]);
}

/// Pieces of texts and of patterns: signs, accents, invisible characters, letters that become others or several, words of
/// one character, digits of several scripts.
const PIECES: [&str; 37] = [
    "a", "b", "A", "é", "É", "e\u{301}", "\u{ad}", "\u{200d}", "ß", "ſ", "\u{212a}", "k", "İ", "i", "Ⱥ", "æ",
    "①", "１", "1", "2", "๑", "๒", "图", "书", "@", ".", "-", "_", " ", "\n", "ab", "12", "관", "서", "ال",
    "كت", "و",
];

/// Parts of patterns that are not texts.
const CLASSES: [&str; 20] = [
    ".", r"\w", r"\d", r"\s", r"\W", r"\D", r"\b", "^", "$", "[a-c]", "[^a]", "[@.]", "[é1]", "[图a]",
    r"[\d-]", "(?m:^)", "[书图]", r"\pN", "[a관]", "[كx]",
];

fn pattern() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(PIECES.as_slice()).prop_map(regex::escape);
    let class = proptest::sample::select(CLASSES.as_slice()).prop_map(str::to_owned);
    prop_oneof![3 => piece, 1 => class].prop_recursive(4, 24, 5, |inner| {
        let several = proptest::collection::vec(inner.clone(), 1..5);
        prop_oneof![
            4 => several.clone().prop_map(|parts| parts.concat()),
            2 => several.prop_map(|parts| format!("({})", parts.join("|"))),
            2 => (inner.clone(), proptest::sample::select(vec!["?", "+", "*", "{2}", "{1,2}"]))
                .prop_map(|(part, times)| format!("(?:{part}){times}")),
            1 => inner.prop_map(|part| format!("(?-i:{part})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever the texts and patterns are.
    #[test]
    fn no_page_that_fits_lacks_anything(
        texts in proptest::collection::vec(
            proptest::collection::vec(proptest::sample::select(PIECES.as_slice()), 0..12), 1..40),
        patterns in proptest::collection::vec((pattern(), any::<bool>(), any::<bool>()), 60),
    ) {
        let texts: Vec<String> = texts.iter().map(|text| text.concat()).collect();
        let folder = tempfile::tempdir().unwrap();
        let view = indexed(folder.path(), &texts);
        for (pattern, folds_case, dot_is_any) in patterns {
            let regex = regex::RegexBuilder::new(&pattern)
                .case_insensitive(folds_case).dot_matches_new_line(dot_is_any).build().unwrap();
            let Some(needs) = Needs::of(&pattern, folds_case, dot_is_any) else { continue };
            for page in view.lacking(&needs).unwrap() {
                let text = &texts[page.0 as usize];
                prop_assert!(!regex.is_match(text), "{pattern:?} fits {text:?}: {needs:?}");
            }
        }
    }
}
