//! Directives of a page to robots: `meta name=robots` and `X-Robots-Tag`.

use std::ops::BitOr;

/// The directives for one page. All are false by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RobotsDirectives {
    /// Searches must not find the page.
    pub noindex: bool,
    /// The page's links must not be followed.
    pub nofollow: bool,
    /// No copy of the page may be shown.
    pub noarchive: bool,
}

impl BitOr for RobotsDirectives {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self {
            noindex: self.noindex | other.noindex,
            nofollow: self.nofollow | other.nofollow,
            noarchive: self.noarchive | other.noarchive,
        }
    }
}

impl RobotsDirectives {
    /// Parses a list of directives such as `noindex, nofollow`. Unknown ones are ignored.
    #[must_use]
    pub fn parse(list: &str) -> Self {
        let mut directives = Self::default();
        for word in list.split(',').map(str::trim) {
            directives.noindex |= word.eq_ignore_ascii_case("noindex") || word.eq_ignore_ascii_case("none");
            directives.nofollow |= word.eq_ignore_ascii_case("nofollow") || word.eq_ignore_ascii_case("none");
            directives.noarchive |=
                word.eq_ignore_ascii_case("noarchive") || word.eq_ignore_ascii_case("nocache");
        }
        directives
    }

    /// Parses a value of `X-Robots-Tag`, which may begin with the robot that it is for: `otherbot: noindex`.
    #[must_use]
    pub fn parse_header(value: &str, robot: &str) -> Self {
        match value.split_once(':') {
            Some((name, list)) if is_robot_name(name) => {
                if name.trim().eq_ignore_ascii_case(robot) {
                    Self::parse(list)
                } else {
                    Self::default()
                }
            }
            _ => Self::parse(value),
        }
    }
}

/// Whether the text before a colon is a robot's name, not a directive with a value such as `unavailable_after: …`.
fn is_robot_name(name: &str) -> bool {
    const WITH_VALUE: [&str; 4] =
        ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];
    let name = name.trim();
    !name.contains(',') && !WITH_VALUE.iter().any(|directive| name.eq_ignore_ascii_case(directive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_names() {
        let none = RobotsDirectives::default();
        let both = RobotsDirectives { noindex: true, nofollow: true, ..none };
        assert_eq!(RobotsDirectives::parse("NoIndex , nofollow,all"), both);
        assert_eq!(RobotsDirectives::parse("none"), both);
        assert_eq!(RobotsDirectives::parse("index, follow"), none);
        assert_eq!(RobotsDirectives::parse("noarchive"), RobotsDirectives { noarchive: true, ..none });
        let header = |value| RobotsDirectives::parse_header(value, "archive");
        assert_eq!(header("noindex, nofollow"), both);
        assert_eq!(header("Archive: none"), both);
        assert_eq!(header("googlebot: none"), none);
        assert_eq!(header("unavailable_after: 25 Jun 2030 15:00:00 PST"), none);
        assert!(header("nofollow, unavailable_after: 25 Jun 2030").nofollow);
    }
}
