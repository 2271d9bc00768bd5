//! Bodies of hundreds of megabytes are stored through files: memory stays below the limit, and the stored content is
//! what the server sent, byte for byte.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use archive_storage::Digest;

use crate::support::Archive;
use crate::support::program::{Usage, start};
use crate::support::{captures, judges};

/// Bytes of each body.
const BODY_BYTES: usize = 150 << 20;

/// Number of simultaneous bodies.
const BODIES: usize = 2;

/// Limit for the memory of the crawl, in MiB; the bodies are half as large again.
const MEMORY_MIB: u64 = 200;

/// Returns a block that compresses to half its size; blocks differ by their number.
fn piece(number: usize) -> Vec<u8> {
    let mut piece = b"abcd".repeat(1 << 14);
    fastrand::Rng::with_seed(number as u64).fill(&mut piece[..1 << 15]);
    piece
}

/// Answers requests on one connection: odd numbers with chunks, even ones with a length.
fn serve(stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        line.clear();
        while reader.read_line(&mut line)? > 2 {
            line.clear();
        }
        line.clear();
        let mut out = BufWriter::new(stream);
        match path.trim_start_matches("/body/").parse::<usize>() {
            Ok(number) if number % 2 == 1 => {
                write!(
                    out,
                    "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nTransfer-Encoding: chunked\r\n\r\n"
                )?;
                for place in 0..BODY_BYTES >> 16 {
                    write!(out, "10000\r\n")?;
                    out.write_all(&piece(number + place))?;
                    write!(out, "\r\n")?;
                }
                write!(out, "0\r\n\r\n")?;
            }
            Ok(number) => {
                write!(
                    out,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
                )?;
                for place in 0..BODY_BYTES >> 16 {
                    out.write_all(&piece(number + place))?;
                }
            }
            Err(_) => write!(out, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?,
        }
        out.flush()?;
    }
    Ok(())
}

#[test]
fn bodies_longer_than_memory_are_stored_byte_for_byte() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A crawler that disconnects ends only its own connection.
            thread::spawn(move || drop(serve(&stream)));
        }
    });
    let archive = Archive::new();
    let urls: Vec<String> = (0..BODIES).map(|number| format!("http://{address}/body/{number}")).collect();
    let memory = format!("{MEMORY_MIB}MiB");
    let options =
        ["--delay", "0", "--allow-private", "--max-body", "256", "--memory", &memory, "--no-full-text"];
    let (finished, Usage { peak_mib: peak, .. }) = start(&mut archive.crawl(&urls, &options)).measure();
    let finished = finished.succeeded();
    println!("{BODIES} bodies of {} MiB in {:?}, {peak} MiB at most", BODY_BYTES >> 20, finished.elapsed);
    assert!(peak < MEMORY_MIB, "{peak} MiB");
    let captured = captures(&archive.path);
    assert_eq!(captured.urls().into_iter().filter(|url| url.contains("/body/")).count(), BODIES);

    let expected: Vec<Digest> = (0..BODIES)
        .map(|number| {
            let pieces = (0..BODY_BYTES >> 16).map(|place| piece(number + place));
            Digest::sha256(&pieces.collect::<Vec<_>>().concat())
        })
        .collect();
    for (url, expected) in urls.iter().zip(expected) {
        let got = archive.command("get").arg(url).output().unwrap();
        assert!(got.status.success(), "{}", String::from_utf8_lossy(&got.stderr));
        assert_eq!(got.stdout.len(), BODY_BYTES, "{url}");
        assert_eq!(Digest::sha256(&got.stdout), expected, "{url}");
    }
    // In addition, robots.txt and the usual sitemap.
    assert_eq!(archive.verify(), BODIES as u64 + 2);
    if let Some(judges) = judges::find() {
        judges.check(&archive.segments());
    }
}
