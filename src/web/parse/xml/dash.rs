//! Manifests of streamed films: DASH (ISO/IEC 23009-1). Of the representations of each track, the best and the smallest
//! are links, with all their segments.

use roxmltree::Node;

use super::super::playlist::{PIECES_MAX, best_and_smallest};
use super::{LinkKind, Outlinks};

/// Whether this is the root of a manifest.
pub(super) fn is_root(root: Node<'_, '_>) -> bool {
    root.tag_name().name() == "MPD"
        && root.tag_name().namespace().is_some_and(|name| name.contains("mpeg:dash"))
}

/// Adds the segments of a manifest.
pub(super) fn read(root: Node<'_, '_>, outlinks: &mut Outlinks) {
    let document = outlinks.base().clone();
    for period in children(root, "Period") {
        let seconds = period.attribute("duration").or(root.attribute("mediaPresentationDuration"));
        let seconds = seconds.and_then(seconds_of);
        for set in children(period, "AdaptationSet") {
            let all: Vec<Node<'_, '_>> = children(set, "Representation").collect();
            for chosen in best_and_smallest(&all, |node| number(*node, "bandwidth").unwrap_or(0)) {
                let levels = [*chosen, set, period, root];
                for level in levels.iter().rev() {
                    rebase(*level, outlinks);
                }
                Representation { levels, seconds }.read(outlinks);
                outlinks.set_base(document.clone(), encoding_rs::UTF_8);
            }
        }
    }
}

/// A version of a track.
struct Representation<'a, 'i> {
    /// Itself, and the elements around it.
    levels: [Node<'a, 'i>; 4],
    /// How long it lasts.
    seconds: Option<f64>,
}

impl<'a, 'i> Representation<'a, 'i> {
    fn read(&self, outlinks: &mut Outlinks) {
        if self.template("media").is_some() {
            return self.read_template(outlinks);
        }
        let lists: Vec<_> =
            self.levels.iter().filter_map(|level| children(*level, "SegmentList").next()).collect();
        let Some(list) = lists.first() else {
            // The segments are parts of one file.
            if children(self.levels[0], "BaseURL").next().is_some() {
                let whole = outlinks.base().to_string();
                outlinks.add(&whole, LinkKind::Media, false);
            }
            return;
        };
        let starts = children(*list, "Initialization").filter_map(|node| node.attribute("sourceURL"));
        let segments = children(*list, "SegmentURL").filter_map(|node| node.attribute("media"));
        for url in starts.chain(segments.take(PIECES_MAX)) {
            outlinks.add(url, LinkKind::Media, false);
        }
    }

    /// An attribute of the innermost template that has it.
    fn template(&self, name: &str) -> Option<&'a str> {
        let templates = self.levels.iter().filter_map(|level| children(*level, "SegmentTemplate").next());
        templates.filter_map(|template| template.attribute(name)).next()
    }

    fn read_template(&self, outlinks: &mut Outlinks) {
        let of_template = |name| self.template(name).and_then(|text| text.parse::<u64>().ok());
        let mut add = |template: &str, number: u64, time: u64| {
            outlinks.add(&self.filled(template, number, time), LinkKind::Media, false);
        };
        if let Some(start) = self.template("initialization") {
            add(start, 0, 0);
        }
        let Some(media) = self.template("media") else { return };
        let first = of_template("startNumber").unwrap_or(1);
        let scale = of_template("timescale").unwrap_or(1).max(1);
        let end = self.seconds.map(|seconds| (seconds * scale as f64) as u64);
        let times = match self.timeline() {
            Some(timeline) => times_of(timeline, end),
            None => {
                let Some(duration) = of_template("duration").filter(|duration| *duration > 0) else { return };
                (0..end.unwrap_or(0))
                    .step_by(usize::try_from(duration).unwrap_or(usize::MAX))
                    .take(PIECES_MAX)
                    .collect()
            }
        };
        for (number, time) in (first..).zip(times) {
            add(media, number, time);
        }
    }

    fn timeline(&self) -> Option<Node<'a, 'i>> {
        let templates = self.levels.iter().filter_map(|level| children(*level, "SegmentTemplate").next());
        templates.filter_map(|template| children(template, "SegmentTimeline").next()).next()
    }

    /// A template with its placeholders filled: `$Number%05d$`, `$Time$`, `$RepresentationID$`, `$Bandwidth$`, `$$`.
    fn filled(&self, template: &str, number: u64, time: u64) -> String {
        let mut filled = String::new();
        for (place, part) in template.split('$').enumerate() {
            if place % 2 == 0 {
                filled.push_str(part);
                continue;
            }
            let (name, width) = part.split_once("%0").unwrap_or((part, "1d"));
            let width = width.trim_end_matches('d').parse().unwrap_or(1).min(32);
            match name {
                "" => filled.push('$'),
                "RepresentationID" => filled.push_str(self.levels[0].attribute("id").unwrap_or_default()),
                "Number" => filled.push_str(&format!("{number:0width$}")),
                "Time" => filled.push_str(&format!("{time:0width$}")),
                "Bandwidth" => {
                    let bits = self::number(self.levels[0], "bandwidth").unwrap_or(0);
                    filled.push_str(&format!("{bits:0width$}"));
                }
                _ => {}
            }
        }
        filled
    }
}

