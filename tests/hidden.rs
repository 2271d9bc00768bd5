//! Archives with hidden captures answer everything that people can ask, in every role, in every format, each for itself and
//! several as one, like archives that never had them: what is asked comes from the server's own list of addresses, so that
//! a new one is asked, too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use archive::serve::{self, ServerAddress};
use serde_json::Value;

use crate::accounts::{account, basic, password};
use crate::imports::import;
use crate::support::served::{Answer, Served, ask};
use crate::support::warc::{answer, member, response};
use crate::support::{Archive, Dice, in_full};

/// A site that nobody may see, a folder for reviewers, what is newer than a day for operators, and what is of one year for
/// nobody.
const RULES: &str = "[[rule]]\nprefix = \"test,secret\"\n\n\
                     [[rule]]\nprefix = \"test,open)/closed\"\nshown_to = \"reviewer\"\n\n\
                     [[rule]]\nprefix = \"test,newest\"\nfrom = 2024-01-01\nshown_to = \"operator\"\n\n\
                     [[rule]]\nprefix = \"test,between\"\nfrom = 2024-01-01\nto = 2024-12-31\n";

/// Who sees a record, and as whom somebody is seen: everybody and readers; reviewers; operators; nobody.
type Clearance = usize;
const EVERYBODY: Clearance = 0;
const REVIEWER: Clearance = 1;
const OPERATOR: Clearance = 2;
const NOBODY: Clearance = 3;

/// The archives, by the hosts that they have.
const HOSTS: [&[&str]; 2] = [&["open.test", "secret.test", "other.test"], &["newest.test", "between.test"]];

/// People who ask, with their levels; one has no account, where there are none.
const PEOPLE: [(&str, Clearance); 4] =
    [("anybody", EVERYBODY), ("reader", EVERYBODY), ("reviewer", REVIEWER), ("operator", OPERATOR)];

/// Of each address, everybody asks so many paths of each archive and of the front, or more; together, they ask a third of all,
/// or in whole runs all.
const PATHS_EACH: usize = 4;

/// A web with hidden captures, and what can be asked about it.
#[derive(Default)]
struct Web {
    /// WARC records, each with its URL and the level that sees it.
    records: Vec<(Vec<u8>, String, Clearance)>,
    /// Words that only one record has, with the level that sees it.
    told: Vec<(String, Clearance)>,
    urls: BTreeSet<String>,
    words: BTreeSet<String>,
}

impl Web {
    fn random(dice: &mut Dice) -> Self {
        let mut web = Self::default();
        let mut names = vec![];
        for host in HOSTS.concat() {
            for page in 0..3 {
                let folder = if host == "open.test" && page == 2 { "closed/" } else { "" };
                names.push(format!("http://{host}/{folder}p{page}"));
            }
        }
        let mut captures: Vec<(String, u32)> = Vec::new();
        for url in &names {
            let years: &[u32] = match url {
                url if url.contains("newest") => &[2020, 2025],
                url if url.contains("between") => &[2020, 2024, 2025],
                _ => &[2023],
            };
            captures.extend(years.iter().map(|year| (url.clone(), *year)));
        }
        // Years stay in order, as a crawl finds them; pages of a year do not.
        captures.sort_by_cached_key(|(_, year)| (*year, dice.below(1 << 30)));
        for (number, (url, year)) in captures.iter().enumerate() {
            let level = match (url, *year) {
                (url, _) if url.contains("secret") => NOBODY,
                (url, _) if url.contains("closed") => REVIEWER,
                (url, 2024..) if url.contains("newest") => OPERATOR,
                (url, 2024) if url.contains("between") => NOBODY,
                _ => EVERYBODY,
            };
            web.add(dice, number, (url, *year), &names, level);
        }
        web.urls.extend(names);
        web.urls.insert("http://nowhere.test/never".to_owned());
        web
    }

