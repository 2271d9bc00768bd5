//! What other tools keep that are no records: mirrors of HTTrack and wget, and pages saved in one file.

use std::fs;
use std::path::{Path, PathBuf};

use archive_storage::{Store, UrlId};
use serde_json::Value;

use crate::support::Archive;
use crate::support::program::start;

/// Imports files of a form; returns the findings and the summary.
fn import(archive: &Archive, form: &str, files: &[PathBuf]) -> (Vec<Value>, Value) {
    let finished = start(archive.command("import").args(["--json", "--as", form]).args(files)).wait();
    assert!(matches!(finished.code, Some(0 | 1)), "{}{}", finished.text(), finished.errors);
    let mut lines = finished.json();
    let summary = lines.pop().unwrap();
    (lines, summary)
}

/// Returns what is stored: type, URL, date and media type of each record, and its content.
fn stored(archive: &Archive) -> Vec<(String, String)> {
    let store = Store::read_only(&archive.path).unwrap();
    let mut all = Vec::new();
    for page in (0..store.state().url_count()).map(UrlId) {
        for capture in store.state().history(page).unwrap() {
            let record = store.record(capture.unwrap().1.location).unwrap();
            let field = |name| record.header.get(name).unwrap_or("-");
            let head =
                ["WARC-Type", "WARC-Target-URI", "WARC-Date", "Content-Type", "WARC-Truncated"].map(field);
            all.push((head.join(" "), String::from_utf8_lossy(&record.content).into_owned()));
        }
    }
    all.sort();
    all
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

/// Returns a ZIP file as HTTrack writes it: what was answered is an extra field of the local heads that has no number.
fn cache(entries: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let number = |number: usize| u16::try_from(number).unwrap().to_le_bytes();
    let long = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (url, said, body) in entries {
        let start = file.len();
        let both = [&[20, 0][..], &[0; 8], &[0; 4], &long(body.len()), &long(body.len()), &number(url.len())]
            .concat();
        file.extend(
            [&b"PK\x03\x04"[..], &both, &number(said.len()), url.as_bytes(), said.as_bytes(), body].concat(),
        );
        let places = [&[0; 12][..], &long(start)].concat();
        directory.extend([&b"PK\x01\x02\0\0"[..], &both, &places, url.as_bytes()].concat());
    }
    let (count, place) = (number(entries.len()), long(file.len()));
    let length = long(directory.len());
    [&file[..], &directory, b"PK\x05\x06\0\0\0\0", &count, &count, &length, &place, &[0, 0]].concat()
}

#[test]
fn mirrors_of_httrack_are_the_answers_that_its_cache_tells_of() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    let said = |status: &str, more: &str| {
        format!("HTTP/1.1 {status}\r\nX-StatusCode: 200\r\nContent-Type: text/html\r\n{more}X-Fil: /\r\n\r\n")
    };
    let page = said(
        "200 OK",
        "X-In-Cache: 1\r\nX-Charset: utf-8\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nX-Save: a.test/index.html\r\n",
    );
    let picture = said("200 OK", "X-In-Cache: 0\r\nX-Size: 3\r\nX-Save: a.test/pic.png\r\n")
        .replace("text/html", "image/png");
    let gone = said("404 Not Found", "X-In-Cache: 0\r\nX-Size: 335\r\n");
    let moved = said("302 Found", "X-In-Cache: 0\r\nLocation: /\r\n");
    let outside = said("200 OK", "X-In-Cache: 0\r\nX-Size: 3\r\nX-Save: ../secret\r\n");
    let zip = cache(&[
        ("http://a.test/", &page, "<title>Received</title>".as_bytes()),
        ("http://a.test/pic.png", &picture, b""),
        ("http://a.test/gone", &gone, b""),
        ("http://a.test/moved", &moved, b""),
        ("http://a.test/outside", &outside, b""),
        ("http://a.test/unknown", "nothing", b""),
    ]);
    write(&mirror, "hts-cache/new.zip", zip);
    write(
        &mirror,
        "hts-cache/doit.log",
        "-O mirror\nFile generated automatically on Mon, 30 Nov 2015 23:59:58, do NOT edit\n",
    );
    let lines = [
        "23:59:59\t1/1\t-\t200\tok\ttext/html\tdate\thttp://a.test/\tx\t(from )",
        "00:00:01\t1/1\t-\t200\tok\timage/png\tdate\thttp://a.test/pic.png\tx\t(from )",
    ];
    write(&mirror, "hts-cache/new.txt", format!("date\tsize\n{}\n", lines.join("\n")));
    write(&mirror, "a.test/index.html", "<title>Rewritten</title>");
    write(&mirror, "a.test/pic.png", "png");
    write(folder.path(), "secret", "not for an archive");

    let archive = Archive::new();
    let (findings, summary) = import(&archive, "httrack", std::slice::from_ref(&mirror));
    assert_eq!(summary["captures"], 5, "{findings:?}");
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0]["file"].as_str().unwrap().ends_with("hts-cache/new.zip/http://a.test/unknown"));
    assert!(findings[0]["what"].as_str().unwrap().contains("does not say what was answered"));
    let http = "application/http; msgtype=response";
    let expected = [
        (
            format!("response http://a.test/ 2015-11-30T23:59:59Z {http} -"),
            "charset=utf-8\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n<title>Received</title>",
        ),
        (
            format!("response http://a.test/gone 2015-11-30T23:59:58Z {http} unspecified"),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n",
        ),
        (format!("response http://a.test/moved 2015-11-30T23:59:58Z {http} -"), "Location: /\r\n\r\n"),
        (format!("response http://a.test/outside 2015-11-30T23:59:58Z {http} unspecified"), "\r\n\r\n"),
        (format!("response http://a.test/pic.png 2015-12-01T00:00:01Z {http} -"), "image/png\r\n\r\npng"),
    ];
    let found = stored(&archive);
    assert_eq!(found.len(), expected.len());
    for ((head, content), (expected, ending)) in found.iter().zip(&expected) {
        assert_eq!(head, expected);
        assert!(content.ends_with(ending), "{head}: {content}");
    }
    let (_, again) = import(&archive, "httrack", &[mirror]);
    assert_eq!((&again["captures"], &again["duplicates"]), (&0.into(), &5.into()));
    assert_eq!(archive.verify(), 5);
    let (findings, _) = import(&archive, "httrack", &[folder.path().to_owned()]);
    assert!(findings[0]["what"].as_str().unwrap().contains("no cache of HTTrack"), "{findings:?}");
}

