//! PDF, office files and e-mail: what is read of them, and what they may do to a crawl.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::Archive;
use crate::support::pages::{PageServer, Pages};
use crate::support::program::{Running, start};

/// Returns a ZIP file with these parts.
fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Returns a PDF file with these objects from number 1 on; the first one is the catalogue, the last one says what the document is.
fn pdf(objects: &[String]) -> Vec<u8> {
    let mut file = "%PDF-1.7\n".to_owned();
    let mut places = Vec::new();
    for (object, number) in objects.iter().zip(1..) {
        places.push(format!("{:010} 00000 n \n", file.len()));
        file += &format!("{number} 0 obj\n{object}\nendobj\n");
    }
    let (start, count) = (file.len(), objects.len());
    file += &format!("xref\n0 {}\n0000000000 65535 f \n{}", count + 1, places.concat());
    file +=
        &format!("trailer <</Size {} /Root 1 0 R /Info {count} 0 R>>\nstartxref\n{start}\n%%EOF", count + 1);
    file.into_bytes()
}

fn stream(more: &str, content: &str) -> String {
    format!("<</Length {} {more}>>stream\n{content}\nendstream", content.len())
}

/// Returns a PDF file of one page with this content and these further objects from number 6 on, which `resources` names.
fn page(content: &str, resources: &str, more: Vec<String>) -> Vec<u8> {
    let mut objects = vec![
        "<</Type /Catalog /Pages 2 0 R /Lang (de-AT)>>".to_owned(),
        "<</Type /Pages /Kids [3 0 R] /Count 1>>".to_owned(),
        format!(
            "<</Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R
              /Resources <</Font <</F 4 0 R>> {resources}>>
              /Annots [<</Subtype /Link /Rect [0 0 9 9] /A <</S /URI /URI (/of-pdf)>>>>]>>"
        ),
        "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>".to_owned(),
        stream("", content),
    ];
    objects.extend(more);
    objects.push(
        "<</Title (Bericht) /Author (Ada) /CreationDate (D:20240102030405Z) /ModDate (D:20240203040506+01'00')>>"
            .to_owned(),
    );
    pdf(&objects)
}

/// A file whose only page draws a form that draws ten others, forty times over.
fn endless() -> Vec<u8> {
    let form = |number: usize| {
        let next = number + 1;
        let more = format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</X{next} {} 0 R>>>>",
            next + 6
        );
        stream(&more, &format!("/X{next} Do ").repeat(10))
    };
    page("/X0 Do", "/XObject <</X0 6 0 R>>", (0..40).map(form).collect())
}

const CORE: &str = "<cp:coreProperties><dc:title>Bericht</dc:title><dc:creator>Ada</dc:creator>\
    <dcterms:created>2024-01-02T03:04:05Z</dcterms:created><dcterms:modified>2024-02-03T03:05:06Z</dcterms:modified>\
    <dc:language>de-AT</dc:language></cp:coreProperties>";

