//! Memento and CDX requests of programs to the replay.

use std::collections::BTreeMap;
use std::fs;

use crate::exchange::{foreign, pair};
use crate::support::program::start;
use crate::support::replay::{BASE, DAYS, Replay, STAMPS, URL, text, versions};
use crate::support::warc::response;
use crate::support::{Archive, judges};

#[test]
fn memento_as_the_standard_has_it() {
    let replay = versions();
    let gate = format!("/timegate/{URL}");
    for (date, place) in [
        ("Fri, 03 Jan 2014 03:03:21 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Mon, 01 Feb 2016 00:00:00 GMT", 1),
        ("Fri, 31 Dec 2099 23:59:59 GMT", 2),
    ] {
        for path in [gate.clone(), format!("/web/{URL}")] {
            let answer = replay.at(&path, date);
            assert_eq!((answer.status, answer.get("Vary")), (302, Some("accept-datetime")));
            assert_eq!(answer.get("Location"), Some(&*format!("{BASE}/web/{}/{URL}", STAMPS[place])));
            assert_eq!(answer.get("Memento-Datetime"), None);
        }
    }
    let now = replay.get(&gate);
    assert_eq!((now.status, now.get("Vary")), (302, Some("accept-datetime")));
    assert!(now.get("Location").unwrap().contains(STAMPS[2]));
    for wrong in ["2014-01-03", "yesterday", ""] {
        assert_eq!(replay.at(&gate, wrong).status, 400, "{wrong}");
    }
    assert_eq!(replay.get("/timegate/http://none.org/").status, 404);
    let shown = replay.get(&format!("/web/{}/{URL}", STAMPS[1]));
    assert_eq!(shown.get("Vary"), None);
    assert_eq!(shown.get("Memento-Datetime"), Some("Wed, 03 Feb 2016 04:05:06 GMT"));
    let link = shown.get("Link").unwrap();
    for part in [
        format!("<{URL}>; rel=\"original\""),
        format!("<{BASE}{gate}>; rel=\"timegate\""),
        format!("<{BASE}/timemap/link/{URL}>; rel=\"timemap\"; type=\"application/link-format\""),
        format!(
            "<{BASE}/web/{}/{URL}>; rel=\"first prev memento\"; datetime=\"Fri, 03 Jan 2014 03:03:21 GMT\"",
            STAMPS[0]
        ),
        format!(
            "<{BASE}/web/{}/{URL}>; rel=\"memento\"; datetime=\"Wed, 03 Feb 2016 04:05:06 GMT\"",
            STAMPS[1]
        ),
        format!(
            "<{BASE}/web/{}/{URL}>; rel=\"next last memento\"; datetime=\"Sun, 04 Mar 2018 05:06:07 GMT\"",
            STAMPS[2]
        ),
    ] {
        assert!(link.contains(&part), "{part}\nis not in\n{link}");
    }
    let map = replay.get(&format!("/timemap/link/{URL}"));
    assert_eq!(map.get("Content-Type"), Some("application/link-format"));
    assert_eq!(text(&map).matches("memento\"; datetime=").count(), 3);
    let json: serde_json::Value =
        serde_json::from_slice(&replay.get(&format!("/timemap/json/{URL}")).body).unwrap();
    assert_eq!(json["mementos"]["list"].as_array().unwrap().len(), 3);
    assert_eq!(json["mementos"]["last"]["datetime"], "2018-03-04T05:06:07Z");
    let cdxj = replay.text(&format!("/timemap/cdxj/{URL}"));
    assert_eq!(cdxj.lines().filter(|line| !line.starts_with('!')).count(), 3);
    assert_eq!(replay.get(&format!("/timemap/link/2/{URL}")).status, 404);
}

