//! Every command line of the documentation runs: those of README, docs, examples and `--help`, as they stand there.
//!
//! They are found in the texts, so that a new one is run, too. Each runs in a copy of one folder with everything that
//! such lines name; addresses, stores and ports that no test may use are replaced ([`INSTEAD`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::cluster::still;
use crate::support::TestWeb;
use crate::support::program::{Running, start};
use crate::support::served::Served;
use crate::support::warc::response;

/// Texts with command lines, besides the help.
const TEXTS: [&str; 10] = [
    "README.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "storage/FORMAT.md",
    "docs",
    "examples/cron/crontab",
    "examples/cron/archive-refresh.service",
    "examples/serve/archive-serve.service",
    "examples/cluster/archive-node.service",
    "examples/read_without_archive.sh",
];

/// What stands for what: a line may end in, or name, something that is only on the machine of a reader.
const INSTEAD: [(&str, &str); 18] = [
    ("node --cluster s3://crawl/cluster", "node --cluster file://$PWD/new"),
    ("--archive A3 --cluster s3://crawl/cluster", "--archive A2 --cluster s3://crawl/cluster"),
    ("crawl … --cluster", "crawl --seeds list.txt --archive A2 --cluster"),
    ("/usr/local/bin/archive", "archive"),
    ("s3://backup/", "file://$PWD/backup/"),
    ("s3://crawl/", "file://$PWD/crawl/"),
    ("file:///srv/cluster", "file://$PWD/crawl/cluster"),
    ("/srv/", "$PWD/srv/"),
    ("/etc/archive/", "$PWD/"),
    // The cluster here has two partitions.
    ("--partition 3/8", "--partition 2/2"),
    // Sites by host need an archive of their own.
    ("--sites host", "--sites host --archive new.archive"),
    ("drain 3", "drain 2"),
    ("--partitions 64", "--partitions 2"),
    ("crawl …", "crawl --seeds list.txt"),
    ("192.0.2.1:8070", "127.0.0.1:0"),
    ("192.0.2.1:8071", "127.0.0.1:0"),
    ("127.0.0.1:9000", "127.0.0.1:0"),
    ("127.0.0.1:9001", "127.0.0.1:0"),
];

/// What a server says once it listens.
const LISTENS: &str = "archive at http://";

/// Commands that change nothing: lines with nothing else share one copy.
const READING: [&str; 13] = [
    "query",
    "search",
    "plan",
    "xpath",
    "validate",
    "why",
    "said",
    "get",
    "freshness",
    "diff",
    "stats",
    "history",
    "verify",
];

/// Archives in the prepared folder, which make up most of its files. A line gets those that it names, or the usual one.
const ARCHIVES: [&str; 7] = ["A", "A1", "A2", "A3", "news.archive", "law.archive", "srv"];
const USUAL: &str = "web.archive";

/// Number of columns at which the program wraps its help.
const HELP_COLUMNS: usize = 100;

/// Number of sites with a page on maps and one on music.
const SITES: u32 = 12;

/// Returns the command lines of a text, without comments, prompts and times of cron.
fn lines_of(text: &str, commands: &[String]) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().filter_map(|line| {
        let is_code = line.starts_with("  ") || line.starts_with("ExecStart=") || line.contains(" * ");
        let line = line.trim().trim_start_matches("ExecStart=").trim_start_matches("/usr/local/bin/");
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == '*' || c == ' ');
        let mut words = line.strip_prefix("archive ")?.split(' ');
        let is_command = words.next().is_some_and(|word| commands.iter().any(|command| command == word));
        let is_usage =
            words.any(|word| word.starts_with('[') || word.ends_with("D>") || word.ends_with("S>"));
        (is_code && is_command && !is_usage).then(|| without_comment(line))
    });
    lines.collect()
}