    fn add(
        &mut self,
        dice: &mut Dice,
        number: usize,
        (url, year): (&str, u32),
        names: &[String],
        level: Clearance,
    ) {
        let is_hidden = level > EVERYBODY;
        let mut word = || (0..9).map(|_| char::from(b'a' + dice.below(26) as u8)).collect::<String>();
        let [title, text, link, only] = [word(), word(), word(), word()];
        let targets = [
            &names[dice.below(names.len() as u64) as usize],
            &names[dice.below(names.len() as u64) as usize],
        ];
        let unseen = format!("http://unseen{}.test/{only}", dice.below(2));
        let body = format!(
            "<html lang=\"en\"><title>{title}</title><p>{text}</p><a href=\"{}\">{link}</a> <a href=\"{}\">x</a> \
             <a href=\"{unseen}\">y</a>",
            targets[0], targets[1]
        );
        let date = format!("{year}-05-01T00:{:02}:00Z", number % 60);
        let id = format!("urn:uuid:00000000-0000-4000-8000-{number:012}");
        // What links say of pages that are gone depends on when they were gone, so none of the shown ones are.
        let is_gone = is_hidden && (url.contains("newest") || url.contains("between"));
        let kind = if is_gone { dice.below(6) } else { [0, 2, 3, 4, 5][dice.below(5) as usize] };
        let record = match kind {
            0 => {
                let to = targets[0];
                answer(
                    &id,
                    url,
                    &date,
                    &[],
                    &format!("HTTP/1.1 301 Moved\r\nContent-Type: text/html\r\nLocation: {to}\r\n\r\n{text}"),
                )
            }
            1 => answer(
                &id,
                url,
                &date,
                &[],
                &format!("HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n{body}"),
            ),
            2 => answer(
                &id,
                url,
                &date,
                &[],
                &format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n<r{title}><v>{text}</v></r{title}>"
                ),
            ),
            _ => response(&id, url, &date, &body),
        };
        self.records.push((record, url.to_owned(), level));
        self.told.extend([&title, &text, &link, &only].map(|word| (word.clone(), level)));
        self.urls.insert(unseen);
        // The text of a version that a hidden one followed is in no index.
        if is_hidden || !(url.contains("newest") || url.contains("between") && year < 2024) {
            // One letter differs: a word that may be suggested.
            let misspelt = format!("{}{}", &text[..8], if text.ends_with('q') { 'z' } else { 'q' });
            self.words.extend([title, text, link, misspelt]);
        }
    }

    /// The archives of what a level sees.
    fn archives(&self, level: Clearance) -> [Archive; 2] {
        HOSTS.map(|hosts| {
            let archive = Archive::new();
            let is_kept =
                |url: &str, needed: Clearance| needed <= level && hosts.iter().any(|host| url.contains(host));
            let kept = self.records.iter().filter(|(_, url, needed)| is_kept(url, *needed));
            let file: Vec<u8> = kept.flat_map(|(record, ..)| member(record)).collect();
            import(&archive, &[("web.warc.gz", file)]);
            fs::write(archive.path.join("access.toml"), RULES).unwrap();
            archive
        })
    }

    /// Values of a parameter.
    fn values(&self, name: &str) -> Vec<String> {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let sites = [
            "open.test",
            "secret.test",
            "newest.test",
            "between.test",
            "unseen0.test",
            "unseen1.test",
            "nowhere.test",
        ];
        match name {
            "url" => self.urls.iter().cloned().collect(),
            "name" | "site" => texts(&sites),
            "q" => {
                let all = [
                    "page",
                    "capture",
                    "version",
                    "link",
                    "host",
                    "site",
                    "count pages group by host, status",
                    "count captures group by year(time), site",
                    "page select url, title, type, status, language, captures, attempts, versions, first_seen, last_seen, changed, redirect, digest, content_type",
                    "page title contains \"a\" select url, title",
                    "page url ~ \"*unseen*\" select url",
                    "page status = 404 and captures > 0 select url",
                    "page same content as (page) select url",
                    "link select source, target",
                    "site select site, pages, captures, first_seen, last_seen",
                    "host select host, pages, captures, attempts, failures, bytes",
                    "capture select url, time, status, changed, size, digest",
                    "page as of 2024-06-01 select url, status",
                    "page type = html select url, description, text length, first_said(\"a\"), last_said(\"a\"), lost text",
                    "capture text matches \"a\" select url, title, format",
                    "count captures per year",
                    "nonsense =",
                ];
                let linked = self.urls.iter().flat_map(|url| {
                    [
                        format!("page links to \"{url}\" select url"),
                        format!("page linked from \"{url}\" select url"),
                    ]
                });
                let said = self.words.iter().map(|word| format!("page text contains \"{word}\" select url"));
                texts(&all).into_iter().chain(linked).chain(said).chain(self.words.iter().cloned()).collect()
            }
            "query" => texts(&["page", "page host = \"secret.test\""]),
            "as-of" => texts(&["2024-06", "2026"]),
            "from" | "to" | "at" => {
                texts(&["1", "2020-06-01T00:00:00Z", "2024-06-01T00:00:00Z", "2026-01-01T00:00:00Z"])
            }
            "ready" => texts(&["0", "1", "4", "5", "6", "8"]),
            "words" => self.words.iter().cloned().collect(),
            "date" => texts(&["2024-06-01"]),
            "by" => texts(&["anna"]),
            "before" => texts(&["9"]),
            name => panic!("give values for the parameter {name}"),
        }
    }

    /// The paths to ask for at an address.
    fn paths(&self, address: &ServerAddress) -> Vec<String> {
        let ServerAddress { is_replay, path, takes, formats, .. } = *address;
        let mut paths = match path.strip_suffix('*') {
            None if path == "/cdx" => self.cdx(),
            None => vec![path.to_owned()],
            Some(start) => self.below(start, is_replay),
        };
        for name in takes {
            // As words, a query is found in the URLs of pages whose text is in no index.
            let is_apt = |value: &String| path == "/query" || *name != "q" || !value.contains(' ');
            for value in self.values(name).into_iter().filter(is_apt) {
                let asked = format!("{path}?{name}={}", encoded(&value));
                if *name == "url" {
                    let more = takes.iter().filter(|more| *more != name);
                    let more = more.flat_map(|more| self.values(more).into_iter().map(move |it| (more, it)));
                    paths.extend(more.map(|(more, value)| format!("{asked}&{more}={}", encoded(&value))));
                }
                paths.push(asked);
            }
        }
        let plain = paths.clone();
        // These pages are of importance; their data say what else they have.
        if path == "/pictures" || path.starts_with("/review") && formats.contains(&"json") {
            paths.clear();
        }
        for format in formats {
            paths.extend(plain.iter().map(|path| match format.strip_prefix('.') {
                Some(_) => format!("{path}{format}"),
                None => format!("{path}{}format={format}", if path.contains('?') { '&' } else { '?' }),
            }));
        }
        paths
    }

    fn below(&self, start: &str, is_replay: bool) -> Vec<String> {
        if !is_replay {
            return ["1", "current", "x"].iter().map(|rest| format!("{start}{rest}")).collect();
        }
        let forms: &[&str] = match start {
            "/web/" => &["2/", "20240601id_/", "20250501mp_/", "*/", "20200501000000/"],
            "/timemap/" => &["link/", "json/", "cdxj/"],
            _ => &["", "2024/"],
        };
        forms.iter().flat_map(|form| self.urls.iter().map(move |url| format!("{start}{form}{url}"))).collect()
    }

    fn cdx(&self) -> Vec<String> {
        let own = |url: &String| {
            let url = encoded(url);
            [
                format!("/cdx?url={url}"),
                format!("/cdx?url={url}&output=json&limit=1&sort=closest&closest=2024"),
            ]
        };
        let hosts = ["open.test", "secret.test", "newest.test", "test"].into_iter().flat_map(|host| {
            [
                "",
                "&output=json",
                "&showNumPages=true",
                "&fl=urlkey,timestamp,original,digest,length",
                "&page=0",
            ]
            .map(|more| format!("/cdx?url={host}&matchType=domain{more}"))
        });
        self.urls.iter().flat_map(own).chain(hosts).collect()
    }
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Serves two archives, and both as one.
fn served(archives: &[Archive; 2], people: Option<&Path>) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.args([
        "serve",
        "--together",
        "--review",
        "--listen",
        "127.0.0.1:0",
        "--replay-listen",
        "127.0.0.1:0",
    ]);
    for archive in archives {
        command.arg("--archive").arg(&archive.path);
    }
    if let Some(people) = people {
        command.arg("--password-file").arg(people).arg("--audit-log").arg(archives[0].folder().join("audit"));
    }
    command.env_remove("ARCHIVE_DIR").env("TZ", "UTC");
    Served::spawn(&mut command, 1 + archives.len())
}