#[test]
fn cdx_orders_filters_and_pages() {
    let replay = versions();
    let stamps =
        |query: &str| -> Vec<String> { replay.lines(&format!("url={URL}&output=text&fl=timestamp{query}")) };
    assert_eq!(stamps(""), STAMPS);
    assert_eq!(stamps("&sort=reverse&limit=1"), [STAMPS[2]]);
    assert_eq!(stamps("&closest=2016"), [STAMPS[1], STAMPS[2], STAMPS[0]]);
    assert_eq!(stamps("&from=2015&to=2016"), [STAMPS[1]]);
    assert_eq!(stamps("&filter=!timestamp:2016"), [STAMPS[0], STAMPS[2]]);
    assert_eq!(stamps("&filter=~timestamp:201[46]"), [STAMPS[0], STAMPS[1]]);
    assert_eq!(stamps("&filter=%3Dstatuscode:404"), [""; 0]);
    assert_eq!(stamps("&collapse=timestamp:3"), [STAMPS[0]]);
    assert_eq!(stamps("&pageSize=2&page=1"), [STAMPS[2]]);
    let pages: serde_json::Value =
        serde_json::from_str(&replay.text(&format!("/cdx?url={URL}&showNumPages=true&pageSize=2"))).unwrap();
    assert_eq!(pages["pages"], 2);
    for query in ["limit=1".to_owned(), format!("url={URL}&from=soon"), format!("url={URL}&to=-")] {
        assert_eq!(replay.get(&format!("/cdx?{query}")).status, 400, "{query}");
    }
}

