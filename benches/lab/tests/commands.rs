//! Runs the experiments from the command line.

use std::process::Command;

/// Returns a shell command line that runs the program with these arguments.
fn line(words: &str) -> String {
    format!("{} {words}", env!("CARGO_BIN_EXE_archive-lab"))
}

#[test]
fn what_takes_long_shows_how_far_it_has_come() {
    // Standard error is the terminal of `script` (util-linux); standard output is not a terminal.
    let line = line("windows --graph generate:copy:500:8 --change 0,1");
    let line = format!("stty cols 80 rows 50; exec {line} >/dev/null");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
    let seen = script.output().unwrap();
    let text = String::from_utf8_lossy(&seen.stdout);
    assert!(seen.status.success() && text.contains("/28"), "{text:?}");
}

#[test]
fn experiments_print_a_line_of_json_a_result() {
    for (words, lines) in [
        ("convergence --graph generate:copy:500:8 --visits 1,2", 2),
        ("orders --graph generate:cooper-frieze:500:8 --order breadth,opic --seed-count 5", 2),
        ("orders --graph generate:web:2000:8 --order breadth,opic --seed-count 5", 2),
        ("passes --graph generate:web:1000:8 --passes 2", 2),
        ("estimators --pages 20 --visits 5", 10),
        ("raters --sites 20 --pages 100 --noise 0.1,0.4 --repeat 2", 41),
        ("slices --pages 20000 --memory 4MB --iterations 1", 3),
    ] {
        let run =
            Command::new(env!("CARGO_BIN_EXE_archive-lab")).args(words.split(' ')).arg("--json").output();
        let run = run.unwrap();
        let text = String::from_utf8(run.stdout).unwrap();
        assert!(run.status.success(), "{words}: {}", String::from_utf8_lossy(&run.stderr));
        assert!(
            text.lines().count() >= lines && text.lines().all(|line| line.starts_with('{')),
            "{words}: {text}"
        );
    }
    // Hosts, one kind of which was selected by people.
    let folder = tempfile::tempdir().unwrap();
    let gzip = |name: &str, text: String| {
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        let mut out = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        std::io::Write::write_all(&mut out, text.as_bytes()).unwrap();
        out.finish().unwrap();
    };
    let host =
        |host: usize| format!("www.h{host}.{}\n", if host.is_multiple_of(4) { "ac.uk" } else { "com" });
    let arcs = (0..600_usize)
        .map(|arc| (arc % 200, arc * 37 % 50 * 4 + arc % 4))
        .map(|(a, b)| format!("{a}\t{b}\n"));
    gzip("urls.txt.gz", (0..200).map(host).collect());
    gzip("arcs.tsv.gz", arcs.collect());
    gzip("selected.gz", (0..50).map(|four| format!("http://h{}.ac.uk/x\n", 4 * four)).collect());
    let partitions = Command::new(env!("CARGO_BIN_EXE_archive-lab"))
        .args(["partitions", "--json", "--graph"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(partitions.stdout).unwrap().lines().count(), 8);
    let librarian = Command::new(env!("CARGO_BIN_EXE_archive-lab"))
        .args(["librarian", "--repeat", "2", "--json", "--graph"])
        .args([folder.path(), "--selected".as_ref(), &folder.path().join("selected.gz")])
        .output()
        .unwrap();
    let text = String::from_utf8(librarian.stdout).unwrap();
    assert!(librarian.status.success(), "{}", String::from_utf8_lossy(&librarian.stderr));
    let runs: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!(
            (run["hosts"].as_u64(), run["known"].as_u64(), run["unknown"].as_u64()),
            (Some(200), Some(25), Some(25))
        );
        let auc = |kind: &str| run["auc"][kind].as_f64().unwrap();
        assert!(auc("librarian") > 0.99 && auc("pagerank") < 0.9, "{run}");
        assert_eq!(run["first_1000"]["librarian"], 1.0);
        assert!(run["ece"]["librarian"].as_f64().unwrap() < 0.1, "{run}");
    }

    let wrong =
        Command::new(env!("CARGO_BIN_EXE_archive-lab")).args(["orders", "--graph", "nowhere"]).output();
    let wrong = wrong.unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stderr).starts_with("archive-lab: nowhere"));
}

#[test]
fn focus_names_what_is_missing() {
    let words = "focus --archive nowhere --labels nowhere.tsv --train a --crawl b --topic c";
    let run = Command::new(env!("CARGO_BIN_EXE_archive-lab")).args(words.split(' ')).output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&run.stderr).contains("nowhere holds no archive"));
}

#[test]
fn subjects_are_predicted_for_the_sites_of_a_file_or_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, sites: std::ops::Range<usize>| {
        let kinds = [("Arts", "theatre"), ("Law", "court"), ("Health", "clinic")];
        let line = |site: usize| {
            let (subject, word) = kinds[site % 3];
            format!("{subject}\tThe {word} of place {site}\thttp://www.{word}{site}.example/\n")
        };
        let path = folder.path().join(name);
        std::fs::write(&path, format!("primary\ttitle\turl\n{}", sites.map(line).collect::<String>()))
            .unwrap();
        path
    };
    let (known, others) = (write("known.tsv", 0..60), write("others.tsv", 50..90));
    let run = |words: &[&std::ffi::OsStr]| {
        let run =
            Command::new(env!("CARGO_BIN_EXE_archive-lab")).arg("subjects").args(words).output().unwrap();
        (run.status.code(), String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap())
    };
    let judged =
        ["--json".as_ref(), "--selected".as_ref(), known.as_os_str(), "--judge".as_ref(), others.as_os_str()];
    let (code, text, error) = run(&judged);
    assert_eq!((code, text.lines().count()), (Some(0), 5), "{error}");
    let average: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&average["model"], &average["right"]), (&"average".into(), &1.0.into()), "{average}");
    assert_eq!((&average["learned"], &average["judged"]), (&60.into(), &30.into()));
    let (code, text, _) = run(&["--selected".as_ref(), known.as_os_str(), "--repeat".as_ref(), "2".as_ref()]);
    assert!(code == Some(0) && text.contains("naive bayes") && text.contains("± 95 %"), "{text}");
    let (code, _, error) = run(&["--selected".as_ref(), folder.path().join("nowhere").as_os_str()]);
    assert!(code == Some(1) && error.contains("nowhere"), "{error}");
}

#[test]
fn raters_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("raters.svg");
    let words = "raters --sites 20 --pages 100 --noise 0.4,0.1 --repeat 2 --svg";
    let run =
        Command::new(env!("CARGO_BIN_EXE_archive-lab")).args(words.split(' ')).arg(&file).output().unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success() && text.contains("opic links"), "{}", String::from_utf8_lossy(&run.stderr));
    let svg = std::fs::read_to_string(&file).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let lines = document.descendants().filter(|node| node.has_tag_name("polyline")).count();
    // Raters of both kinds of panels, seven kinds of importance, the commonest rating.
    assert_eq!(lines, 10);
    let wrong =
        Command::new(env!("CARGO_BIN_EXE_archive-lab")).args(["raters", "--noise", "0.1"]).output().unwrap();
    assert!(wrong.status.code() == Some(1) && String::from_utf8_lossy(&wrong.stderr).contains("--noise"));
}