/// The addresses of application and replay: of the front, then of each archive.
fn places(served: &Served) -> Vec<[&str; 2]> {
    let further = served.further.iter().map(|(application, replay)| [application.as_str(), replay.as_str()]);
    std::iter::once([served.application.as_str(), served.replay.as_str()]).chain(further).collect()
}

/// A file with an account for each of the people.
fn people(archive: &Archive) -> PathBuf {
    for (name, _) in &PEOPLE[1..] {
        account(archive, name, name, &password(name));
    }
    archive.folder().join("people")
}

/// The fields of an answer without dates, lengths of what is compared here, and numbers of captures, which show that there
/// are others.
fn fields(answer: &Answer) -> Vec<String> {
    let left_out = ["date", "content-length", "x-archive-capture", "content-disposition"];
    let fields = answer.fields.iter().filter(|(name, _)| !left_out.contains(&name.as_str()));
    fields.map(|(name, value)| format!("{name}: {value}")).collect()
}

/// An answer without what must differ.
fn told(answer: &Answer, served: &Served) -> String {
    // Ports are given by the system.
    let neutral =
        |text: &str| {
            places(served).concat().iter().zip('A'..).fold(text.to_owned(), |text, (address, name)| {
                text.replace(address, &format!("PLACE-{name}"))
            })
        };
    let body = neutral(&String::from_utf8_lossy(&answer.body));
    let body = match answer.get("content-type") {
        // Packages and records are compressed, and name times of their own.
        Some("application/wacz" | "application/warc") => String::new(),
        _ => match serde_json::from_str::<Value>(&body) {
            Ok(json) => json_told(json).to_string(),
            Err(_) => text_told(&body),
        },
    };
    format!("{}\n{}\n{body}", answer.status, neutral(&fields(answer).join("\n")))
}

