//! An archive served by the program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};

use super::Archive;

/// A running `archive serve`, stopped when this is dropped.
pub(crate) struct Served {
    child: Child,
    /// Addresses and ports of the two origins.
    pub(crate) application: String,
    pub(crate) replay: String,
    /// Addresses of additional archives.
    pub(crate) further: Vec<(String, String)>,
}

/// An HTTP answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Header fields; names in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Served {
    /// Serves an archive on free ports.
    pub(crate) fn of(archive: &Archive) -> Self {
        Self::with(archive, &[])
    }

    /// Serves an archive on free ports with additional options.
    pub(crate) fn with(archive: &Archive, options: &[&str]) -> Self {
        let mut command = archive.command("serve");
        command.args(options);
        command.args(["--listen", "127.0.0.1:0", "--replay-listen", "127.0.0.1:0"]);
        Self::spawn(&mut command, 1)
    }

    /// Starts a command that serves this many archives.
    pub(crate) fn spawn(command: &mut Command, archives: usize) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(archives);
        let addresses = lines.map(|line| {
            let line = line.unwrap();
            let mut found =
                line.split("http://").skip(1).map(|rest| rest.split('/').next().unwrap().to_owned());
            (found.next().unwrap(), found.next().unwrap())
        });
        let mut further: Vec<_> = addresses.collect();
        let (application, replay) = further.remove(0);
        Self { child, application, replay, further }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops the server and waits for its end.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request; `fields` are additional lines of the head.
pub(crate) fn ask(address: &str, method: &str, path: &str, fields: &[&str]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !fields.iter().any(|field| field.starts_with("Host:")) {
        head += &format!("Host: {address}\r\n");
    }
    for field in fields {
        head += &format!("{field}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let body = answer.split_off(end + 4);
    let head = String::from_utf8(answer).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let field =
        |line: &str| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    Answer { status, fields: lines.filter_map(field).collect(), body }
}

impl Answer {
    /// Its body without chunks.
    pub(crate) fn content(&self) -> Vec<u8> {
        if self.get("transfer-encoding") != Some("chunked") {
            return self.body.clone();
        }
        let (mut chunks, mut content) = (archive_storage::warc::Dechunker::default(), Vec::new());
        chunks.feed(&self.body, |data| content.extend_from_slice(data));
        content
    }

    /// Returns the value of a field by its lower-case name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}
