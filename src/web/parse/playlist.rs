//! Playlists of streamed films: HLS (RFC 8216). Of the renditions of a film, the best and the smallest are links, so that
//! it can be seen over any line.

use super::LinkKind;

/// Maximum number of pieces of a rendition that are links: more than an hour in pieces of two seconds.
pub(super) const PIECES_MAX: usize = 2000;

/// First bytes of a playlist.
const MARK: &str = "#EXTM3U";

/// What a URL in a playlist is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaylistEntry<'a> {
    /// The playlist of a rendition, with the attributes of its tag.
    Rendition(&'a str),
    /// The playlist of a track that renditions share, such as a language, with the attributes of its tag.
    Track(&'a str),
    /// A piece of the film.
    Piece,
    /// A key or the beginning of all pieces.
    Start,
    /// Anything else, such as a list of single pictures.
    Other,
}

/// Whether a body begins as a playlist does.
pub(super) fn begins(body: &[u8]) -> bool {
    body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body).starts_with(MARK.as_bytes())
}

/// Calls `found` with every URL of a playlist as written, as a slice of `text`, and what it is for.
pub fn entries<'a>(text: &'a str, mut found: impl FnMut(&'a str, PlaylistEntry<'a>)) {
    let mut rendition = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let Some(tag) = line.strip_prefix('#') else {
            found(line, rendition.take().map_or(PlaylistEntry::Piece, PlaylistEntry::Rendition));
            continue;
        };
        let (name, attributes) = tag.split_once(':').unwrap_or((tag, ""));
        if name == "EXT-X-STREAM-INF" {
            rendition = Some(attributes);
        } else if let Some(url) = attribute(attributes, "URI") {
            found(
                url,
                match name {
                    "EXT-X-MEDIA" => PlaylistEntry::Track(attributes),
                    "EXT-X-KEY" | "EXT-X-SESSION-KEY" | "EXT-X-MAP" => PlaylistEntry::Start,
                    _ => PlaylistEntry::Other,
                },
            );
        }
    }
}

/// Calls `found` with every URL of a playlist that is fetched with it.
pub(super) fn urls(text: &str, mut found: impl FnMut(&str, LinkKind)) {
    let (mut renditions, mut tracks, mut pieces) = (Vec::new(), Vec::new(), 0);
    entries(text, |url, entry| match entry {
        PlaylistEntry::Rendition(attributes) => {
            let bits = attribute(attributes, "BANDWIDTH").and_then(|bits| bits.parse::<u64>().ok());
            renditions.push((bits.unwrap_or(0), url, attributes));
        }
        PlaylistEntry::Track(attributes) => tracks.push((url, attributes)),
        PlaylistEntry::Piece => {
            pieces += 1;
            if pieces <= PIECES_MAX {
                found(url, LinkKind::Media);
            }
        }
        PlaylistEntry::Start => found(url, LinkKind::Media),
        PlaylistEntry::Other => {}
    });
    let chosen = best_and_smallest(&renditions, |(bits, ..)| *bits);
    let groups: Vec<&str> = chosen
        .iter()
        .flat_map(|(.., attributes)| ["AUDIO", "VIDEO", "SUBTITLES"].map(|name| attribute(attributes, name)))
        .flatten()
        .collect();
    chosen.iter().for_each(|(_, url, _)| found(url, LinkKind::Media));
    for (url, attributes) in tracks {
        if attribute(attributes, "GROUP-ID").is_some_and(|group| groups.contains(&group)) {
            found(url, LinkKind::Media);
        }
    }
}

/// The one with the most bits a second, and the one with the fewest if that is another.
pub(super) fn best_and_smallest<T>(all: &[T], bits: impl Fn(&T) -> u64) -> Vec<&T> {
    let best = (0..all.len()).max_by_key(|at| bits(&all[*at]));
    let smallest = (0..all.len()).min_by_key(|at| bits(&all[*at])).filter(|at| Some(*at) != best);
    best.into_iter().chain(smallest).map(|at| &all[at]).collect()
}

/// The value of `NAME=value` or `NAME="value"` in a list (RFC 8216, section 4.2), without quotes.
fn attribute<'a>(mut list: &'a str, name: &str) -> Option<&'a str> {
    while let Some((key, rest)) = list.split_once('=') {
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => rest.split_at(rest.find(',').unwrap_or(rest.len())),
        };
        if key.trim() == name {
            return Some(value.trim());
        }
        list = rest.trim_start().trim_start_matches(',');
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        urls(text, |url, _| all.push(url.to_owned()));
        all
    }

    #[test]
    fn best_and_smallest_rendition_with_their_tracks() {
        let master = "#EXTM3U\n\
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"high\",NAME=\"English, stereo\",URI=\"en.m3u8\"\n\
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"other\",NAME=\"x\",URI=\"other.m3u8\"\n\
            #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"cc\",INSTREAM-ID=\"CC1\"\n\
            #EXT-X-STREAM-INF:BANDWIDTH=1280000,CODECS=\"a,b\",AUDIO=\"high\"\r\nmiddle.m3u8\r\n\
            #EXT-X-STREAM-INF:AUDIO=\"high\",BANDWIDTH=7680000\n\nhttps://cdn.test/best.m3u8?a=b\n\
            #EXT-X-STREAM-INF:BANDWIDTH=65000\nsmallest.m3u8\n\
            #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=100,URI=\"pictures.m3u8\"\n";
        assert_eq!(all(master), ["https://cdn.test/best.m3u8?a=b", "smallest.m3u8", "en.m3u8"]);
        assert_eq!(all("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n"), ["a.m3u8"]);
    }

    #[test]
    fn pieces_keys_and_beginnings() {
        let list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=AES-128,URI=\"k.bin\",IV=0x1\n\
            #EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:4,title, with=sign\n1.m4s\n#EXTINF:4,\n#EXT-X-BYTERANGE:9@0\n/x/2.m4s\n\
            # a comment: URI=\"no\"\n#EXT-X-ENDLIST\n";
        assert_eq!(all(list), ["k.bin", "init.mp4", "1.m4s", "/x/2.m4s"]);
        let long = format!("#EXTM3U\n{}", "a.ts\n".repeat(PIECES_MAX + 9));
        assert_eq!(all(&long).len(), PIECES_MAX);
        assert!(begins(b"\xEF\xBB\xBF#EXTM3U\r\n") && !begins(b"#EXTINF"));
        for broken in ["#EXT-X-KEY:URI=\"a", "#EXT-X-KEY:=,=,=\"", "#EXT-X-MEDIA:URI=\"\"", "#:", "#"] {
            assert!(all(broken).iter().all(String::is_empty), "{broken}");
        }
    }
}
