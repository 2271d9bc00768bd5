//! Several archives served as one: searches, queries, and redirects to the archive that has a page.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use url::form_urlencoded;

use crate::imports::import;
use crate::nodes::{MORE, is_refused, url};
use crate::support::Archive;
use crate::support::fake_node::{END, Fake, HEAD, fake_silent};
use crate::support::program::start;
use crate::support::served::{Answer, Served, ask};
use crate::support::warc::response;
use crate::together::{QUERIES, SEARCHES, archives, sites};

/// Serves folders and nodes as one front; `folders` is the number of folders.
fn front(places: &[&str], folders: usize, options: &[&str]) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.args(["serve", "--together", "--listen", "127.0.0.1:0", "--replay-listen", "127.0.0.1:0"]);
    for place in places {
        command.args(["--archive", place]);
    }
    command.args(options).env_remove("ARCHIVE_DIR").env("TZ", "UTC");
    Served::spawn(&mut command, 1 + folders)
}

fn get(address: &str, path: &str) -> Answer {
    ask(address, "GET", path, &[])
}

fn address(path: &str, words: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("q", words).finish();
    format!("{path}?{query}&format=json")
}

fn json_of(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    serde_json::from_slice(&answer.body).unwrap()
}

/// Returns the address and path that a redirect leads to.
fn led(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 302, "{}", String::from_utf8_lossy(&answer.body));
    let place = answer.get("location").unwrap().strip_prefix("http://").unwrap();
    let (address, path) = place.split_once('/').unwrap();
    (address.to_owned(), format!("/{path}"))
}

/// Returns the JSON output of a command on several archives.
fn said(name: &str, places: &[&str], arguments: &[&str]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.args([name, "--json"]).env_remove("ARCHIVE_DIR").env("TZ", "UTC");
    for place in places {
        command.args(["--archive", place]);
    }
    start(command.args(arguments)).wait().succeeded().json()
}

