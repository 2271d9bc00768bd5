//! Streamed films: the playlists' best and smallest renditions are captured with their page.

use std::collections::BTreeSet;

use crate::support::answers::{Answers, html, nothing, whole};
use crate::support::program::start;
use crate::support::{Archive, captures};

const MASTER: &str = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300\nmid/list.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=900\nbest/list.m3u8\n\
                      #EXT-X-STREAM-INF:BANDWIDTH=100\nhttp://cdn.test/low/list.m3u8\n";

const MANIFEST: &str = "<MPD xmlns='urn:mpeg:dash:schema:mpd:2011' mediaPresentationDuration='PT20S'><Period><AdaptationSet>\
     <SegmentTemplate duration='10' media='$RepresentationID$-$Number$.m4s' initialization='$RepresentationID$.mp4'/>\
     <Representation id='a' bandwidth='1'/><Representation id='b' bandwidth='2'/><Representation id='c' bandwidth='3'/>\
     </AdaptationSet></Period></MPD>";

#[test]
fn a_film_is_captured_with_its_page() {
    let served = Answers::start(|_, path| {
        let of = |kind: &str, body: &str| whole(200, &format!("Content-Type: {kind}\r\n"), body.as_bytes());
        match path {
            "/" => html(
                "<title>Films</title><video src=/v/film.m3u8></video><video><source src=/d/film.mpd></video>",
            ),
            "/v/film.m3u8" => of("application/vnd.apple.mpegurl", MASTER),
            "/d/film.mpd" => of("application/dash+xml", MANIFEST),
            // Servers call them what they like.
            _ if path.ends_with(".m3u8") => of(
                "text/plain",
                "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"/key\"\n#EXTINF:9,\n1.ts\n#EXTINF:9,\n2.ts\n",
            ),
            _ if path.ends_with(".ts")
                || path.ends_with(".m4s")
                || path.ends_with(".mp4")
                || path == "/key" =>
            {
                of("video/mp2t", path)
            }
            _ => nothing(),
        }
    });
    let archive = Archive::new();
    let seeds = ["http://film.test/ scope=host".to_owned()];
    start(&mut archive.crawl(&seeds, &served.at_once())).wait().succeeded();
    let found: BTreeSet<String> = captures(&archive.path).urls();
    let of_host = |host: &str, paths: &[&str]| {
        paths.iter().map(|path| format!("http://{host}{path}")).collect::<Vec<_>>()
    };
    let mut expected: BTreeSet<String> = of_host(
        "film.test",
        &["/", "/v/film.m3u8", "/v/best/list.m3u8", "/v/best/1.ts", "/v/best/2.ts", "/key", "/d/film.mpd"],
    )
    .into_iter()
    .collect();
    expected.extend(of_host(
        "film.test",
        &["/d/a.mp4", "/d/a-1.m4s", "/d/a-2.m4s", "/d/c.mp4", "/d/c-1.m4s", "/d/c-2.m4s"],
    ));
    expected.extend(of_host("cdn.test", &["/low/list.m3u8", "/low/1.ts", "/low/2.ts", "/key"]));
    let found: BTreeSet<String> = found
        .into_iter()
        .filter(|url| !url.ends_with("/robots.txt") && !url.ends_with("/sitemap.xml"))
        .collect();
    assert_eq!(found, expected);
    let kinds = archive.json("query", &["count pages url ends with \".m3u8\" and type = other"]);
    assert_eq!(kinds[0]["count"], 3, "{kinds:?}");
}