/// Returns a line without what follows a `#` outside of quotes, and without the sign for the background.
fn without_comment(line: &str) -> String {
    let (mut quote, mut last) = (None, ' ');
    let end = line.char_indices().find(|(_, c)| {
        let is_comment = *c == '#' && quote.is_none() && last == ' ';
        match (quote, *c) {
            (None, '\'' | '"') => quote = Some(*c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
        last = *c;
        is_comment
    });
    let line = line[..end.map_or(line.len(), |(at, _)| at)].trim();
    line.strip_suffix('&').filter(|rest| !rest.ends_with('&')).unwrap_or(line).trim().to_owned()
}

fn archive(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.args(arguments).env_remove("ARCHIVE_DIR");
    command
}

/// Returns a help text with each example on one line: longer ones are wrapped.
fn unwrapped(help: &str) -> String {
    let (mut text, mut width, mut is_example) = (String::new(), 0, false);
    for line in help.lines() {
        let first = line.trim_start().split(' ').next().unwrap_or_default();
        let was_full = width + 1 + first.chars().count() > HELP_COLUMNS;
        is_example = line.starts_with("  archive ") || is_example && (was_full || text.ends_with("\\\n"));
        if was_full && is_example && line.starts_with("  ") && first != "archive" {
            text.truncate(text.len() - 1);
            text += &format!(" {}\n", line.trim_start());
        } else {
            text += &format!("{line}\n");
        }
        width = line.chars().count();
    }
    text
}

fn help(command: &[String]) -> String {
    unwrapped(&start(archive(&["help"]).args(command)).wait().succeeded().text())
}

/// Returns the names of the commands below one that its help lists.
fn commands(help: &str) -> Vec<String> {
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let names = listed.lines().take_while(|line| line.starts_with("  "));
    let names = names.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

/// Adds the lines in the help of a command and of those below it.
fn add_help(command: &[String], all: &[String], found: &mut BTreeMap<String, String>) {
    let help = help(command);
    for line in lines_of(&help, all) {
        found.entry(line).or_insert_with(|| format!("archive help {}", command.join(" ")));
    }
    for name in commands(&help) {
        add_help(&[command, &[name]].concat(), all, found);
    }
}

/// Returns all command lines, each with the text in which it stands.
fn documented() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut found, all) = (BTreeMap::new(), commands(&help(&[])));
    for name in TEXTS {
        let path = root.join(name);
        let mut files = vec![path.clone()];
        if path.is_dir() {
            files = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
        }
        for file in files {
            for line in lines_of(&fs::read_to_string(&file).unwrap(), &all) {
                found.entry(line).or_insert_with(|| file.display().to_string());
            }
        }
    }
    add_help(&[], &all, &mut found);
    found
}

/// Returns captures of pages that the lines name, and of sites on maps and music.
fn pages(seeds: &[String]) -> Vec<u8> {
    let mut records = Vec::new();
    let mut add = |url: &str, month: u32, body: &str| {
        let date = format!("2026-{month:02}-03T10:00:00Z");
        records.push(response(&format!("urn:test:{url}:{month}"), url, &date, body));
    };
    for (month, words) in [(1, "opening hours until further notice"), (3, "open access directive KeepAlive")]
    {
        let links = "<a href=/private/>a</a><a href=/news/>b</a><a href=http://old.example.org/>c</a>";
        add("https://www.example.org/", month, &format!("<title>Home</title><p>{words}{links}"));
    }
    for url in
        ["https://www.example.org/private/", "https://www.example.org/news/", "http://old.example.org/"]
    {
        add(url, 1, "<title>rose</title><p>open access");
    }
    add("https://example.org/calendar/", 1, "<p>calendar");
    let xml = "<?xml version='1.0'?><catalogue><book><title>a</title></book><book lang='it'><title>b</title></book><price>12</price></catalogue>";
    add("https://www.example.org/catalogue.xml", 1, xml);
    add(
        "https://www.example.org/feed.atom",
        1,
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><title>a</title></entry></feed>",
    );
    for seed in seeds {
        add(seed, 1, "<p>a seed");
    }
    for site in 0..SITES {
        add(
            &format!("http://maps{site}.test/"),
            1,
            &format!("<title>Old maps</title><p>old maps and atlases of {site}"),
        );
        add(
            &format!("http://maps{site}.test/b"),
            1,
            &format!("<title>Maps</title><p>old maps, globes and charts {site}"),
        );
        add(
            &format!("http://music{site}.test/"),
            1,
            &format!("<title>Songs</title><p>music and songs of {site}"),
        );
    }
    records.concat()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// Whether a line only reads.
fn only_reads(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    words.windows(2).filter(|pair| pair[0] == "archive").all(|pair| READING.contains(&pair[1]))
}

/// The folder of which each line gets a copy.
struct Place {
    folder: tempfile::TempDir,
    served: TestWeb,
}

impl Place {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a copy of what a line needs.
    fn copy_for(&self, line: &str) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        let is_needed = |name: &str| match name {
            _ if only_reads(line) => true,
            USUAL => !line.contains("--archive ") || line.contains(USUAL),
            "crawl" => line.contains("crawl/"),
            name => !ARCHIVES.contains(&name) || line.contains(name),
        };
        let all = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        let needed = all.filter(|path| is_needed(path.file_name().unwrap().to_str().unwrap()));
        let copied = Command::new("cp").arg("-a").args(needed).arg(copy.path()).status().unwrap();
        assert!(copied.success());
        copy
    }

    /// Starts a line in a folder, with what stands for addresses and stores.
    fn start_in(folder: &Path, line: &str) -> Running {
        let path = std::env::var("PATH").unwrap();
        let own = Path::new(env!("CARGO_BIN_EXE_archive")).parent().unwrap().display();
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(folder).env_remove("ARCHIVE_DIR").env("USER", "anna");
        start(command.env("PATH", format!("{own}:{path}")))
    }

    fn run(&self, line: &str) {
        let line = self.meant(line, &[]);
        let finished = Self::start_in(self.path(), &line).wait();
        assert_eq!(finished.code, Some(0), "{line}: {finished:?}");
    }

    /// A host of the web, for which there is a log-in.
    fn door(&self) -> String {
        self.served.web.seeds(1).remove(0).trim_end_matches('/').to_owned()
    }

    /// Returns a line for this machine.
    fn meant(&self, line: &str, nodes: &[Served]) -> String {
        let mut line = INSTEAD.iter().fold(line.to_owned(), |line, (there, here)| line.replace(there, here));
        for (number, node) in (1..).zip(nodes) {
            line =
                line.replace(&format!("http://node{number}:8070"), &format!("http://{}", node.application));
        }
        let asked = line.clone();
        let is = |command: &str| asked.contains(&format!("archive {command}"));
        let fetches = ["crawl", "refresh", "watch report", "node"].iter().any(|command| is(command));
        let mut more = String::new();
        if fetches || is("login test") {
            let [name, address] = self.served.connection();
            more += &format!(" {name} {address}");
        }
        if is("login test") {
            line = line.replace("press.example.org", &self.door());
        }
        if fetches {
            more += if line.contains("--delay") { "" } else { " --delay 0" };
            more += if line.contains("--patience") { "" } else { " --patience 0s" };
        }
        if is("serve") {
            let ports = ["--listen", "--replay-listen"].into_iter();
            more.extend(
                ports
                    .filter(|port| !line.contains(&format!(" {port} ")))
                    .map(|port| format!(" {port} 127.0.0.1:0")),
            );
        }
        if line.contains("--partition 2/2") {
            line = line.replace("--archive A3", "--archive A2");
        }
        // A copy belongs to one archive, and each line has an archive of its own.
        for (option, at) in [
            ("--list --to", "backup/web"),
            ("--verify --to", "backup/web"),
            ("--from", "backup/web"),
            ("--from", "crawl/copies/3"),
        ] {
            let url = format!("file://$PWD/{at}");
            if line.contains(&format!("copy {option} {url}")) {
                line = format!("archive copy --archive {USUAL} --to {url} && rm -rf A3 && {line}");
            }
        }
        // What a person would answer.
        if is("erase '") || is("erase --urls") {
            more +=
                if ["--dry-run", "--yes"].iter().any(|option| line.contains(option)) { "" } else { " --yes" };
        }
        if is("account set") && !line.contains('<') {
            more += " < password.txt";
        }
        line + &more
    }

    /// Runs a line in a copy of the folder, that for all that read or one of its own; returns what went wrong.
    fn problem(&self, line: &str, nodes: &[Served], read: &Path) -> Option<String> {
        let mut line = self.meant(line, nodes);
        let own = (!only_reads(&line)).then(|| self.copy_for(&line));
        let copy = own.as_ref().map_or(read, tempfile::TempDir::path);
        let is_server = line.contains("archive serve");
        let is_repeated = line.contains("--every 30s") || line.contains("--every 10s");
        // A server is stopped once it listens, and what is repeated after its first time.
        if is_server {
            line = format!("exec {line} > said");
        } else if is_repeated {
            line = format!("timeout --preserve-status -s TERM 3 {line}");
        }
        let begun = Instant::now();
        let mut running = Self::start_in(copy, &line);
        let said = || fs::read_to_string(copy.join("said")).unwrap_or_default();
        let is_serving = !is_server || running.wait_until(|| said().contains(LISTENS));
        if is_server && is_serving {
            running.signal("-TERM");
        }
        let finished = running.wait();
        println!("{:6.2} s {line}", begun.elapsed().as_secs_f64());
        // Some pages of the web do not answer.
        let is_waiting = finished.code == Some(4) && finished.errors.contains("waits for its servers");
        let is_stopped = (is_server || is_repeated) && matches!(finished.code, Some(4 | 143));
        let is_right = finished.code == Some(0) || is_waiting || is_stopped;
        (!is_right || !is_serving)
            .then(|| format!("{line}\n  {:?}: {}{}", finished.code, finished.text(), finished.errors))
    }
}

fn prepared() -> Place {
    let place = Place { folder: tempfile::tempdir().unwrap(), served: TestWeb::start(still(511, 60, 0)) };
    let path = |name: &str| place.path().join(name);
    let write = |name: &str, content: &[u8]| {
        let file = path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    };
    let seeds = place.served.web.seeds(2);
    let named = |sort: &str, page: &str| {
        (0..SITES).map(|site| format!("http://{sort}{site}.test/{page}\n")).collect::<String>()
    };
    write("pages.warc", &pages(&seeds));
    let foreign = response("urn:test:foreign", "http://foreign.test/", "2014-01-03T03:03:21Z", "<p>foreign");
    for name in ["old/a", "crawl-2014", "crawl-2015", "histories", "huge-1", "webkb"] {
        write(&format!("{name}.warc.gz"), &packed(&foreign));
    }
    let old = b"http://old.test/ 1.2.3.4 19980102030405 text/html 3\n<p>\n";
    write("crawl-1998.arc.gz", &packed(old));
    write("old-crawls/1998.arc.gz", &packed(old));
    write("websites/example/hts-cache/new.zip", &[&b"PK\x05\x06"[..], &[0; 18]].concat());
    write("saved/a.mhtml", b"<!-- saved from url=(0016)http://old.test/ --><p>");
    write("mirror/old.test/index.html", b"<p>");
    let listed = seeds.first().map(|seed| format!("key 20260103100000 {seed} text/html 200 - 9\n"));
    write("other-archive.cdx.gz", &packed(listed.unwrap().as_bytes()));
    let list = seeds.join("\n");
    for (name, content) in [
        ("list.txt", list.as_str()),
        ("seeds.txt", &list),
        ("srv/list.txt", &list),
        ("LIST", &list),
        ("urls.txt", &named("maps", "")),
        ("others.txt", &(named("maps", "b") + &named("music", ""))),
        (
            "subjects.txt",
            &format!(
                "maps\n  * old\n{}",
                named("maps", "").lines().fold(String::new(), |all, url| all + "      " + url + "\n")
            ),
        ),
        ("maps.txt", "Old maps and atlases of cities, and the surveys that they were drawn from\n"),
        ("ratings.csv", "site,rating\nexample.org,3\n"),
        ("password.txt", "correct horse battery staple\n"),
        ("cookies.txt", "www.example.org\tFALSE\t/\tTRUE\t0\tsession\tabc\n"),
        ("nodes", ""),
        ("access.toml", "[[rule]]\nprefix = \"org,example)/private\"\nfor = \"1d\"\n"),
        (
            "sitemap.xml",
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>https://www.example.org/news/</loc></url></urlset>",
        ),
        ("old.xml", "<a><b>one</b></a>"),
        ("new.xml", "<a><b>two</b></a>"),
        (
            "delta.json",
            r#"{"kind":"xml","changes":[{"op":"update","id":1,"path":"/a/b","old":"one","new":"two"}],"numbers":[[1,4]]}"#,
        ),
        ("catalogue.txt", "https://www.example.org/news/\nhttps://www.example.org/\n"),
    ] {
        write(name, content.as_bytes());
    }
    fs::create_dir_all(path("srv/www")).unwrap();
    fs::set_permissions(path("nodes"), fs::Permissions::from_mode(0o600)).unwrap();
    place.run("archive import pages.warc --index-versions");
    let erased = "url = \"https://www.example.org/private/\"";
    place.run(&format!("archive erase '{erased}' --reason 'asked by the author' --yes"));
    for site in 0..SITES {
        place.run(&format!(
            "archive review set maps{site}.test --rating 4 --tag anna --collection maps --by anna"
        ));
        place.run(&format!("archive review set music{site}.test --rating 1 --by anna"));
    }
    place.run("archive topic learn maps --from urls.txt --against 'page url ~ \"http://music*\"'");
    place.run("archive topic export maps --output maps.topic");
    place.run("archive rank --save pagerank");
    place.run("archive rank --save interest --method interest --chosen-query 'type = xml'");
    place.run("archive watch 'page host = \"www.example.org\"' --every week");
    place.run("archive export wacz --output collection.wacz");
    place.run("archive review learn");
    place.run("archive account set anna --role reviewer --file people < password.txt");
    place.run("cp -a web.archive srv/web.archive && cp -a web.archive A");
    place.run("archive login add www.example.org --basic anna < password.txt");
    place.run(&format!("archive login add {} --basic anna --shown < password.txt", place.door()));
    for (name, file) in [("news", "old/a.warc.gz"), ("law", "pages.warc"), ("A3", "old/a.warc.gz")] {
        let archive = if name == "A3" { name.to_owned() } else { format!("{name}.archive") };
        place.run(&format!("archive import {file} --archive {archive}"));
    }
    let options = place.served.at_once().join(" ");
    let crawl = |number: u32| {
        format!(
            "archive crawl --seeds list.txt --scope any --limit 1000 --archive A{number} --cluster file://$PWD/crawl/cluster --partition {number}/2 {options}"
        )
    };
    let crawled = Place::start_in(place.path(), &format!("{} & {} && wait", crawl(1), crawl(2))).wait();
    assert_eq!(crawled.code, Some(0), "{crawled:?}");
    place.run("archive topic learn pies --where 'status = 200 limit 6' --archive A1");
    place.run("archive watch 'page text contains \"open access\"' --name open-access --archive A1");
    place.run("archive cluster share --cluster s3://crawl/cluster --set A1/topics/pies.topic");
    place.run("archive review set example.org --rating 4 --by anna --cluster s3://crawl/cluster");
    place
}

#[test]
fn every_documented_command_line_runs() {
    let lines = documented();
    assert!(lines.len() > 150, "{lines:#?}");
    let place = prepared();
    let read = place.copy_for("");
    let served = |name: &str| {
        let listen = ["--listen", "127.0.0.1:0", "--replay-listen", "127.0.0.1:0"];
        Served::spawn(archive(&["serve", "--archive"]).arg(place.path().join(name)).args(listen), 1)
    };
    let nodes = ["A1", "A2", "A3"].map(served);
    // The experiments of the lab have data of their own, and take minutes.
    let todo: Vec<_> = lines.iter().filter(|(line, _)| !line.starts_with("archive lab ")).collect();
    let (todo, problems) = (Mutex::new(todo.into_iter()), Mutex::new(BTreeSet::new()));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((line, text)) = { todo.lock().unwrap().next() } {
                    let problem = place.problem(line, &nodes, read.path());
                    problems.lock().unwrap().extend(problem.map(|problem| format!("{text}: {problem}")));
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(
        problems.is_empty(),
        "{} lines fail:\n{}",
        problems.len(),
        problems.into_iter().collect::<Vec<_>>().join("\n")
    );
}

/// Commands that are named in a sentence have no examples of values, but options that exist.
#[test]
fn every_option_that_a_text_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = regex::Regex::new(r"`archive ([a-z-]+(?: [a-z-]+)?)[^`|]*").unwrap();
    let option = regex::Regex::new(r"(?:^|[ `])(--[a-z][a-z-]*)").unwrap();
    let mut files: Vec<PathBuf> =
        fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.extend(["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(|name| root.join(name)));
    let (mut wrong, mut helps) = (Vec::new(), BTreeMap::new());
    for file in files {
        let text = fs::read_to_string(&file).unwrap().replace('\n', " ");
        for found in named.captures_iter(&text) {
            let words: Vec<&str> = found[1].split(' ').collect();
            let help = helps.entry(found[1].to_owned()).or_insert_with(|| {
                let of = |words: &[&str]| start(archive(&["help"]).args(words)).wait();
                let whole = of(&words);
                if whole.code == Some(0) { whole } else { of(&words[..1]) }.text()
            });
            let options = option.captures_iter(&found[0]).map(|option| option[1].to_owned());
            let known = |option: &String| {
                help.contains(&format!("{option} ")) || help.contains(&format!("{option}\n"))
            };
            wrong.extend(
                options
                    .filter(|option| words[0] != "lab" && !known(option))
                    .map(|option| format!("{}: {} has no {option}", file.display(), &found[0])),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
