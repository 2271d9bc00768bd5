//! Any robots.txt is parsed, and any path can be checked against it.
#![no_main]

use archive_web::fetch::robots::Robots;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let split = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (path, file) = data.split_at(split);
    let robots = Robots::parse(file, "archive");
    let path = format!("/{}", String::from_utf8_lossy(path));
    let first = robots.check_path(&path).allowed;
    assert_eq!(Robots::parse(file, "archive").check_path(&path).allowed, first);
    assert!(robots.check_path("/robots.txt").allowed, "a robots.txt may always be fetched");
    assert!(robots.rule_count() <= file.len());
});
