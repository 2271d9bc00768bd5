//! Identifiers of formats in PRONOM, the registry of the National Archives (UK), for what the web is made of.
//!
//! The signatures are those of its signature file (version 109), as far as the beginning of a file tells; a format whose
//! versions only a whole parse tells apart has no identifier here.

use memchr::memmem;

/// Bytes of a text in which its document type is looked for, as in PRONOM's signatures.
const TEXT_WITHIN: usize = 1024;

/// Name of a format, a place in the file and what stands there, and the identifier of the format that this tells.
const SIGNS: [(&str, usize, &[u8], &str); 57] = [
    ("pdf 1.0", 0, b"", "fmt/14"),
    ("pdf 1.1", 0, b"", "fmt/15"),
    ("pdf 1.2", 0, b"", "fmt/16"),
    ("pdf 1.3", 0, b"", "fmt/17"),
    ("pdf 1.4", 0, b"", "fmt/18"),
    ("pdf 1.5", 0, b"", "fmt/19"),
    ("pdf 1.6", 0, b"", "fmt/20"),
    ("pdf 1.7", 0, b"", "fmt/276"),
    ("pdf 2.0", 0, b"", "fmt/1129"),
    ("gif", 0, b"GIF87a", "fmt/3"),
    ("gif", 0, b"GIF89a", "fmt/4"),
    ("jpg", 6, b"JFIF\0\x01\0", "fmt/42"),
    ("jpg", 6, b"JFIF\0\x01\x01", "fmt/43"),
    ("jpg", 6, b"JFIF\0\x01\x02", "fmt/44"),
    ("webp", 12, b"VP8 ", "fmt/566"),
    ("webp", 12, b"VP8L", "fmt/567"),
    ("webp", 12, b"VP8X", "fmt/568"),
    ("tif", 0, b"", "fmt/353"),
    ("psd", 0, b"", "x-fmt/92"),
    ("ico", 0, b"", "x-fmt/418"),
    ("jp2", 0, b"", "x-fmt/392"),
    ("heif", 0, b"", "fmt/1101"),
    ("doc", 0, b"", "fmt/40"),
    ("xls", 0, b"", "fmt/61"),
    ("ppt", 0, b"", "fmt/126"),
    ("docx", 0, b"", "fmt/412"),
    ("xlsx", 0, b"", "fmt/214"),
    ("pptx", 0, b"", "fmt/215"),
    ("epub", 0, b"", "fmt/483"),
    ("zip", 0, b"", "x-fmt/263"),
    ("gz", 0, b"", "x-fmt/266"),
    ("bz2", 0, b"", "x-fmt/268"),
    ("tar", 0, b"", "x-fmt/265"),
    ("7z", 0, b"", "fmt/484"),
    ("xz", 0, b"", "fmt/1098"),
    ("rar", 0, b"Rar!\x1A\x07\x01\0", "fmt/613"),
    ("mp3", 0, b"", "fmt/134"),
    ("wav", 0, b"", "fmt/6"),
    ("flac", 0, b"", "fmt/279"),
    ("ogg", 28, b"vorbis", "fmt/203"),
    ("ogg", 29, b"vorbis", "fmt/203"),
    ("opus", 0, b"", "fmt/946"),
    ("avi", 0, b"", "fmt/5"),
    ("mp4", 8, b"mp42", "fmt/199"),
    ("mp4", 8, b"mp41", "fmt/199"),
    ("mp4", 8, b"isom", "fmt/199"),
    ("mp4", 8, b"iso2", "fmt/199"),
    ("mov", 0, b"", "x-fmt/384"),
    ("webm", 0, b"", "fmt/573"),
    ("mkv", 0, b"", "fmt/569"),
    ("flv", 0, b"FLV\x01", "x-fmt/382"),
    ("woff2", 0, b"", "fmt/1172"),
    ("otf", 0, b"", "fmt/520"),
    ("ttf", 0, b"", "x-fmt/453"),
    ("xml", 0, b"", "fmt/101"),
    ("html", 0, b"", "fmt/96"),
    ("text", 0, b"", "x-fmt/111"),
];

/// Returns the identifier of the format of a file; empty if that is not known.
pub(super) fn identifier(format: &str, body: &[u8]) -> &'static str {
    let beginning = body.get(..TEXT_WITHIN).unwrap_or(body);
    let has_chunk = |names: &[&str]| names.iter().any(|name| memmem::find(body, name.as_bytes()).is_some());
    match format {
        "png" if has_chunk(&["iTXt"]) => return "fmt/13",
        "png" if has_chunk(&["iCCP", "sPLT", "sRGB"]) => return "fmt/12",
        "png" => return "fmt/11",
        "html" if memmem::find(&beginning.to_ascii_lowercase(), b"<!doctype html>").is_some() => {
            return "fmt/471";
        }
        "svg" if memmem::find(beginning, b"version=\"1.1\"").is_some() => return "fmt/92",
        "svg" => return "fmt/91",
        _ => {}
    }
    let has = |at: usize, sign: &[u8]| body.get(at..).is_some_and(|rest| rest.starts_with(sign));
    let is_it = |(name, at, sign, _): &&(&str, usize, &[u8], &str)| *name == format && has(*at, sign);
    SIGNS.iter().find(is_it).map_or("", |(.., identifier)| identifier)
}
