//! What is kept of a parsed document.

use archive_web::parse::{ParseProblem, ParsedDocument, RobotsDirectives};

use super::facts::{CrawlerFacts, LINKS_PER_PAGE_MAX};

impl CrawlerFacts {
    /// Copies everything from a parsed document except its text.
    pub fn take_parsed(&mut self, parsed: ParsedDocument) {
        self.document = Some(parsed.kind);
        self.title = Some(parsed.title).filter(|title| !title.is_empty());
        self.language = parsed.language;
        self.signature = Some(parsed.signature);
        self.similarity = Some(parsed.similarity).filter(|similarity| *similarity != 0);
        self.directives = directives(parsed.robots);
        self.problems.extend(parsed.problems.iter().map(ToString::to_string));
        let dropped = parsed.links.len().saturating_sub(LINKS_PER_PAGE_MAX);
        if dropped > 0 {
            self.problems.push(ParseProblem::TooManyLinks { dropped }.to_string());
        }
        self.links = parsed.links;
        self.links.truncate(LINKS_PER_PAGE_MAX);
        for entry in parsed.entries {
            if let Some(link) = self.links.get_mut(entry.link as usize) {
                // An item that is listed twice has the later of its dates.
                link.modified = link.modified.max(Some(entry.modified));
            }
        }
    }
}

/// Returns the page's directives to robots, in the author's words.
fn directives(robots: RobotsDirectives) -> Option<String> {
    let words = [(robots.noindex, "noindex"), (robots.nofollow, "nofollow"), (robots.noarchive, "noarchive")];
    let said: Vec<&str> = words.into_iter().filter(|(is_said, _)| *is_said).map(|(_, word)| word).collect();
    (!said.is_empty()).then(|| said.join(", "))
}