#[test]
fn archives_served_as_one_answer_as_one_and_lead_to_the_one_that_has_a_page() {
    let all = sites();
    let [one, four] = [1, 4].map(|count| archives(&all, count));
    let paths: Vec<&str> = four.iter().map(|archive| archive.path.to_str().unwrap()).collect();
    let nodes: Vec<Served> = four[1..].iter().map(Served::of).collect();
    let urls: Vec<String> = nodes.iter().map(url).collect();
    let front = front(&[paths[0], &urls[0], &urls[1], &urls[2]], 1, &[]);
    let at = front.application.as_str();

    let mut found = 0;
    for words in SEARCHES.iter().filter(|words| !words.contains(&"--all")) {
        let page = json_of(&get(at, &address("/search", &words.join(" "))));
        assert!(page.get("missing").is_none());
        let expected = said("search", &paths, &[*words, &["--facets", "--limit", "10"]].concat());
        let hits: Vec<&Value> = expected.iter().filter(|line| line["url"].is_string()).collect();
        let results = page["results"].as_array().unwrap();
        assert_eq!(results.len(), hits.len(), "{words:?}");
        for (result, hit) in results.iter().zip(hits) {
            for field in ["url", "also", "title", "score", "importance", "snippet", "time"] {
                assert_eq!(result[field], hit[field], "{words:?}, {field}");
            }
            found += 1;
        }
        for (facet, line) in page["facets"]
            .as_array()
            .unwrap()
            .iter()
            .zip(expected.iter().filter(|line| line["facet"].is_string()))
        {
            assert_eq!((&facet[0], &facet[1]), (&line["facet"], &line["counts"]), "{words:?}");
        }
    }
    let (first, second) = (address("/search", "archive"), address("/search", "archive") + "&from=10");
    let urls_of = |path: &str| {
        let results = json_of(&get(at, path))["results"].as_array().unwrap().clone();
        results.into_iter().map(|hit| hit["url"].clone()).collect::<Vec<_>>()
    };
    let expected = said("search", &paths, &["archive", "--limit", "20"]);
    let expected: Vec<Value> = expected.into_iter().take(20).map(|hit| hit["url"].clone()).collect();
    assert_eq!([urls_of(&first), urls_of(&second)].concat(), expected, "pages of results follow one another");

    for text in QUERIES.iter().chain(&MORE).filter(|text| !is_refused(text)) {
        let expected = said("query", &[one[0].path.to_str().unwrap()], &[text]);
        let answer = get(at, &address("/query", text));
        assert_eq!(answer.get("archive-missing"), None);
        let rows = json_of(&answer).as_array().unwrap().clone();
        let count = expected.len().min(100);
        found += count;
        assert_eq!(rows[..count], expected[..count], "{text}");
    }
    println!("{found} results and rows are equal");

    let list = json_of(&get(at, "/?format=json"));
    assert_eq!(list["archives"].as_array().unwrap().len(), 4);
    assert_eq!(list["archives"][0]["application"], format!("http://{}", front.further[0].0));
    for path in ["/", "/search?q=archive", "/query?q=count+pages"] {
        let page = String::from_utf8(get(at, path).body).unwrap();
        assert!(!page.contains("/settings") && !page.contains("missing"), "{path}: {page}");
    }
    for site in 0..8_usize {
        let (application, replay) = match site % 4 {
            0 => front.further[0].clone(),
            node => (nodes[node - 1].application.clone(), nodes[node - 1].replay.clone()),
        };
        let page = format!("http://s{site}.test/3");
        for path in [format!("/page?url={page}"), format!("/site?name=s{site}.test&lang=fr")] {
            let led = led(&get(at, &path));
            assert_eq!(led, (application.clone(), path));
            assert_eq!(get(&led.0, &led.1).status, 200);
        }
        for path in [
            format!("/web/2026/{page}"),
            format!("/web/{page}"),
            format!("/timegate/{page}"),
            format!("/timemap/link/{page}"),
            format!("/timemap/json/1/{page}"),
            format!("/cdx?url=*.s{site}.test&output=text&fl=urlkey,timestamp,original,digest,status"),
        ] {
            let led = led(&get(&front.replay, &path));
            assert_eq!(led, (replay.clone(), path.clone()));
            let answer = get(&led.0, &led.1);
            assert!(matches!(answer.status, 200 | 302), "{path}: {}", answer.status);
            if path.starts_with("/cdx") {
                let whole = Served::of(&one[0]);
                assert_eq!(answer.body, get(&whole.replay, &path).body);
                assert_eq!(answer.body.split(|byte| *byte == b'\n').count(), 41, "{path}");
            }
        }
    }

    // Answers on several sites are merged from all archives.
    let whole = Served::of(&one[0]);
    for query in [
        "url=test&matchType=domain",
        "url=*.test&output=json&fl=urlkey,timestamp,original,digest,status",
        "url=*.test&output=text&fl=urlkey,timestamp,url,mime&sort=reverse&limit=50",
        "url=*.test&output=text&fl=urlkey,timestamp&closest=20260101000000&limit=30",
        "url=*.test&output=text&fl=urlkey&filter=mime:html&collapse=urlkey:7",
        "url=*.test&output=text&fl=urlkey,status&page=2&pageSize=70",
        "url=*.test&showNumPages=true&pageSize=70",
        "url=*.nowhere",
    ] {
        // Positions of records differ between archives.
        let query = if query.contains("fl=") || query.contains("Num") {
            query.to_owned()
        } else {
            format!("{query}&fl=url")
        };
        let (merged, alone) =
            [&front.replay, &whole.replay].map(|at| get(at, &format!("/cdx?{query}"))).into();
        assert_eq!(merged.status, 200, "{query}");
        assert_eq!(String::from_utf8_lossy(&merged.body), String::from_utf8_lossy(&alone.body), "{query}");
        assert_eq!(merged.get("content-type"), alone.get("content-type"), "{query}");
        assert_eq!(merged.body.is_empty(), query.contains("nowhere"), "{query}");
    }

    // Only the named archives are contacted or redirected to.
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    stranger.set_nonblocking(true).unwrap();
    let there = format!("http://{}/", stranger.local_addr().unwrap());
    for (path, status) in [
        (format!("/page?url={there}"), 404),
        ("/site?name=nowhere.test".to_owned(), 404),
        ("/site?name=".to_owned(), 400),
        ("/wacz?query=page".to_owned(), 400),
    ] {
        assert_eq!(get(at, &path).status, status, "{path}");
    }
    for path in [format!("/web/2026/{there}"), "/warc/1".to_owned(), "/".to_owned(), "//s1.test/3".to_owned()]
    {
        assert_eq!(get(&front.replay, &path).status, 404, "{path}");
    }
    assert!(stranger.accept().is_err(), "nobody has asked");
    assert_eq!(get(&front.replay, "/cdx?url=s1.test&limit=x").status, 400);
    assert_eq!(get(at, "/page?url=http://").status, 400);
    assert_eq!(get(at, &address("/query", "page stat = 2")).status, 400);
    assert_eq!(get(at, &address("/search", "\"")).status, 400);
    for path in ["/runs", "/settings", "/metrics", "/runs/current"] {
        assert_eq!(get(at, path).status, 404, "{path}");
    }
    let answer = ask(at, "POST", "/ask", &["Content-Type: application/json", "Content-Length: 0"]);
    assert_eq!(answer.status, 405, "a front is no node");
}

