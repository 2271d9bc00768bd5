//! Page requisites: style sheets, scripts and pictures. Every host has the same few files.

use std::sync::LazyLock;

use super::layout::Host;
use super::random::{Key, Subject};
use super::text::Append;
use super::xml;

/// Largest number of pictures of a host.
const PICTURES_MAX: u32 = 24;

const STYLE: &str = "@import \"/static/base.css\";\n\
    @font-face { font-family: Text; src: local(Georgia), url('/static/text.woff2') format('woff2'); }\n\
    body { background: #fff url(/img/background.png) repeat-x; font-family: Text, serif; margin: 0 auto; max-width: 60em; }\n\
    .menu { display: flex; flex-wrap: wrap; gap: 1em; list-style: none; }\n\
    .contents { background: #eee; float: right; padding: 1em; width: 16em; }\n\
    figure img { height: auto; max-width: 100%; }\n\
    .site-footer { border-top: 1px solid #999; color: #555; font-size: small; }\n";
const BASE_STYLE: &str = "html { box-sizing: border-box; }\n*, *::before { box-sizing: inherit; }\n\
    a { color: #036; }\nh1 { font-size: 1.6em; }\n";
const SCRIPT: &str = "document.addEventListener('DOMContentLoaded', function () {\n\
    \u{20}document.body.classList.add('has-script');\n\
    \u{20}var links = document.querySelectorAll('a.menu-link');\n\
    \u{20}links.forEach(function (link) { link.dataset.seen = '1'; });\n});\n";

/// A file that every host has.
#[derive(Clone, Copy, Debug)]
pub(super) struct File {
    pub(super) content_type: &'static str,
    pub(super) body: &'static [u8],
}

/// Appends the requisites in the head of a page.
pub(super) fn put_head(out: &mut Vec<u8>) {
    out.put(
        "<link rel=\"icon\" href=\"/favicon.ico\">\n<link rel=\"stylesheet\" href=\"/static/site.css\">\n",
    );
    out.put("<script src=\"/static/site.js\" defer></script>\n");
}

/// Appends the pictures of a page.
pub(super) fn put_figure(host: &Host, page: Key, out: &mut Vec<u8>) {
    for picture in pictures(host, page) {
        out.put("<figure><img src=\"/img/");
        out.put_number(picture);
        out.put(".png\" srcset=\"/img/");
        out.put_number(picture);
        out.put(".png 1x, /img/");
        out.put_number(picture);
        out.put("-2x.png 2x\" alt=\"\" width=\"16\" height=\"16\"></figure>\n");
    }
}

/// Returns the numbers of the pictures of a page, at most two.
fn pictures(host: &Host, page: Key) -> impl Iterator<Item = u64> {
    let supply = u64::from((host.pages / 8 + 1).min(PICTURES_MAX));
    let key = page.of(Subject::Requisites);
    let (first, second) = (key.at(2).below(supply), key.at(3).below(supply));
    let count = key.at(4).below(3) as usize;
    [first, second].into_iter().take(if first == second { count.min(1) } else { count })
}

/// Returns the paths that an HTML page and its style sheets need.
pub(super) fn requisites(host: &Host, page: Key) -> Vec<String> {
    let mut paths: Vec<String> = [
        "/favicon.ico",
        "/static/site.css",
        "/static/site.js",
        "/static/base.css",
        "/static/text.woff2",
        "/img/background.png",
    ]
    .map(String::from)
    .to_vec();
    for picture in pictures(host, page) {
        paths.push(format!("/img/{picture}.png"));
        paths.push(format!("/img/{picture}-2x.png"));
    }
    paths
}

/// Returns the file with this path.
pub(super) fn file(path: &[u8]) -> Option<File> {
    let (content_type, body): (_, &'static [u8]) = match path {
        b"/static/site.css" => ("text/css", STYLE.as_bytes()),
        b"/static/base.css" => ("text/css", BASE_STYLE.as_bytes()),
        b"/static/site.js" => ("text/javascript", SCRIPT.as_bytes()),
        b"/static/text.woff2" => ("font/woff2", b"wOF2 is only the signature of a font"),
        b"/static/article.xsl" => ("application/xslt+xml", xml::STYLE_SHEET.as_bytes()),
        b"/dtd/article.dtd" => ("application/xml-dtd", xml::DTD.as_bytes()),
        b"/dtd/legal.ent" => ("application/xml-external-parsed-entity", xml::LEGAL_NOTICE.as_bytes()),
        b"/favicon.ico" => ("image/png", &PICTURES[0]),
        _ => ("image/png", picture(path)?),
    };
    Some(File { content_type, body })
}

fn picture(path: &[u8]) -> Option<&'static [u8]> {
    let name = path.strip_prefix(b"/img/")?.strip_suffix(b".png")?;
    if name == b"background" {
        return Some(&PICTURES[1]);
    }
    let (number, is_large) = name.strip_suffix(b"-2x").map_or((name, false), |number| (number, true));
    let number = super::layout::decimal(number).filter(|number| *number < u64::from(PICTURES_MAX))?;
    PICTURES.get(2 + 2 * number as usize + usize::from(is_large)).map(Vec::as_slice)
}

/// All pictures: an icon, a background, then each picture in a small and a large version.
static PICTURES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    (0..2 + 2 * PICTURES_MAX).map(|index| png(if index % 2 == 0 { 16 } else { 32 }, index)).collect()
});

/// Returns a grey picture of `side` by `side` pixels of noise generated from `index`.
fn png(side: u32, index: u32) -> Vec<u8> {
    let mut pixels = Vec::new();
    let mut stream = Key::new(u64::from(index)).of(Subject::Bytes).stream();
    for _ in 0..side {
        pixels.push(0);
        pixels.extend((0..side).map(|_| stream.below(256) as u8));
    }
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut head = [side.to_be_bytes(), side.to_be_bytes()].concat();
    head.extend([8, 0, 0, 0, 0]);
    put_chunk(b"IHDR", &head, &mut file);
    put_chunk(b"IDAT", &zlib(&pixels), &mut file);
    put_chunk(b"IEND", b"", &mut file);
    file
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    // Writing to memory does not fail; if it did, the picture would be empty.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
}

fn put_chunk(name: &[u8; 4], content: &[u8], file: &mut Vec<u8>) {
    let mut checksum = flate2::Crc::new();
    checksum.update(name);
    checksum.update(content);
    file.extend((content.len() as u32).to_be_bytes());
    file.extend(name);
    file.extend(content);
    file.extend(checksum.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_whole() {
        for path in ["/favicon.ico", "/img/background.png", "/img/0.png", "/img/23-2x.png"] {
            let file = file(path.as_bytes()).unwrap();
            assert!(
                file.body.starts_with(b"\x89PNG\r\n\x1a\n") && file.body.ends_with(b"IEND\xae\x42\x60\x82"),
                "{path}"
            );
        }
        for path in ["/img/24.png", "/img/x.png", "/img/1-3x.png", "/static/", "/img/.png"] {
            assert!(file(path.as_bytes()).is_none(), "{path}");
        }
    }
}
