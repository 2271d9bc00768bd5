//! Files that users ask for are written completely, through links and to devices, or not at all.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use archive_testweb::Config;

use crate::crawl::everything;
use crate::support::program::{Finished, start};
use crate::support::{Archive, TestWeb, files_with};

fn crawled(seed: u64) -> Archive {
    let served = TestWeb::start(Config::plain(seed, 2, 12));
    let archive = Archive::new();
    start(&mut archive.crawl(&served.web.seeds(2), &everything(&served))).wait().succeeded();
    archive
}

fn export(archive: &Archive, format: &str, output: &Path) -> Finished {
    start(archive.command("export").arg(format).arg("--output").arg(output)).wait()
}

/// The target of /dev/stdout. A faulty program would replace /dev/stdout for the whole machine, but cannot replace this
/// link.
const STDOUT: &str = "/proc/self/fd/1";

/// Every command that writes a file, with the file's name.
const WRITERS: [(&str, &[&str], &str); 7] = [
    ("export", &["warc"], "out.warc"),
    ("export", &["wacz"], "out.wacz"),
    ("export", &["cdxj"], "out.cdxj"),
    ("export", &["parquet"], "out.parquet"),
    ("export", &["links"], "out.tsv"),
    ("review export", &[], "out.html"),
    ("rank", &[], "out.rank"),
];

#[test]
fn a_link_stays_and_its_target_is_replaced() {
    let archive = crawled(711);
    let elsewhere = archive.folder().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for (command, arguments, name) in WRITERS {
        let (target, link) = (elsewhere.join(name), archive.folder().join(name));
        fs::write(&target, "before").unwrap();
        symlink(Path::new("elsewhere").join(name), &link).unwrap();
        let write = || start(archive.command(command).args(arguments).arg("--output").arg(&link)).wait();
        write().succeeded();
        assert!(link.is_symlink(), "{name} is a link no more");
        let first = fs::read(&target).unwrap();
        assert!(first.len() > 6 && first != b"before", "{name}");
        // A link to a missing file creates that file.
        fs::remove_file(&target).unwrap();
        write().succeeded();
        assert!(link.is_symlink() && fs::metadata(&target).unwrap().len() > 6, "{name}");
    }
    assert!(
        files_with(archive.folder(), &[".part"]).is_empty() && files_with(&elsewhere, &[".part"]).is_empty()
    );
}

#[test]
fn forty_links_in_a_row_lead_to_an_output() {
    let archive = crawled(712);
    let place = |number: usize| archive.folder().join(format!("{number}.warc"));
    for number in 0..41 {
        symlink(format!("{number}.warc"), place(number + 1)).unwrap();
    }
    export(&archive, "warc", &place(40)).succeeded();
    assert!(place(0).is_file() && place(40).is_symlink());
    fs::remove_file(place(0)).unwrap();
    export(&archive, "warc", &place(41)).refused(1, &["41.warc", "links"]);
    assert!(!place(0).exists() && place(41).is_symlink());
}

#[test]
fn pipes_and_devices_are_written_to() {
    let archive = crawled(712);
    for (command, arguments, name) in WRITERS {
        let file = archive.folder().join(name);
        start(archive.command(command).args(arguments).arg("--output").arg(&file)).wait().succeeded();
        let expected = fs::read(&file).unwrap().len();
        let pipe = archive.folder().join(format!("{name}.fifo"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                fs::File::open(pipe).unwrap().read_to_end(&mut bytes).unwrap();
                bytes
            })
        };
        start(archive.command(command).args(arguments).arg("--output").arg(&pipe)).wait().succeeded();
        // Reports contain their time, and ZIP files have another layout if the output is not seekable.
        let near = |bytes: usize| bytes.abs_diff(expected) < 4096;
        let read = reader.join().unwrap().len();
        assert!(near(read), "{name}: {read} bytes of {expected} through a pipe");
        for output in ["-", STDOUT] {
            let mut command = archive.command(command);
            let out = start(command.args(arguments).args(["--output", output]).current_dir(archive.folder()));
            let bytes = out.wait().succeeded().output.len();
            assert!(near(bytes), "{name}: {bytes} bytes of {expected} to {output}");
        }
        assert!(!archive.folder().join("-").exists());
        assert_eq!(
            fs::metadata(&pipe).unwrap().mode() & 0o170_000,
            0o010_000,
            "{name}: the pipe is one no more"
        );
    }
}

#[test]
fn a_wacz_package_through_a_pipe_is_whole() {
    let archive = crawled(713);
    let out = start(archive.command("export").args(["wacz", "--output", "-"])).wait().succeeded();
    let again = Archive::new();
    let package = again.file("piped.wacz", out.output);
    start(again.command("import").arg(package)).wait().succeeded();
    assert_eq!(again.verify(), archive.verify());
}

/// If a shell redirects output to a file, standard output is that file and is appended to, not replaced.
#[test]
fn standard_output_that_is_a_file_is_added_to() {
    let archive = crawled(714);
    let file = archive.folder().join("all.txt");
    fs::write(&file, "before\n").unwrap();
    for output in ["-", STDOUT] {
        let out = fs::File::options().append(true).open(&file).unwrap();
        let mut command = archive.command("export");
        let status = command.args(["cdxj", "--output", output]).stdout(out).stderr(Stdio::null()).status();
        assert!(status.unwrap().success());
    }
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0] == "before" && lines.len() > 10 && lines.len() % 2 == 1, "{text}");
    assert_eq!(lines[1..=lines.len() / 2], lines[lines.len() / 2 + 1..]);
}

#[test]
fn an_export_that_matches_nothing_says_so_and_makes_no_file() {
    let archive = crawled(715);
    for format in ["warc", "wacz", "cdxj", "parquet", "links", "graph"] {
        let output = archive.folder().join(format);
        let run = |more: &[&str]| {
            let mut command = archive.command("export");
            command.arg(format).arg("--output").arg(&output).args(["--where", "host = nowhere.test"]);
            start(command.args(more)).wait()
        };
        run(&[]).refused(1, &["nothing", "host = nowhere.test", "--allow-empty"]);
        assert!(files_with(archive.folder(), &[format]).is_empty(), "{format}");
        run(&["--allow-empty"]).succeeded();
    }
    // An existing file is kept.
    let kept = archive.file("kept.warc", "before");
    let mut command = archive.command("export");
    command.args(["warc", "--where", "host = nowhere.test", "--output"]).arg(&kept);
    start(&mut command).wait().refused(1, &["nothing"]);
    assert_eq!(fs::read(&kept).unwrap(), b"before");
}

#[test]
fn a_file_keeps_its_permissions_and_stays_when_nothing_can_be_written() {
    let archive = crawled(716);
    let file = archive.file("all.warc", "before");
    let mode =
        |mode: u32| fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    mode(0o640);
    export(&archive, "warc", &file).succeeded();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
    // An existing file in the way of the new one may belong to somebody else.
    let victim = archive.file("victim", "untouched");
    symlink(&victim, archive.folder().join("all.warc.part")).unwrap();
    export(&archive, "warc", &file).refused(1, &["all.warc.part"]);
    assert_eq!(fs::read(&victim).unwrap(), b"untouched");
    fs::create_dir(archive.folder().join("folder")).unwrap();
    export(&archive, "warc", &archive.folder().join("folder")).refused(1, &["folder"]);
    let nowhere = export(&archive, "warc", Path::new("/nowhere/x")).refused(1, &["No such file"]);
    assert_eq!(nowhere.errors.matches("/nowhere").count(), 1, "{}", nowhere.errors);
}
