//! Any sitemap, as XML, as a list of lines or in gzip, is read within the limits.
#![no_main]

use libfuzzer_sys::fuzz_target;

const START: &str = r#"<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">"#;

fuzz_target!(|data: &[u8]| {
    let Some((form, data)) = data.split_first() else { return };
    match form % 3 {
        0 => {
            let sitemap = [START.as_bytes(), data, b"</urlset>"].concat();
            archive_fuzz::read_document("application/xml", &sitemap);
        }
        1 => drop(archive_fuzz::read_document("text/plain", data)),
        _ => drop(archive_fuzz::read_document("application/gzip", data)),
    }
});