#[test]
fn paths_of_a_folder_are_urls() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    let page = write(&mirror, "a.test/index.html", "<title>Home</title><p>words");
    write(&mirror, "a.test/list.php?id=3&x= y", "<title>List</title>");
    write(&mirror, "https/b.test:8443/pic.png", "png");
    write(&mirror, "stray.txt", "no host");
    let time = fs::metadata(&page).unwrap().modified().unwrap();
    let date = chrono::DateTime::<chrono::Utc>::from(time).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let archive = Archive::new();
    let (findings, summary) = import(&archive, "folder", &[mirror]);
    assert_eq!(
        (summary["captures"].as_u64(), summary["refused_files"].as_u64()),
        (Some(3), Some(1)),
        "{findings:?}"
    );
    assert!(findings[0]["file"].as_str().unwrap().ends_with("mirror/stray.txt"));
    let found = stored(&archive);
    let kinds: Vec<_> = found.iter().map(|(head, _)| head.split(' ').nth(3).unwrap()).collect();
    assert_eq!(kinds, ["text/html", "text/html", "image/png"]);
    assert_eq!(
        found[0],
        (format!("resource http://a.test/ {date} text/html -"), "<title>Home</title><p>words".to_owned())
    );
    assert!(found[1].0.starts_with("resource http://a.test/list.php?id=3&x=%20y "), "{found:?}");
    assert!(found[2].0.starts_with("resource https://b.test:8443/pic.png "), "{found:?}");
    let titles =
        start(archive.command("query").args(["page title = \"Home\"", "--json"])).wait().succeeded().json();
    assert_eq!(titles.len(), 1);
}

#[test]
fn pages_saved_in_one_file_tell_from_where_and_when() {
    let folder = tempfile::tempdir().unwrap();
    let mhtml = "From: <Saved by Blink>\r\nSnapshot-Content-Location: https://a.test/page\r\nSubject: x\r\n\
        Date: Tue, 2 Jan 2024 10:00:00 +0100\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n\ttype=\"text/html\";\r\n\t\
        boundary=\"----MultipartBoundary--x----\"\r\n\r\n\r\n------MultipartBoundary--x----\r\nContent-Type: text/html\r\n\
        Content-ID: <frame-1@mhtml.blink>\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Location: https://a.test/page\r\n\r\n\
        <title>Caf=C3=A9</title><img src=3D\"https://a.test/p=\r\n.png\">\r\n------MultipartBoundary--x----\r\nContent-Type: image/png\r\n\
        Content-Transfer-Encoding: base64\r\nContent-Location: https://a.test/p.png\r\n\r\ncG5n\r\n------MultipartBoundary--x----\r\n\
        Content-Type: text/css\r\nContent-Location: cid:css-1@mhtml.blink\r\n\r\na{}\r\n------MultipartBoundary--x------\r\n";
    let single = "<!DOCTYPE html> <html lang=en><!--\n Page saved with SingleFile \n url: https://b.test/one \n \
        saved date: Wed Jan 03 2024 10:00:00 GMT+0100 (Central European Standard Time)\n--><title>Single</title>";
    let browser =
        "<!DOCTYPE html>\n<!-- saved from url=(0019)https://c.test/kept -->\n<html><title>Kept</title>";
    let files = [
        ("a.mhtml", mhtml),
        ("b.html", single),
        ("c.html", browser),
        ("d.html", "<title>From nowhere</title>"),
    ];
    let files = files.map(|(name, content)| write(folder.path(), name, content));
    let archive = Archive::new();
    let (findings, summary) = import(&archive, "mhtml", &files);
    assert_eq!(
        (summary["captures"].as_u64(), summary["refused_files"].as_u64()),
        (Some(4), Some(1)),
        "{findings:?}"
    );
    assert!(findings[0]["what"].as_str().unwrap().contains("neither MHTML nor HTML with a comment"));
    let found = stored(&archive);
    let page = "<title>Café</title><img src=\"https://a.test/p.png\">";
    assert_eq!(
        found[..3],
        [
            ("resource https://a.test/p.png 2024-01-02T09:00:00Z image/png -".to_owned(), "png".to_owned()),
            ("resource https://a.test/page 2024-01-02T09:00:00Z text/html -".to_owned(), page.to_owned()),
            ("resource https://b.test/one 2024-01-03T09:00:00Z text/html -".to_owned(), single.to_owned()),
        ]
    );
    assert!(found[3].0.starts_with("resource https://c.test/kept "), "{found:?}");
    assert_eq!(archive.verify(), 4);
}