#[test]
fn searches_of_several_archives_have_the_times_of_all() {
    let with = |site: &str, years: &[u32], options: &[&str]| {
        let archive = Archive::new();
        let records = years.iter().map(|year| {
            let (id, date) = (format!("urn:test:{site}-{year}"), format!("{year}-03-15T12:00:00Z"));
            response(
                &id,
                &format!("http://{site}.test/"),
                &date,
                &format!("<p>{site} in {year}, quarterpast"),
            )
        });
        let file = archive.file("a.warc", records.collect::<Vec<_>>().concat());
        start(archive.command("import").args(options).arg(file)).wait().succeeded();
        archive
    };
    let (one, two) = (
        with("one", &[2001, 2003], &["--index-versions"]),
        with("two", &[2003, 2005], &["--index-versions"]),
    );
    let (folder, node) = (one.path.to_str().unwrap(), Served::of(&two));
    let searched = |front: &Served, as_of: &str| {
        let path = address("/search", "quarterpast") + &format!("&as-of={as_of}");
        let page = json_of(&get(&front.application, &path));
        (page["times"].clone(), page["results"].as_array().unwrap().len())
    };
    let both = front(&[folder, &url(&node)], 1, &[]);
    let times = |counts: [(&str, u32); 3]| {
        Value::from(counts.map(|(month, count)| json!({ "as_of": month, "captures": count })).to_vec())
    };
    let all = times([("2001-03", 1), ("2003-03", 2), ("2005-03", 1)]);
    for (as_of, found) in [("", 2), ("2003-03", 2), ("2001-03", 1), ("1999", 0)] {
        assert_eq!(searched(&both, as_of), (all.clone(), found), "{as_of}");
    }
    let page = String::from_utf8(get(&both.application, "/search?q=quarterpast&as-of=2003-03").body).unwrap();
    assert!(page.contains("id=\"slider\"") && page.contains("as-of=2001-03"), "{page}");
    assert_eq!(get(&both.application, "/search.js").status, 200);
    // Together with an archive that has only the newest versions, there are no times.
    let three = with("three", &[2004], &[]);
    let some = front(&[folder, three.path.to_str().unwrap()], 2, &[]);
    assert_eq!(searched(&some, ""), (Value::Null, 2));

    // The same holds for a node whose times make no sense.
    let line = "{\"end\":{\"captures\":1,\"times\":[1,2]}}\n";
    let fake = Fake::new(vec![("\"sites\"", format!("{HEAD}{line}").into_bytes())]);
    let senseless = front(&[folder, &fake.url()], 1, &[]);
    let page = json_of(&get(&senseless.application, &address("/search", "quarterpast")));
    assert!(page["missing"][0]["why"].as_str().unwrap().contains("more times"), "{page}");
}

