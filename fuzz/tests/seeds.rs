//! Builds every fuzz target and lets it read its seeds: `fuzz/seeds/TARGET/` has one or two small files for each.
//!
//! Without instrumentation, a run only shows that the target works and that its seeds pass; `fuzz/run` does the
//! fuzzing.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Timeout for reading one seed, in seconds.
const SECONDS_MAX: u32 = 60;

/// Runs a target on its folder of seeds.
fn read_seeds(target: &str, program: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let seeds: Vec<_> =
        fs::read_dir(&folder).expect("a folder of seeds").flatten().map(|seed| seed.path()).collect();
    assert!(!seeds.is_empty(), "{} is empty", folder.display());
    let output = Command::new(program)
        .arg(format!("-timeout={SECONDS_MAX}"))
        .args(&seeds)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

macro_rules! targets {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            read_seeds(stringify!($name), env!(concat!("CARGO_BIN_EXE_", stringify!($name))));
        }
    )*};
}

targets! {
    answers batch catalogue cdxj css delta dictionary_frame feed graph html http_message office query robots segment_recovery sitemap
    state topic wacz warc_file warc_head xml
}