/// Documents by path: each has a word of its own, and most have a link to `/of-` and their name.
fn documents() -> Pages {
    let relations = |target: &str| {
        format!("<Relationships><Relationship Type='http://x/hyperlink' Target='{target}'/></Relationships>")
    };
    let docx = zipped(&[
        ("[Content_Types].xml", "<Types/>"),
        ("docProps/core.xml", CORE),
        (
            "word/document.xml",
            "<w:document><w:body><w:p><w:r><w:t>Das ist ein Ahorn</w:t></w:r><w:r><w:t>blatt</w:t></w:r></w:p>\
             <w:p><w:r><w:delText>vanished</w:delText><w:t>unter B&#228;umen</w:t></w:r></w:p></w:body></w:document>",
        ),
        ("word/_rels/document.xml.rels", &relations("/of-docx")),
    ]);
    let xlsx = zipped(&[
        ("[Content_Types].xml", "<Types/>"),
        ("docProps/core.xml", CORE),
        ("xl/workbook.xml", "<workbook><sheets><sheet name='Birken'/></sheets></workbook>"),
        (
            "xl/sharedStrings.xml",
            "<sst><si><t>Birken</t></si><si><t>holz</t></si><si><t>Stamm</t></si></sst>",
        ),
        (
            "xl/worksheets/sheet1.xml",
            "<worksheet><row><c t='s'><v>2</v></c><c><v>4711</v></c></row><row><c t='inlineStr'><is><t>Birkenholz</t></is></c></row></worksheet>",
        ),
        ("xl/worksheets/_rels/sheet1.xml.rels", &relations("/of-xlsx")),
    ]);
    let pptx = zipped(&[
        ("[Content_Types].xml", "<Types/>"),
        ("docProps/core.xml", CORE),
        ("ppt/slides/slide2.xml", "<a:p><a:r><a:t>second</a:t></a:r></a:p>"),
        ("ppt/slides/slide1.xml", "<a:p><a:r><a:t>Das ist Zedernholz</a:t></a:r></a:p>"),
        ("ppt/slides/_rels/slide1.xml.rels", &relations("/of-pptx")),
    ]);
    let meta = "<office:meta><dc:title>Bericht</dc:title><meta:initial-creator>Ada</meta:initial-creator>\
        <meta:creation-date>2024-01-02T03:04:05</meta:creation-date><dc:date>2024-02-03T03:05:06</dc:date>\
        <dc:language>de-AT</dc:language></office:meta>";
    let odt = zipped(&[
        ("mimetype", "application/vnd.oasis.opendocument.text"),
        ("meta.xml", meta),
        (
            "content.xml",
            "<office:body><text:p>Das ist\n <text:span>Doug</text:span>lasie<text:s text:c='2'/>im\
             <text:a xlink:href='/of-odt'> Wald</text:a></text:p></office:body>",
        ),
    ]);
    let epub = zipped(&[
        ("mimetype", "application/epub+zip"),
        ("META-INF/container.xml", "<container><rootfile full-path='O/book.opf'/></container>"),
        (
            "O/book.opf",
            "<package><metadata><dc:title>Bericht</dc:title><dc:creator>Ada</dc:creator><dc:language>de-AT</dc:language>\
             <dc:date>2024-01-02T03:04:05Z</dc:date><meta property='dcterms:modified'>2024-02-03T03:05:06Z</meta></metadata>\
             <manifest><item id='b' href='b%20c.xhtml'/><item id='a' href='a.xhtml'/></manifest>\
             <spine><itemref idref='a'/><itemref idref='b'/></spine></package>",
        ),
        ("O/b c.xhtml", "<html><body><p>second</p></body></html>"),
        (
            "O/a.xhtml",
            "<html><body><p>Das ist Eschenholz</p><a href='http://h.test/of-epub'>x</a></body></html>",
        ),
    ]);
    let mail = b"From: Ada <ada@h.test>\r\nSubject: =?utf-8?Q?Bericht?=\r\nDate: Tue, 2 Jan 2024 03:04:05 +0000\r\n\
        Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\r\n\
        Das ist F\xF6hrenholz aus dem Wald, und wir haben es gestern mit den anderen nach Hause gebracht, weil es dort\r\n\
        trocken liegt und niemand es nass werden l\xE4sst.\r\n--b\r\n\
        Content-Type: image/png\r\nContent-Disposition: attachment; filename=zapfen.png\r\n\r\nx\r\n--b--\r\n";
    let words = "BT /F 12 Tf 9 700 Td [(Das ist Lin) -50 (den) -800 (und Holz)] TJ 0 -14 Td (Fl\\374sse zu Was-) Tj \
        0 -14 Td (serstellen) Tj ET";
    let long = page("BT /F 12 Tf 9 700 Td (Langholz) Tj ET", "", vec![stream("", &"x".repeat(15 << 20))]);
    [
        ("/a.pdf", "application/pdf", page(words, "", Vec::new())),
        ("/a.docx", "application/octet-stream", docx),
        ("/a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", xlsx),
        ("/a.pptx", "application/zip", pptx),
        ("/a.odt", "application/vnd.oasis.opendocument.text", odt),
        ("/a.epub", "application/epub+zip", epub),
        ("/a.eml", "message/rfc822", mail.to_vec()),
        ("/a.doc", "application/msword", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1 words".to_vec()),
        ("/cut.pdf", "application/pdf", b"%PDF-1.7\n1 0 obj".to_vec()),
        ("/long.pdf", "application/pdf", long),
    ]
    .into_iter()
    .map(|(path, media_type, file)| (path.to_owned(), (media_type, file)))
    .collect()
}

fn seeds(pages: &Pages) -> Vec<String> {
    pages.keys().map(|path| format!("http://h.test{path} scope=host depth=1")).collect()
}

/// Words of the documents, and where they are.
const WORDS: [(&str, &str); 11] = [
    ("Linden", "a.pdf"),
    ("Flüsse", "a.pdf"),
    ("Wasserstellen", "a.pdf"),
    ("Ahornblatt", "a.docx"),
    ("Birkenholz", "a.xlsx"),
    ("Zedernholz", "a.pptx"),
    ("Douglasie", "a.odt"),
    ("Eschenholz", "a.epub"),
    ("Föhrenholz", "a.eml"),
    ("zapfen.png", "a.eml"),
    ("Langholz", "long.pdf"),
];

#[test]
fn documents_are_found_by_their_words_and_say_what_they_are() {
    let pages = documents();
    let server = PageServer::start(pages.clone());
    let archive = Archive::new();
    start(&mut archive.crawl(&seeds(&pages), &server.options())).wait().succeeded();
    let find_all = || {
        for (word, path) in WORDS {
            let found = archive.json("search", &[word]);
            let urls: Vec<_> = found.iter().filter_map(|page| page["url"].as_str()).collect();
            assert_eq!(urls, [format!("http://h.test/{path}")], "{word}");
            assert!(found[0].to_string().contains(word), "{}", found[0]);
        }
        assert!(archive.json("search", &["vanished"]).is_empty(), "what was deleted is not the text");
    };
    find_all();

    // Links were followed.
    let asked = server.asked();
    for name in ["pdf", "docx", "xlsx", "pptx", "odt", "epub"] {
        assert!(asked.contains(&format!("/of-{name}")), "{name}: {asked:?}");
    }

    let fields = "page url contains \"/a.\" select url, title, author, published, revised, language";
    let rows: BTreeMap<String, serde_json::Value> = archive
        .json("query", &[fields])
        .into_iter()
        .map(|row| (row["url"].as_str().unwrap().rsplit('.').next().unwrap().to_owned(), row))
        .collect();
    for (name, row) in rows.iter().filter(|(name, _)| *name != "doc") {
        assert_eq!((&row["title"], &row["author"]), (&"Bericht".into(), &"Ada".into()), "{name}: {row}");
        assert!(row["published"].to_string().contains("2024-01-02T03:04:05"), "{name}: {row}");
        let is_dated = row["revised"].to_string().contains("2024-02-03T03:05:06");
        assert!(is_dated || name == "eml", "{name}: {row}");
        assert_eq!(row["language"], "de", "{name}: {row}");
    }
    assert_eq!(rows.len(), 8);

    // What could not be read says so.
    for (path, expected) in [
        ("a.doc", "not read: documents of this format are not read"),
        ("cut.pdf", "not read: the document is damaged"),
    ] {
        let why = archive.json("why", &[format!("http://h.test/{path}")]).remove(0);
        assert_eq!(why["last_fetch"]["problems"][0], expected, "{why}");
    }
    archive.verify();

    // An index made from the records finds the same.
    archive.run::<&str>("rebuild", &[]).succeeded();
    find_all();
}

/// The folder in `/proc` of a process that a program has started.
fn child_of(program: u32) -> Option<PathBuf> {
    let is_child = |process: &PathBuf| {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        // The parent is the second field after the name.
        let parent = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(1)?.parse().ok());
        parent == Some(program)
    };
    fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).find(is_child)
}

