//! Log-ins are kept private. How they open doors, `walls` tests.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::support::Archive;
use crate::support::answers::{Answers, field, html, nothing, whole};
use crate::support::program::{Finished, start};
use crate::walls::has_proof;

/// Adds a log-in, with a secret on standard input.
pub(crate) fn add(archive: &Archive, arguments: &[&str], secret: &str) -> Finished {
    let command = archive.command("login add");
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" < \"$SECRET\""]).env("SECRET", archive.file("secret", secret));
    start(shell.arg(command.get_program()).args(command.get_args()).args(arguments)).wait()
}

#[test]
fn log_ins_are_kept_private_and_forgotten() {
    let archive = Archive::new();
    let server = Answers::start(|_, path| match path {
        "/" => html("<title>a</title><a href=/1>1</a><a href=/2>2</a>"),
        "/1" | "/2" => whole(401, "WWW-Authenticate: Basic realm=x\r\n", b"closed"),
        _ => nothing(),
    });
    let crawl = || start(&mut archive.crawl(&["http://a.test/".to_owned()], &server.at_once())).wait();
    add(&archive, &["https://a.test", "--basic", "anna"], "x").refused(2, &["it has to be a host"]);
    add(&archive, &["a.test", "--basic", "anna"], "").refused(2, &["the password is empty"]);
    add(&archive, &["a.test"], "x").refused(2, &["--basic <NAME>"]);
    add(&archive, &["a.test", "--field", "Host"], "x").refused(2, &["the program sets this field itself"]);
    add(&archive, &["http://a.test", "--basic", "anna", "--shown"], "x").succeeded();
    assert!(!archive.path.join("access.toml").exists());
    let said = crawl().succeeded().errors;
    let shown = "a log-in (basic) is shown at http://a.test; access.toml shows everybody what it opens";
    assert!(said.contains(shown), "{said}");
    assert_eq!(said.matches("a.test refuses its log-in (status 401)").count(), 1, "{said}");
    let file = archive.path.join("secrets/logins.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
    crawl().refused(1, &["secrets/logins.json", "its mode is 604", "chmod 600"]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    archive.run("login remove", &["b.test"]).refused(2, &["there is no log-in for b.test"]);
    archive.run("login remove", &["http://a.test"]).succeeded();
    assert!(!crawl().succeeded().errors.contains("log-in"));
    assert!(archive.json::<&str>("login list", &[]).is_empty());
}

/// Two requests are on their way when a server first asks for a proof: each gets its turn.
#[test]
fn proofs_are_given_by_all_that_are_asked_at_the_same_time() {
    let server = Answers::with_heads(|_, path, head| match path {
        "/robots.txt" | "/sitemap.xml" => nothing(),
        "/a" | "/b" if has_proof(field(head, "Authorization"), path) => html("<title>open</title>"),
        _ => {
            thread::sleep(Duration::from_millis(500));
            whole(401, "WWW-Authenticate: Digest realm=\"x\", nonce=\"n\", qop=\"auth\"\r\n", b"closed")
        }
    });
    let archive = Archive::new();
    add(&archive, &["http://a.test", "--digest", "anna"], "d1gest-s3cret").succeeded();
    let seeds = ["http://a.test/a", "http://a.test/b"].map(str::to_owned);
    let said = start(&mut archive.crawl(&seeds, &server.at_once())).wait().succeeded().errors;
    assert!(!said.contains("refuses its log-in (status 401)"), "{said}");
    let open = archive.json("query", &["pages status = 200 select url", "--as-archivist"]);
    assert_eq!(open.len(), 2, "{open:?}");
}
