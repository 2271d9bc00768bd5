//! Exports are complete and readable by third-party tools.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use archive_storage::{CaptureKind, Digest, Store};
use chrono::DateTime;
use serde_json::Value;

use crate::exchange::{foreign, pair};
use crate::support::judges::{self, Judges};
use crate::support::program::start;
use crate::support::{Archive, captures};

/// The columns of Common Crawl's index (cc-index-table), including the two that are folders there.
const COLUMNS: &str = "url_surtkey url url_host_name url_host_tld url_host_2nd_last_part url_host_3rd_last_part \
    url_host_4th_last_part url_host_5th_last_part url_host_registry_suffix url_host_registered_domain \
    url_host_private_suffix url_host_private_domain url_host_name_reversed url_protocol url_port url_path url_query \
    fetch_time fetch_status fetch_redirect content_digest content_mime_type content_mime_detected content_charset \
    content_languages content_truncated warc_filename warc_record_offset warc_record_length warc_segment crawl subset \
    revisit title importance site_importance rating";

/// Returns an archive of two crawls of data.gov.uk, the second with 55 revisits of the first.
fn imported(data: &Path, codec: &str) -> Archive {
    let archive = Archive::new();
    let import = start(archive.command("import").args(["--codec", codec]).args(pair(data))).wait();
    import.succeeded();
    archive
}

/// Exports into the folder around the archive; returns the path and the summary.
fn export(archive: &Archive, format: &str, name: &str, more: &[&str]) -> (PathBuf, Value) {
    let path = archive.folder().join(name);
    let mut command = archive.command("export");
    command.args(["--json", format, "--output"]).arg(&path).args(more);
    let summary = start(&mut command).wait().succeeded().json().pop().unwrap();
    assert!(!path.with_file_name(format!("{name}.part")).exists());
    (path, summary)
}

/// Returns URL, time, status, kind and digest of every capture, and whether its original exists.
fn content(archive: &Archive) -> BTreeSet<(String, i64, u16, u8, [u8; 16], bool)> {
    let captured = captures(&archive.path);
    let rows = captured.0.into_iter().flat_map(|(url, captures)| {
        captures.into_iter().map(move |capture| {
            let has_original = capture.original.is_some();
            (url.clone(), capture.time, capture.status, capture.kind as u8, capture.digest, has_original)
        })
    });
    rows.collect()
}

/// Replays every revisit of an archive with pywb from exported files.
fn replays(judges: &Judges, archive: &Archive, name: &str, files: &[&OsStr]) {
    let store = Store::read_only(&archive.path).unwrap();
    let all = captures(&archive.path).0;
    let all = all.iter().flat_map(|(url, captures)| captures.iter().map(move |capture| (url, capture)));
    let revisits: Vec<_> = all
        .filter(|(_, capture)| capture.kind == CaptureKind::Identical)
        .map(|(url, capture)| {
            let payload = store.payload(capture).unwrap().unwrap();
            (url.clone(), DateTime::from_timestamp_micros(capture.time).unwrap(), Digest::sha256(&payload))
        })
        .collect();
    assert_eq!(revisits.len(), 55);
    judges.replay(&archive.folder().join(name), files, &revisits);
}

#[test]
fn records_go_out_and_come_back_as_they_were() {
    let Some(data) = foreign() else { return };
    let archive = imported(&data, "zstd");
    let expected = content(&archive);
    assert_eq!(expected.len(), 130);
    for (format, name) in
        [("warc", "all.warc.gz"), ("warc", "all.warc.zst"), ("warc", "all.warc"), ("wacz", "all.wacz")]
    {
        let (path, summary) = export(&archive, format, name, &[]);
        assert_eq!(summary["rows"], 130, "{name}: {summary}");
        assert_eq!(summary["bytes"], fs::metadata(&path).unwrap().len());
        let again = Archive::new();
        start(again.command("import").arg(&path)).wait().succeeded();
        assert_eq!(content(&again), expected, "{name}");
        assert_eq!(again.verify(), 130);
    }
    let (packed, _) = export(&archive, "warc", "packed", &["--gzip"]);
    assert_eq!(fs::read(packed).unwrap()[..2], [0x1f, 0x8b]);
}

