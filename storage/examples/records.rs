//! Which records does a WARC file hold, and where is it broken?
//!
//! `cargo run -p archive-storage --example records -- FILE…` prints a line a record: offset, compressed length, type,
//! bytes of content and of payload, digests, URL; then what was broken.

use std::fs::File;

use archive_storage::Digest;
use archive_storage::warc::{ReadError, RecordReader};

fn verdict(claimed: Option<&str>, data: &[u8]) -> &'static str {
    match claimed.map(str::parse::<Digest>) {
        None => "-",
        Some(Err(_)) => "unknown",
        Some(Ok(digest)) if digest.matches(data) => "ok",
        Some(Ok(_)) => "differs",
    }
}

fn main() -> std::io::Result<()> {
    for name in std::env::args().skip(1) {
        let (mut records, mut broken) = (0, 0);
        for record in RecordReader::new(File::open(&name)?) {
            match record {
                Ok(record) => {
                    records += 1;
                    let header = &record.header;
                    println!(
                        "{:>10} {:>9} {} {} {} {} {} {}",
                        record.offset,
                        record.length,
                        header.record_type(),
                        record.content.len(),
                        record.payload().len(),
                        verdict(header.get("WARC-Block-Digest"), &record.content),
                        verdict(header.get("WARC-Payload-Digest"), &record.body()),
                        header.target_uri().unwrap_or("-")
                    );
                }
                Err(ReadError::Broken(place)) => {
                    broken += 1;
                    println!("{place}");
                }
                Err(error) => return Err(std::io::Error::other(error)),
            }
        }
        println!("{name}: {records} records, {broken} broken places");
    }
    Ok(())
}
