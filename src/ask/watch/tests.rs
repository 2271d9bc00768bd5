//! Tests of the files of watches.

use super::*;

fn watch(name: &str) -> Watch {
    let since = DateTime::from_timestamp(1_770_000_000, 0).unwrap();
    let query = format!("page url ~ \"*{name}*\"");
    Watch { name: name.to_owned(), query, every_seconds: 3600, element: None, since, output: None }
}

#[test]
fn reports_follow_each_other_and_missed_periods_become_one() {
    let watch = watch("a");
    assert!(!watch.is_due(watch.since + TimeDelta::minutes(59)));
    assert!(watch.is_due(watch.since + TimeDelta::minutes(60)));
    assert!(!watch.is_overdue(watch.since + TimeDelta::minutes(119)));
    assert!(watch.is_overdue(watch.since + TimeDelta::days(9)));
    let archive = tempfile::tempdir().unwrap();
    save(archive.path(), &watch).unwrap();
    let report = WatchReport {
        watch: watch.name.clone(),
        query: watch.query.clone(),
        since: watch.since,
        until: watch.since + TimeDelta::days(9),
        pages: 3,
        not_fetched: 0,
        news: Vec::new(),
    };
    keep(archive.path(), &watch, &report, &[]).unwrap();
    let later = get(archive.path(), "a").unwrap();
    assert_eq!(later.since, report.until);
    assert!(!later.is_due(report.until + TimeDelta::minutes(1)), "nine days are one report");
    assert_eq!(latest(archive.path(), &later).unwrap(), Some(report));
    assert!(render(archive.path(), &later, Format::Text).unwrap().contains("nothing changed"));
}

#[test]
fn old_reports_are_removed() {
    let archive = tempfile::tempdir().unwrap();
    let watch = watch("a");
    for day in 0..REPORTS_MAX + 5 {
        let until = watch.since + TimeDelta::days(day as i64);
        let (name, query) = (watch.name.clone(), watch.query.clone());
        let report = WatchReport {
            watch: name,
            query,
            since: until,
            until,
            pages: 0,
            not_fetched: 0,
            news: Vec::new(),
        };
        keep(archive.path(), &Watch { since: until, ..watch.clone() }, &report, &[]).unwrap();
    }
    assert_eq!(json_files(&archive.path().join("watches/a")).unwrap().len(), REPORTS_MAX);
    remove(archive.path(), "a").unwrap();
    assert!(list(archive.path()).unwrap().is_empty() && !archive.path().join("watches/a").exists());
    assert!(matches!(get(archive.path(), "a"), Err(WatchError::Missing(_))));
}

#[test]
fn names_are_file_names() {
    let archive = tempfile::tempdir().unwrap();
    for name in ["", "A", "a/b", "../x", "-a", &"x".repeat(41)] {
        assert!(matches!(get(archive.path(), name), Err(WatchError::Name(_))), "{name}");
    }
    let query = "page host = \"www.example.org\" and importance > 2";
    assert_eq!(free_name(archive.path(), query), "host-www-example-org-and-importance");
    save(archive.path(), &watch("host-www-example-org-and-importance")).unwrap();
    assert_eq!(free_name(archive.path(), query), "host-www-example-org-and-importance-2");
    assert_eq!(free_name(archive.path(), "page"), "watch");
}