#[test]
fn other_tools_read_and_replay_what_is_exported() {
    let (Some(data), Some(judges)) = (foreign(), judges::find()) else { return };
    let archive = imported(&data, "zstd");
    let folder = archive.folder().join("out");
    fs::create_dir(&folder).unwrap();
    let (warc, _) = export(&archive, "warc", "out/all.warc.gz", &[]);
    let records = judges.check(&folder);
    assert_eq!(records.warcio, records.fastwarc);
    assert_eq!((records.fastwarc["response"], records.fastwarc["revisit"]), (75, 55));
    replays(&judges, &archive, "of-warc", &[warc.as_os_str()]);

    let folder = archive.folder().join("small");
    fs::create_dir(&folder).unwrap();
    let (small, _) = export(&archive, "warc", "small/all.warc.zst", &["--level", "19"]);
    let bytes = fs::read(&small).unwrap();
    assert_eq!(bytes[..4], [0x5d, 0x2a, 0x4d, 0x18], "it begins with a dictionary");
    assert!((bytes.len() as u64) < fs::metadata(&warc).unwrap().len());
    assert_eq!(judges.check(&folder).fastwarc, records.fastwarc);

    let (wacz, summary) = export(&archive, "wacz", "all.wacz", &[]);
    assert_eq!(summary["rows"], 130);
    let mut command = judges.program("wacz");
    let output = judges::succeed(command.args(["validate", "-f"]).arg(&wacz), "");
    assert!(output.contains("Valid"), "{output}");
    replays(&judges, &archive, "of-wacz", &["--unpack-wacz".as_ref(), wacz.as_os_str()]);
}

#[test]
fn an_index_is_sorted_and_leads_to_every_record() {
    let Some(data) = foreign() else { return };
    let archive = imported(&data, "gzip");
    let (path, summary) = export(&archive, "cdxj", "all.cdxj", &[]);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), &summary["rows"]), (130, &130.into()));
    assert!(lines.is_sorted());
    assert!(lines[0].starts_with("com,"), "{}", lines[0]);
    for line in &lines {
        let fields: Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
        let number = |name: &str| fields[name].as_str().unwrap().parse::<usize>().unwrap();
        let file = fs::read(archive.segments().join(fields["filename"].as_str().unwrap())).unwrap();
        let record = &file[number("offset")..number("offset") + number("length")];
        let record = archive_storage::warc::RecordReader::new(record).next().unwrap().unwrap();
        assert_eq!(record.header.target_uri(), fields["url"].as_str());
    }
    let (packed, _) = export(&archive, "cdxj", "all.cdxj.gz", &[]);
    let mut unpacked = String::new();
    let mut reader = flate2::read::GzDecoder::new(fs::File::open(packed).unwrap());
    std::io::Read::read_to_string(&mut reader, &mut unpacked).unwrap();
    assert_eq!(unpacked, text);
}

#[test]
fn a_query_takes_the_originals_of_its_revisits_with_it() {
    let Some(data) = foreign() else { return };
    let archive = Archive::new();
    let files = [
        "webrecorder__warcio/example.warc.gz",
        "ukwa__webarchive-discovery/BL-20140325121225068-00000-32090~opera~8443.warc.gz",
    ]
    .map(|file| data.join(file));
    start(archive.command("import").args(files)).wait().succeeded();
    let where_ = ["--where", "host = \"example.com\""];
    let (path, summary) = export(&archive, "warc", "some.warc.gz", &where_);
    assert_eq!(summary["rows"], 2, "a response and its revisit");
    let again = Archive::new();
    start(again.command("import").arg(&path)).wait().succeeded();
    assert_eq!(
        content(&again),
        content(&archive).into_iter().filter(|row| row.0.contains("example.com")).collect()
    );
    assert!(content(&again).iter().any(|row| row.5), "the revisit has its original");
    let (_, summary) = export(&archive, "cdxj", "some.cdxj", &where_);
    assert_eq!(summary["rows"], 2);
    let (path, _) = export(&archive, "links", "some.tsv", &where_);
    let links = fs::read_to_string(path).unwrap();
    let mut lines = links.lines();
    assert_eq!(lines.next(), Some("source\ttarget\tkind"));
    assert!(
        lines.clone().count() > 0 && lines.all(|line| line.starts_with("http://example.com/\thttp")),
        "{links}"
    );

    let bad = start(archive.command("export").args(["warc", "--output", "/nowhere/x.warc"])).wait();
    bad.refused(1, &["/nowhere/x.warc", "No such file"]);
    let bad = start(archive.command("export").args(["warc", "--output", "x", "--where", "host = "])).wait();
    bad.refused(2, &["in the query"]);
}