/// Waits for the process that reads documents, until it has given up its rights; returns its folder.
fn confined(crawl: &mut Running) -> PathBuf {
    let id = crawl.id();
    let mut reader = None;
    let is_confined = crawl.wait_until(|| {
        reader = child_of(id);
        let status = reader.as_ref().and_then(|reader| fs::read_to_string(reader.join("status")).ok());
        status.is_some_and(|status| status.contains("Seccomp:\t2"))
    });
    assert!(is_confined, "the reader has no filter of system calls");
    reader.unwrap()
}

/// A document that would be read for ever costs its own text: its reader is ended, and the next one reads the others.
#[test]
fn what_a_document_does_to_its_reader_costs_nothing_else() {
    let mut pages = documents();
    pages.retain(|path, _| path == "/a.odt");
    pages.insert("/endless.pdf".to_owned(), ("application/pdf", endless()));
    let server = PageServer::start(pages.clone());
    let archive = Archive::new();
    let mut crawl = start(&mut archive.crawl(&seeds(&pages), &server.options()));

    let reader = confined(&mut crawl);
    let status = fs::read_to_string(reader.join("status")).unwrap();
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    let limits = fs::read_to_string(reader.join("limits")).unwrap();
    let limit =
        |name: &str| limits.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    for (name, most) in [("Max open files", 0), ("Max file size", 0), ("Max processes", 0)] {
        assert_eq!(limit(name), Some(&*most.to_string()), "{limits}");
    }
    assert_eq!(limit("Max data size"), Some("1073741824"), "{limits}");

    crawl.wait().succeeded();
    let why = archive.json("why", &["http://h.test/endless.pdf"]).remove(0);
    let expected = "not read: reading the document takes too much time or memory";
    assert_eq!(why["last_fetch"]["problems"][0], expected, "{why}");
    assert_eq!(archive.json("search", &["Douglasie"]).len(), 1);
    wait_for_end(&reader);
    archive.verify();
}

/// Waits for a process to end, whether or not whoever inherits it has taken leave of it.
fn wait_for_end(process: &Path) {
    let has_ended = || {
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        status.is_empty() || status.contains("State:\tZ") || status.contains("State:\tX")
    };
    while !has_ended() {
        std::thread::yield_now();
    }
}

#[test]
fn a_reader_ends_with_its_crawl() {
    let pages = Pages::from([("/endless.pdf".to_owned(), ("application/pdf", endless()))]);
    let server = PageServer::start(pages.clone());
    let archive = Archive::new();
    let mut crawl = start(&mut archive.crawl(&seeds(&pages), &server.options()));
    let reader = confined(&mut crawl);
    crawl.kill();
    wait_for_end(&reader);
}