/// Compares fifty queries with pywb's answers over the same captures.
#[test]
fn cdx_answers_as_pywb_does() {
    let Some(judges) = judges::find() else { return };
    let Some(data) = foreign() else { return };
    let archive = Archive::new();
    start(archive.command("import").args(pair(&data))).wait().succeeded();
    let collections = archive.folder().join("pywb");
    fs::create_dir(&collections).unwrap();
    let mut command = judges.program("wb-manager");
    judges::succeed(command.current_dir(&collections).args(["init", "archive"]), "");
    // Indexers differ in the spelling of digests and in whether a revisit has a status, so pywb uses our index.
    let index = collections.join("collections/archive/indexes/index.cdxj");
    start(archive.command("export").args(["cdxj", "--output"]).arg(&index)).wait().succeeded();
    let replay = Replay { archive };
    let urls = replay.lines("url=uk&matchType=domain&output=text&fl=url&collapse=urlkey");
    assert!(urls.len() > 40, "{urls:?}");
    let fields = "fl=urlkey,timestamp,url,mime,status,digest,length,offset,filename";
    let mut queries: Vec<String> = urls
        .iter()
        .step_by(urls.len() / 20)
        .take(20)
        .map(|url| format!("url={url}&output=text&{fields}"))
        .collect();
    let home = urls.iter().min_by_key(|url| url.len()).unwrap();
    let host = home.split('/').nth(2).unwrap();
    for more in [
        "matchType=host",
        "matchType=domain",
        "matchType=prefix",
        "matchType=host&limit=7",
        "matchType=host&sort=reverse",
        "matchType=host&sort=reverse&limit=3",
        "matchType=host&filter=mime:text",
        "matchType=host&filter=!mime:text",
        "matchType=host&filter=%3Dstatus:200",
        "matchType=host&filter=!%3Dstatus:200",
        "matchType=host&filter=~status:[34]",
        "matchType=host&filter=~url:http://.*png",
        "matchType=host&filter=mimetype:revisit",
        "matchType=host&filter=statuscode:200",
        "matchType=host&filter=status:200&filter=mime:html",
        "matchType=host&from=20140325122",
        "matchType=host&to=20140325122",
        "matchType=host&from=2015",
        "matchType=host&from=2014&to=2014",
        "matchType=host&collapseTime=10",
        "matchType=host&collapseTime=14&limit=9",
        "matchType=exact",
        "closest=20140325123000",
        "closest=2013",
        "sort=reverse",
        "limit=1",
        "matchType=host&filter=digest:A",
        "matchType=host&filter=urlkey:css",
        "matchType=host&filter=nothing:x&allowFuzzy=0",
        "matchType=host&filter=!nothing:x",
    ] {
        queries.push(format!("url={home}&{more}&output=text&{fields}"));
    }
    queries.push(format!("url=*.{host}&output=json"));
    queries.push(format!("url={home}*&output=cdxj"));
    queries.push(format!("url={home}&matchType=host&output=cdxj&fl=timestamp,url,urlkey"));
    queries.push("url=http://nowhere.example/&output=cdxj&allowFuzzy=0".to_owned());
    assert!(queries.len() >= 50);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/cdx.py");
    let output = judges::succeed(judges.program("python").arg(script).arg(&collections), &queries.join("\n"));
    let mut different = BTreeMap::new();
    for (query, line) in queries.iter().zip(output.lines()) {
        let (status, theirs): (u16, String) = serde_json::from_str(line).unwrap();
        assert!(matches!(status, 200 | 404), "{query}: {status}");
        let ours = replay.text(&format!("/cdx?{query}"));
        // pywb adds the index of a line, and that it may be shown.
        let of_its_own =
            r#", "source": "archive/indexes/index.cdxj", "source-coll": "archive", "access": "allow""#;
        let theirs = theirs.replace(of_its_own, "");
        if ours != theirs {
            different.insert(query, (ours, theirs));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

/// Programs escape URLs differently from the linking page: MemGator not at all, Python's requests more, at any
/// endpoint.
#[test]
fn a_url_is_found_however_it_is_escaped() {
    let stored = "http://a.org/b%3Ac/%28d%29?e=%7Cf%2Cg&h[0]=i";
    let replay = Replay::of(&[
        response("urn:uuid:1", stored, DAYS[0], "<p>one"),
        response("urn:uuid:2", "http://a.org/other", DAYS[1], "<p>two"),
    ]);
    let exact = format!("/web/{}/{stored}", STAMPS[0]);
    for spelled in [
        "http://a.org/b:c/%28d%29?e=|f,g&h[0]=i",
        "https://www.a.org/b:c/%28d%29?e=%7cf%2cg&h%5B0%5D=i",
        "http://a.org/b%3Ac/%28d%29?e=%7Cf%2Cg&h%5B0%5D=i",
    ] {
        let map = replay.text(&format!("/timemap/link/{spelled}"));
        assert!(map.contains(&format!("{exact}>; rel=\"first last memento\"")), "{map}");
        let gate = replay.at(&format!("/timegate/{spelled}"), "Fri, 03 Jan 2014 03:03:21 GMT");
        assert_eq!(gate.get("Location").unwrap(), format!("{BASE}{exact}"));
        assert_eq!(replay.leads(&format!("/web/2015/{spelled}")), exact);
        // Escaping it again in transit leads to the same capture.
        let sent = exact.replace(stored, &spelled.replace("https://www.", "http://"));
        assert_eq!(replay.get(&sent).status, 200, "{sent}");
    }
    assert_eq!(replay.get("/timemap/link/http://a.org/b:c/(d)?e=|f").status, 404);
    // URLs that programs composed, requested without any of their escapes.
    for (stored, asked) in [
        (
            "http://b.org/css2?family=A%3Awght%40300%3B400&display=swap",
            "http://b.org/css2?family=A:wght@300;400&display=swap",
        ),
        ("http://b.org/x?to=https%3A%2F%2Fc.org%2Fd%3De&f", "http://b.org/x?to=https://c.org/d=e&f"),
        ("http://b.org/g-%2811%29.jpg?i=j", "http://b.org/g-(11).jpg?i=j"),
    ] {
        let replay = Replay::of(&[response("urn:uuid:1", stored, DAYS[0], "<p>one")]);
        let map = replay.text(&format!("/timemap/link/{asked}"));
        assert!(map.contains(&format!("/web/{}/{stored}>; rel=\"first last memento\"", STAMPS[0])), "{map}");
    }
}