/// Where records lie and how long their files are depends on the others. Through which of several shown links a page was
/// found, the books decide as captures come. The rest is weighed by importance.
const LEFT_OUT: [&str; 16] = [
    "via",
    "hop",
    "depth",
    "found",
    "segment",
    "file",
    "filename",
    "offset",
    "segment_bytes",
    "score",
    "next_visit",
    "freshness",
    "gain",
    "samples",
    "because",
    "advice",
];

/// Lists are ordered by importance, which stays that of all links, and so does the score of a page, whose words are
/// rarer among fewer.
fn json_told(json: Value) -> Value {
    match json {
        Value::Array(list) => {
            let mut list: Vec<_> = list.into_iter().map(json_told).collect();
            list.sort_by_cached_key(Value::to_string);
            list.into()
        }
        Value::Object(fields) => {
            let is_told = |name: &str| !name.contains("importance") && !LEFT_OUT.contains(&name);
            let kept = fields.into_iter().filter(|(name, _)| is_told(name));
            Value::Object(kept.map(|(name, value)| (name, json_told(value))).collect())
        }
        other => other,
    }
}

/// The same for HTML and tables: without fractions, places of records and sizes of files, and in no order.
fn text_told(text: &str) -> String {
    // When a page is due depends on importance, and on what signatures of its older versions would say.
    let mut text = text.to_owned();
    for (first, end) in [("Next due", "</dl>"), (">Found<", "</tr>")] {
        if let Some((at, length)) = text.find(first).and_then(|at| Some((at, text[at..].find(end)?))) {
            text.replace_range(at..at + length, "");
        }
    }
    let mut parts: Vec<String> = text.split_inclusive(['<', '\n']).map(without_places).collect();
    parts.sort();
    parts.concat()
}

