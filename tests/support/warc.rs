//! WARC files as any tool might have written them, including malformed ones.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Returns a record from its fields (one line each, without the length) and its block.
pub(crate) fn record(fields: &[&str], block: impl AsRef<[u8]>) -> Vec<u8> {
    let block = block.as_ref();
    let head = format!("WARC/1.1\r\n{}\r\nContent-Length: {}\r\n\r\n", fields.join("\r\n"), block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// Returns a response record for a URL.
pub(crate) fn response(id: &str, url: &str, date: &str, body: &str) -> Vec<u8> {
    answer(id, url, date, &[], &format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}"))
}

/// Returns a response record with additional fields.
pub(crate) fn answer(id: &str, url: &str, date: &str, more: &[&str], block: &str) -> Vec<u8> {
    let stated =
        [format!("WARC-Record-ID: <{id}>"), format!("WARC-Target-URI: {url}"), format!("WARC-Date: {date}")];
    let mut fields = vec!["WARC-Type: response", "Content-Type: application/http; msgtype=response"];
    fields.extend(stated.iter().map(String::as_str));
    fields.extend(more);
    record(&fields, block)
}

/// Returns a gzip member.
pub(crate) fn member(content: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(content).unwrap();
    packer.finish().unwrap()
}