#[test]
fn archives_served_as_one_name_those_that_are_missing() {
    let two = archives(&sites(), 2);
    let mut node = Served::of(&two[1]);
    let (there, silent) = (url(&node), fake_silent());
    let folder = two[0].path.to_str().unwrap();
    let front = front(&[folder, &there, &silent.url()], 1, &["--wait", "6s"]);
    let count = |path: &str| {
        let answer = get(&front.application, path);
        (json_of(&answer), answer.get("archive-missing").map(str::to_owned))
    };
    let text = address("/query", "count pages attempts > 0");
    let (rows, missing) = count(&text);
    assert_eq!((&rows[0]["count"], missing), (&320.into(), Some(silent.url())));
    // The next request does not wait for it again: it does not ask it.
    let asked = silent.asked();
    assert_eq!(count(&text).0, rows);
    assert_eq!(silent.asked(), asked);

    node.stop();
    let (rows, _) = count(&text);
    assert_eq!(rows[0]["count"], 160);
    let page = json_of(&get(&front.application, &address("/search", "archive")));
    let named: Vec<&str> =
        page["missing"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(named.contains(&there.as_str()) && named.contains(&silent.url().as_str()), "{page}");
    let page = String::from_utf8(get(&front.application, "/search?q=archive").body).unwrap();
    assert!(page.contains("is missing from this answer") && page.contains(&there), "{page}");
    assert_eq!(get(&front.application, "/page?url=http://s0.test/3").status, 302);
    assert_eq!(get(&front.application, "/page?url=http://s1.test/3").status, 503, "it may be there");
    assert_eq!(get(&front.replay, "/web/2026/http://s1.test/3").status, 503);
}

#[test]
fn nobody_answers_for_archives_of_which_none_does() {
    let front = front(&["http://127.0.0.1:1/"], 0, &[]);
    for path in
        ["/query?q=count+pages&format=json", "/search?q=archive&format=json", "/page?url=http://s1.test/"]
    {
        let answer = get(&front.application, path);
        assert_eq!(answer.status, 503, "{path}");
        assert!(String::from_utf8_lossy(&answer.body).contains("none of these archives can be read"));
    }
    assert_eq!(get(&front.application, "/health").status, 200);
}

#[test]
fn whoever_comes_in_sees_what_folders_show_to_them_and_nodes_to_the_account_of_the_server() {
    let day = "2026-01-02T03:04:05Z";
    let with = |name: &str| {
        let archive = Archive::new();
        let pages = [format!("http://open.{name}.test/"), format!("http://closed.{name}.test/")];
        let records: Vec<Vec<u8>> = pages.iter().map(|url| response(url, url, day, "<p>words")).collect();
        import(&archive, &[("sites.warc", records.concat())]);
        let rule = format!("[[rule]]\nprefix = \"test,{name},closed\"\nshown_to = \"reviewer\"\n");
        fs::write(archive.path.join("access.toml"), rule).unwrap();
        archive
    };
    let (one, two) = (with("one"), with("two"));
    let node = Served::of(&two);
    let people = one.folder().join("people");
    for (name, role) in [("rita", "reader"), ("anna", "reviewer")] {
        let typed = one.file("typed", format!("the password of {name}\n"));
        let mut program = Command::new(env!("CARGO_BIN_EXE_archive"));
        program.args(["account", "set", name, "--role", role, "--file"]).arg(&people);
        assert!(
            program.stdin(Stdio::from(fs::File::open(typed).unwrap())).output().unwrap().status.success()
        );
    }
    let people = people.to_str().unwrap();
    let front = front(&[one.path.to_str().unwrap(), &url(&node)], 1, &["--password-file", people]);
    let path = address("/query", "count pages captures > 0");
    assert_eq!(get(&front.application, &path).status, 401);
    assert_eq!(get(&front.replay, "/web/2026/http://open.one.test/").status, 401);
    for (name, count) in [("rita", 2), ("anna", 3)] {
        let basic = base64(&format!("{name}:the password of {name}"));
        let answer = ask(&front.application, "GET", &path, &[&format!("Authorization: Basic {basic}")]);
        assert_eq!(json_of(&answer)[0]["count"], count, "{name}");
    }
    let mut alone = Command::new(env!("CARGO_BIN_EXE_archive"));
    alone.args(["serve", "--together", "--archive", &url(&node), "--password-file", people]);
    start(alone.env_remove("ARCHIVE_DIR")).wait().refused(1, &["--audit-log"]);
    let mut apart = Command::new(env!("CARGO_BIN_EXE_archive"));
    apart.args(["serve", "--archive", &url(&node)]);
    start(apart.env_remove("ARCHIVE_DIR")).wait().refused(2, &["--together"]);
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::prelude::BASE64_STANDARD.encode(text)
}

#[test]
fn a_node_leads_nowhere_but_to_an_origin() {
    let says = |origins: &str| {
        let head = HEAD.replace("null}", &format!("null,\"origins\":{origins}}}"));
        let end = END;
        Fake::new(vec![("\"sites\"", format!("{head}{{\"row\":[\"fake.test\",true]}}\n{end}").into_bytes())])
    };
    let page = |node: &Fake| {
        let front = front(&[&node.url()], 0, &[]);
        get(&front.application, "/page?url=http://fake.test/%0d%0aX:1")
    };
    let honest = says("[\"https://a.test\",\"https://b.test\"]");
    let place = page(&honest).get("location").unwrap().to_owned();
    assert_eq!(place, "https://a.test/page?url=http://fake.test/%0d%0aX:1");
    for wrong in [
        "[\"javascript:alert(1)\",\"https://b.test\"]",
        "[\"https://a.test/x\",\"https://b.test\"]",
        "[\"https://a.test\"]",
    ] {
        let answer = page(&says(wrong));
        assert_eq!(answer.status, 503, "{wrong}");
        assert!(String::from_utf8_lossy(&answer.body).contains("is invalid"));
    }
    assert_eq!(page(&says("null")).status, 404, "it says no address");
}