fn without_places(part: &str) -> String {
    // Files, and forecasts.
    let left_out = [" at byte ", ".warc", "KiB", "pages before it"];
    if left_out.iter().any(|it| part.contains(it)) {
        return String::new();
    }
    let words = part.split_inclusive(|c: char| !(c.is_ascii_digit() || c == '.'));
    let is_fraction = |word: &str| word.contains('.') && word.chars().any(|c| c.is_ascii_digit());
    words.map(|word| if is_fraction(word) { "#" } else { word }).collect()
}

/// The sites and URLs that an archive tells others.
fn names(address: &str, fields: &[&str]) -> BTreeSet<String> {
    let pages: Vec<u32> = (0..200).collect();
    let asked = ["{\"sites\":{}}".to_owned(), format!("{{\"urls\":{{\"pages\":{pages:?}}}}}")];
    let mut names = BTreeSet::new();
    for asked in asked {
        let asked = format!("{{\"version\":2,\"ask\":{asked}}}");
        let length = format!("Content-Length: {}", asked.len());
        let own = [length.as_str(), "Content-Type: application/json"];
        let answer = ask(address, "POST", "/ask", &[&own[..], fields, &["", &asked]].concat());
        assert_eq!(answer.status, 200);
        let lines = String::from_utf8(answer.content()).unwrap();
        for line in lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            // A hidden site has a number without a name.
            let row = line["row"].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.extend(row.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    names
}

/// What one of the people asks at one of the places.
struct Inquiry<'a> {
    web: &'a Web,
    name: &'static str,
    level: Clearance,
    /// Field of the requests that says who asks.
    fields: Vec<String>,
    /// The archives with hidden captures, and those that never had them.
    served: [&'a Served; 2],
    place: usize,
    /// Paths of the application, or of the replay.
    asked: Vec<(bool, &'a String)>,
}

impl Inquiry<'_> {
    /// What the two answer differently, or should not tell.
    fn faults(&self) -> Vec<String> {
        let asker: Vec<&str> = self.fields.iter().map(String::as_str).collect();
        let answers = |served: &Served| {
            let addresses = places(served)[self.place];
            let of = |(is_replay, path): &(bool, &String)| {
                ask(addresses[usize::from(*is_replay)], "GET", path, &asker)
            };
            // The front knows what all know.
            let known = places(served).into_iter().enumerate().filter(|(place, _)| match self.place {
                0 => *place > 0,
                own => *place == own,
            });
            let known: BTreeSet<String> =
                known.flat_map(|(_, [address, _])| names(address, &asker)).collect();
            (known, self.asked.iter().map(of).collect::<Vec<_>>())
        };
        let [(known, hidden), (expected, never)] = thread::scope(|scope| {
            let answers = &answers;
            self.served.map(|served| scope.spawn(move || answers(served))).map(|it| it.join().unwrap())
        });
        assert!(expected.len() > 5, "{expected:?}");
        assert_eq!(known, expected, "{} at {}", self.name, self.place);
        // Not even in what is left out below.
        let unknown = self.web.urls.iter().filter(|url| !expected.contains(*url));
        let untold = self.web.told.iter().filter(|(_, level)| *level > self.level).map(|(word, _)| word);
        let untold: Vec<&String> = untold.chain(unknown).collect();
        let mut faults = Vec::new();
        for ((_, path), (hidden, never)) in self.asked.iter().zip(hidden.iter().zip(&never)) {
            let is_asked = |text: &String| path.contains(text.as_str()) || path.contains(&encoded(text));
            let what = format!("{path} (asked by {} at {})", self.name, self.place);
            let body = String::from_utf8_lossy(&hidden.body);
            if let Some(told) = untold.iter().find(|text| body.contains(text.as_str()) && !is_asked(text)) {
                faults.push(format!("{what} tells {told}"));
                continue;
            }
            let whole = |answer: &Answer| (answer.status, fields(answer));
            if whole(hidden) == whole(never) && hidden.body == never.body {
                continue;
            }
            let [hidden, never] = [told(hidden, self.served[0]), told(never, self.served[1])];
            if hidden != never {
                faults.push(format!("{what} differs\n--- hidden\n{hidden}\n--- never\n{never}\n"));
            }
        }
        faults
    }
}

/// The paths that each of the people asks at each place: some of each address, and together all.
fn shares(web: &Web, dice: &mut Dice, count: usize) -> Vec<Vec<(bool, String)>> {
    let mut shares = vec![Vec::new(); count];
    let mut all = 0;
    for address in serve::addresses() {
        let mut paths = web.paths(&address);
        all += paths.len();
        paths.sort_by_cached_key(|_| dice.below(1 << 30));
        let each = paths.len().div_ceil(count * in_full(3, 1)).max(PATHS_EACH.min(paths.len()));
        let mut paths = paths.iter().cycle();
        for share in &mut shares {
            share.extend(paths.by_ref().take(each).map(|path| (address.is_replay, path.clone())));
        }
    }
    println!("{all} paths, {} questions", shares.iter().map(Vec::len).sum::<usize>());
    assert!(all > 500, "{all}");
    shares
}

#[test]
fn hidden_captures_are_as_if_there_had_never_been_any() {
    let mut dice = Dice::new("hidden_captures_are_as_if_there_had_never_been_any");
    let web = Web::random(&mut dice);
    let folder = Archive::new();
    let (archives, file) = thread::scope(|scope| {
        let archives = [EVERYBODY, REVIEWER, OPERATOR, NOBODY].map(|level| {
            let web = &web;
            scope.spawn(move || web.archives(level))
        });
        let file = people(&folder);
        (archives.map(|archives| archives.join().unwrap()), file)
    });
    // Without accounts, and with them.
    let open = [NOBODY, EVERYBODY].map(|level| served(&archives[level], None));
    let closed = archives.each_ref().map(|archives| served(archives, Some(&file)));
    let count = PEOPLE.len() * (1 + HOSTS.len());
    let shares = shares(&web, &mut dice, count);
    let mut faults = Vec::new();
    for (number, share) in shares.iter().enumerate() {
        let ((name, level), place) = (PEOPLE[number % PEOPLE.len()], number / PEOPLE.len());
        let (fields, served) = match number % PEOPLE.len() {
            0 => (vec![], open.each_ref()),
            _ => (vec![basic(name, &password(name))], [&closed[NOBODY], &closed[level]]),
        };
        let asked = share.iter().map(|(is_replay, path)| (*is_replay, path)).collect();
        let asking = Inquiry { web: &web, name, level, fields, served, place, asked };
        faults.push(asking.faults());
    }
    faults.iter().for_each(|faults| faults.iter().take(3).for_each(|fault| println!("{fault}")));
    assert_eq!(faults.concat().len(), 0, "of {} answers", shares.iter().map(Vec::len).sum::<usize>());
    strangers(&shares, &closed[NOBODY]);
}

/// Who has no account gets nothing where accounts are needed.
fn strangers(shares: &[Vec<(bool, String)>], served: &Served) {
    let open = ["/health", "/style.css"];
    for (number, [application, replay]) in places(served).into_iter().enumerate() {
        for (is_replay, path) in shares[number].iter().step_by(3) {
            let answer = ask(if *is_replay { replay } else { application }, "GET", path, &[]);
            let is_open = !is_replay && open.contains(&path.as_str());
            assert_eq!(answer.status, if is_open { 200 } else { 401 }, "{path}");
        }
    }
}