#[test]
fn duckdb_reads_the_columns_of_common_crawl() {
    let (Some(data), Some(judges)) = (foreign(), judges::find()) else { return };
    let archive = imported(&data, "gzip");
    archive.run("review set", &["data.gov.uk", "--rating", "4", "--by", "anna"]).succeeded();
    let (path, summary) = export(&archive, "parquet", "index.parquet", &[]);
    assert_eq!(summary["rows"], 130);
    let script = "import duckdb, json, sys
rows = lambda text: [list(map(str, row)) for row in duckdb.sql(text.replace('INDEX', repr(sys.argv[1]))).fetchall()]
print(json.dumps({
    'columns': [row[0] for row in rows('describe select * from INDEX')],
    'types': [row[1] for row in rows('describe select * from INDEX')],
    'home': rows(\"select url_surtkey, url_host_registry_suffix, url_host_registered_domain, fetch_time, fetch_status, \\
        content_mime_type, warc_filename, warc_record_offset, warc_record_length from INDEX \\
        where url = 'http://data.gov.uk/' order by fetch_time\"),
    'ours': rows(\"select title, importance > 0, site_importance > 0, rating, revisit from INDEX \\
        where url = 'http://data.gov.uk/' order by fetch_time\"),
    'subsets': rows('select subset, count(*) from INDEX group by subset order by subset'),
}))";
    let mut command = judges.program("python");
    let answer: Value =
        serde_json::from_str(&judges::succeed(command.args(["-c", script]).arg(&path), "")).unwrap();
    let columns: Vec<&str> =
        answer["columns"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(columns, COLUMNS.split_whitespace().collect::<Vec<_>>());
    let home = &answer["home"];
    assert_eq!(home[0][0], "uk,gov,data)/");
    assert_eq!((&home[0][1], &home[0][2]), (&"gov.uk".into(), &"data.gov.uk".into()));
    assert_eq!((&home[0][4], &home[0][5]), (&"200".into(), &"text/html".into()));
    assert!(home[0][3].as_str().unwrap().starts_with("2014-03-25 12:12:"), "{home}");
    let ours = answer["ours"].as_array().unwrap();
    assert!(ours.len() > 1, "{ours:?}");
    for row in ours {
        assert_eq!((&row[1], &row[2], &row[3]), (&"True".into(), &"True".into(), &"4.0".into()), "{ours:?}");
        assert!(row[0].as_str().unwrap().contains("data.gov.uk"), "{ours:?}");
    }
    let (_, cdxj) = (0, fs::read_to_string(export(&archive, "cdxj", "i.cdxj", &[]).0).unwrap());
    for row in home.as_array().unwrap() {
        let offset = format!(
            "\"length\":\"{}\",\"offset\":\"{}\"",
            row[8].as_str().unwrap(),
            row[7].as_str().unwrap()
        );
        assert!(cdxj.contains(&offset), "{offset}");
    }
}

/// The graph has the archive's links and yields the archive's ranking; other programs find its pages by their URLs.
#[test]
fn a_compressed_graph_ranks_like_the_archive() {
    let Some(data) = foreign() else { return };
    let archive = imported(&data, "zstd");
    let (name, summary) = export(&archive, "graph", "web", &[]);
    let mut urls = String::new();
    let file = fs::File::open(name.with_extension("urls.gz")).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(file), &mut urls).unwrap();
    let urls: Vec<&str> = urls.lines().collect();
    assert!(urls.is_sorted() && urls.len() > 100, "{}", urls.len());
    let sizes = ["graph", "offsets", "properties", "urls.gz"]
        .map(|ending| fs::metadata(name.with_extension(ending)).unwrap().len());
    assert_eq!(summary["bytes"], sizes.iter().sum::<u64>());

    let rank = |more: &[&str]| {
        let mut command = archive.command("rank");
        let method = ["--method", "pagerank", "--tolerance", "1e-12", "--top", "100000", "--json"];
        let mut rows = start(command.args(method).args(more)).wait().succeeded().json();
        let found = rows.remove(0);
        let value = |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["value"].as_f64().unwrap());
        (found["arcs"].clone(), rows.iter().map(value).collect::<BTreeMap<_, _>>())
    };
    let ((_, own), (arcs, exported)) = (rank(&[]), rank(&["--graph", name.to_str().unwrap()]));
    assert_eq!((summary["rows"].clone(), urls.len()), (arcs, exported.len()));
    assert!(exported.keys().eq(urls.iter()) && own.keys().eq(urls.iter()));
    assert!(own.iter().all(|(url, value)| (exported[url] - value).abs() < 1e-12));

    let (part, few) = export(&archive, "graph", "part", &["--where", "importance > 2"]);
    assert!(few["rows"].as_u64() < summary["rows"].as_u64(), "{few}");
    assert!(part.with_extension("graph").exists());
    let refused = start(archive.command("export").args(["graph", "--output", "web.2026"])).wait();
    assert_eq!(refused.code, Some(1));
    assert!(refused.errors.contains("give a NAME without a dot"), "{}", refused.errors);
}
