//! A small documentation site whose pages have more than one URL: `/` and `/index.html`, languages that fall back to
//! English, redirects. None of its pages ever changes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use archive_storage::Digest;

/// Number of chapters in English. Each has a German URL, every other one of which falls back to English.
const CHAPTERS: usize = 40;

/// Behaviour of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Manner {
    /// Answers with entity tags, and with 304 to clients that have the page.
    Validators,
    /// Answers with the page, whatever the client has.
    Whole,
    /// Answers with status 500 and an error page.
    OutOfOrder,
    /// Answers with bytes that are not HTTP.
    NoHttp,
    /// Answers with status 404.
    Gone,
}

/// An answer: status line, further head lines, body.
struct Answer {
    status: &'static str,
    head: String,
    body: String,
}

/// A site that is served until the process ends.
pub(crate) struct Site {
    root: String,
    manner: Arc<AtomicU8>,
}

impl Site {
    /// Serves the site on a free port.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        let manner = Arc::new(AtomicU8::new(Manner::Validators as u8));
        let (answers, now) = (Arc::new(answers()), Arc::clone(&manner));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, now) = (Arc::clone(&answers), Arc::clone(&now));
                // A crawler that disconnects ends only its own connection.
                thread::spawn(move || drop(serve(&stream, &answers, &now)));
            }
        });
        Self { root, manner }
    }

    /// Returns the URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    /// Changes the behaviour from now on.
    pub(crate) fn answer(&self, manner: Manner) {
        self.manner.store(manner as u8, Ordering::Relaxed);
    }

    /// Returns pairs of paths with the same page; the first path is the page's own.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        let fallback = |chapter| (format!("/c{chapter}.html"), format!("/de/c{chapter}.html"));
        let mut pairs: Vec<_> = (0..CHAPTERS).step_by(2).map(fallback).collect();
        pairs.push(("/".to_owned(), "/index.html".to_owned()));
        pairs
    }
}

fn page(language: &str, title: &str, text: &str, links: &[String]) -> Answer {
    let links: String = links.iter().map(|url| format!("<li><a href=\"{url}\">{url}</a></li>")).collect();
    let body = format!(
        "<!DOCTYPE html><html lang={language}><title>{title}</title><h1>{title}</h1><p>{text}</p><ul>{links}</ul></html>"
    );
    Answer { status: "200 OK", head: "Content-Type: text/html; charset=utf-8\r\n".to_owned(), body }
}

fn redirect(target: &str) -> Answer {
    // As long as an ordinary page, and the same for every target.
    let body = "<html><title>Moved</title><p>This page has moved.</p></html>".repeat(20);
    Answer { status: "301 Moved Permanently", head: format!("Location: {target}\r\n"), body }
}

fn answers() -> BTreeMap<String, Answer> {
    let english = "This chapter of the manual says what the command does and how it is used. ".repeat(8);
    let german =
        "Dieses Kapitel des Handbuchs sagt, was der Befehl tut und wie man ihn verwendet. ".repeat(8);
    let chapter = |number: usize| format!("/c{}.html", number % CHAPTERS);
    let mut answers = BTreeMap::new();
    for number in 0..CHAPTERS {
        let links = ["/index.html".to_owned(), chapter(number + 1), chapter(number * 7 + 3)];
        let title = format!("Chapter {number}");
        let in_english = || page("en", &title, &english, &links);
        answers.insert(chapter(number), in_english());
        let translated = match number % 2 {
            0 => in_english(),
            _ => page("de", &format!("Kapitel {number}"), &german, &links[..2]),
        };
        answers.insert(format!("/de{}", chapter(number)), translated);
    }
    let others = ["/old", "/moved/1", "/moved/2", "/small/1", "/small/2", "/gone"].map(str::to_owned);
    let all: Vec<String> = answers.keys().cloned().chain(others).collect();
    for home in ["/", "/index.html"] {
        answers.insert(home.to_owned(), page("en", "The manual", &english, &all));
    }
    // Too short to be deduplicated.
    for small in ["/small/1", "/small/2"] {
        answers.insert(small.to_owned(), page("en", "Small", "", &["/c1.html".to_owned()]));
    }
    answers.insert("/old".to_owned(), redirect("/"));
    answers.insert("/moved/1".to_owned(), redirect("/c1.html"));
    answers.insert("/moved/2".to_owned(), redirect("/c2.html"));
    answers
}

/// Answers requests on one connection.
fn serve(
    mut stream: &TcpStream,
    answers: &BTreeMap<String, Answer>,
    manner: &AtomicU8,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut known = None;
        line.clear();
        while reader.read_line(&mut line)? > 2 {
            let (name, value) = line.split_once(": ").unwrap_or_default();
            if name.eq_ignore_ascii_case("If-None-Match") {
                known = Some(value.trim().to_owned());
            }
            line.clear();
        }
        line.clear();
        let manner = manner.load(Ordering::Relaxed);
        let missing = Answer { status: "404 Not Found", head: String::new(), body: String::new() };
        let broken =
            Answer { status: "500 Internal Server Error", head: String::new(), body: "<a href=/>".into() };
        let answer = match answers.get(&path) {
            Some(_) if manner == Manner::OutOfOrder as u8 => &broken,
            Some(answer) if manner != Manner::Gone as u8 => answer,
            _ => &missing,
        };
        if manner == Manner::NoHttp as u8 {
            stream.write_all(b"220 mail.test ESMTP\r\n\r\n")?;
            return Ok(());
        }
        let Answer { status, head, body } = answer;
        let mut head = head.clone();
        if manner == Manner::Validators as u8 && *status == "200 OK" {
            let tag = format!("\"{}\"", &Digest::sha256(body.as_bytes()).to_string()[7..23]);
            if known.as_deref() == Some(tag.as_str()) {
                write!(stream, "HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n")?;
                continue;
            }
            head += &format!("ETag: {tag}\r\n");
        }
        write!(stream, "HTTP/1.1 {status}\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len())?;
    }
    Ok(())
}