/// When the segments of a timeline begin, in its units; `end` is where a repetition without a number ends.
fn times_of(timeline: Node<'_, '_>, end: Option<u64>) -> Vec<u64> {
    let (mut times, mut time) = (Vec::new(), 0_u64);
    for run in children(timeline, "S") {
        time = number(run, "t").unwrap_or(time);
        let Some(duration) = number(run, "d").filter(|duration| *duration > 0) else { continue };
        let repeated = match run.attribute("r").and_then(|text| text.parse::<i64>().ok()).unwrap_or(0) {
            more @ 0.. => more as u64,
            _ => end.map_or(0, |end| end.saturating_sub(time).div_ceil(duration).saturating_sub(1)),
        };
        for _ in 0..=repeated {
            if times.len() >= PIECES_MAX {
                return times;
            }
            times.push(time);
            time = time.saturating_add(duration);
        }
    }
    times
}

/// Resolves the base that an element declares against the one around it.
fn rebase(level: Node<'_, '_>, outlinks: &mut Outlinks) {
    let declared = children(level, "BaseURL").next().and_then(|base| base.text());
    if let Some(base) = declared.and_then(|base| outlinks.base().join(base.trim()).ok()) {
        outlinks.set_base(base, encoding_rs::UTF_8);
    }
}

fn children<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.tag_name().name() == name)
}

fn number(node: Node<'_, '_>, name: &str) -> Option<u64> {
    node.attribute(name)?.parse().ok()
}

/// Seconds of a span such as `PT1H2M3.5S` (XML Schema, duration), without years and months.
fn seconds_of(text: &str) -> Option<f64> {
    let (mut seconds, mut digits) = (0.0, String::new());
    for unit in text.trim().strip_prefix('P')?.chars() {
        let factor = match unit {
            '0'..='9' | '.' => {
                digits.push(unit);
                continue;
            }
            'T' => continue,
            'D' => 86_400.0,
            'H' => 3600.0,
            'M' => 60.0,
            'S' => 1.0,
            _ => return None,
        };
        seconds += factor * digits.parse::<f64>().ok()?;
        digits.clear();
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{FetchedDocument, ParseLimits, parse};

    fn all(inside: &str) -> Vec<String> {
        let body = format!(
            "<MPD xmlns='urn:mpeg:dash:schema:mpd:2011' mediaPresentationDuration='PT1M10S'>{inside}</MPD>"
        );
        let url = "http://a.test/v/film.mpd".parse().unwrap();
        let (content_type, body) = (Some("application/dash+xml"), body.as_bytes());
        let source = FetchedDocument { url: &url, status: 200, content_type, headers: &[], body };
        let links = parse(&source, &ParseLimits::default()).links;
        let links = links.into_iter().filter(|link| link.kind == LinkKind::Media);
        links.map(|link| link.url.trim_start_matches("http://a.test/v/").to_owned()).collect()
    }

    #[test]
    fn templates_by_number_of_the_best_and_the_smallest() {
        let manifest = "<Period><AdaptationSet><SegmentTemplate timescale='10' duration='300' startNumber='5' \
            media='$RepresentationID$/$Number%03d$-$Bandwidth$.m4s' initialization='$RepresentationID$/i$$.mp4'/>\
            <Representation id='low' bandwidth='10'/><Representation id='mid' bandwidth='20'/>\
            <Representation id='high' bandwidth='30'/></AdaptationSet></Period>";
        let of = |name: &str, bits: u32| {
            [
                format!("{name}/i$.mp4"),
                format!("{name}/005-{bits}.m4s"),
                format!("{name}/006-{bits}.m4s"),
                format!("{name}/007-{bits}.m4s"),
            ]
        };
        assert_eq!(all(manifest), [of("high", 30), of("low", 10)].concat());
    }

    #[test]
    fn timelines_lists_and_whole_files() {
        let timeline = "<Period duration='PT0H0M10S'><BaseURL>p/</BaseURL><AdaptationSet><BaseURL>http://b.test/</BaseURL>\
            <Representation id='r'><SegmentTemplate timescale='2' media='$Time$.m4s'><SegmentTimeline><S t='4' d='2' r='1'/>\
            <S d='3'/><S d='3' r='-1'/></SegmentTimeline></SegmentTemplate></Representation></AdaptationSet></Period>";
        assert_eq!(
            all(timeline),
            ["4", "6", "8", "11", "14", "17"].map(|time| format!("http://b.test/{time}.m4s"))
        );
        let list = "<Period><AdaptationSet><Representation><SegmentList><Initialization sourceURL='i.mp4'/>\
            <SegmentURL media='1.m4s'/><SegmentURL mediaRange='0-9'/><SegmentURL media='2.m4s'/></SegmentList>\
            </Representation></AdaptationSet></Period>";
        assert_eq!(all(list), ["i.mp4", "1.m4s", "2.m4s"]);
        let whole = "<Period><AdaptationSet><Representation><BaseURL>all.mp4</BaseURL><SegmentBase indexRange='1-2'/>\
            </Representation></AdaptationSet></Period>";
        assert_eq!(all(whole), ["all.mp4"]);
    }

    #[test]
    fn what_has_no_end_is_bounded() {
        let endless = |inside: &str| {
            all(&format!("<Period duration='P99999D'><AdaptationSet><Representation><SegmentTemplate media='$Number$$Time%099999d$' {inside}</SegmentTemplate></Representation></AdaptationSet></Period>")).len()
        };
        assert_eq!(endless("duration='1'>"), PIECES_MAX);
        assert_eq!(endless("><SegmentTimeline><S d='1' r='999999999999'/></SegmentTimeline>"), PIECES_MAX);
        assert_eq!(
            endless("duration='0'>") + endless("><SegmentTimeline><S d='0' r='9'/></SegmentTimeline>"),
            0
        );
        assert_eq!(seconds_of("P1DT1H1M1.5S"), Some(90_061.5));
        assert_eq!((seconds_of("1H"), seconds_of("PT.S")), (None, None));
    }
}
