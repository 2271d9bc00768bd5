//! The file of decisions: read in one go, and replaced by a longer one when decisions are added.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{CurrentDecisions, Decision, DecisionContent, NAME_BYTES_MAX, Subject};
use crate::erased::forgotten_name;
use crate::files::{self, FileError, WholeFile};

/// Name of the file in the archive's folder.
pub const FILE: &str = "decisions.jsonl";

/// Maximum number of decisions of an archive. Each new one rewrites all of them.
pub(crate) const DECISIONS_MAX: usize = 1_000_000;

/// Maximum size in bytes; a larger file is refused.
const BYTES_MAX: u64 = 1 << 30;

/// Replaces the reason of a decision whose page was erased.
const FORGOTTEN_NOTE: &str = "erased";

/// Why decisions cannot be read or added. Nothing is fetched while they cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecisionsError {
    /// The file cannot be read or written.
    #[error("the decisions {0}")]
    File(#[from] FileError),
    /// A line is malformed.
    #[error("{}, line {line}: {problem}; nothing is decided or fetched until it is fixed", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The decision is not valid.
    #[error("{0}")]
    Mistake(String),
    /// There are too many decisions.
    #[error("there are {DECISIONS_MAX} decisions already")]
    TooMany,
}

/// All decisions of an archive, and the current decisions on each subject.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    log: Vec<Decision>,
    /// Undone decisions, each with the newest decision that undoes it.
    undone: HashMap<u64, u64>,
    standings: HashMap<Subject, CurrentDecisions>,
}

/// How long a writer waits for other writers, and the interval between attempts.
const WAIT_MAX: Duration = Duration::from_secs(5);
const WAIT: Duration = Duration::from_millis(5);

impl Decisions {
    /// Reads the decisions of the archive in `path`; empty if there is no file.
    ///
    /// # Errors
    /// When the file cannot be read or a line is malformed.
    pub fn read(path: &Path) -> Result<Self, DecisionsError> {
        let path = path.join(FILE);
        let bytes = files::read_if_there(&path, BYTES_MAX).map_err(FileError::at(&path))?;
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        Self::parse(&bytes).map_err(|(line, problem)| DecisionsError::Line { path, line, problem })
    }

    fn parse(bytes: &[u8]) -> Result<Self, (usize, String)> {
        let mut decisions = Self::default();
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let problem = |problem: String| (number + 1, problem);
            let decision = serde_json::from_slice(line).map_err(|error| problem(error.to_string()))?;
            decisions.check(&decision).map_err(|error| problem(error.to_string()))?;
            decisions.log.push(decision);
        }
        decisions.settle();
        Ok(decisions)
    }

    /// The decisions in the order they were made; numbers start at 1.
    #[must_use]
    pub fn log(&self) -> &[Decision] {
        &self.log
    }

    /// Whether no decision is in effect.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.standings.is_empty()
    }

    /// The current decisions on exactly this subject.
    #[must_use]
    pub fn on(&self, subject: &Subject) -> Option<&CurrentDecisions> {
        self.standings.get(subject)
    }

    /// All subjects with current decisions.
    pub fn subjects(&self) -> impl Iterator<Item = (&Subject, &CurrentDecisions)> {
        self.standings.iter()
    }

    /// Number of the newest decision on a subject that was not undone; 0 if there is none.
    #[must_use]
    pub fn newest(&self, subject: &Subject) -> u64 {
        self.on(subject).map_or(0, |standing| standing.newest)
    }

    /// Number of the newest decision that concerns a subject, including undone ones and those that undo them; 0 if
    /// there is none.
    #[must_use]
    pub fn newest_word(&self, subject: &Subject) -> u64 {
        let is_meant = |undone: u64| match self.at(undone) {
            Some(Decision { what: DecisionContent::Said(said), .. }) => said.on == *subject,
            _ => false,
        };
        let undone = self.undone.iter().filter(|(undone, _)| is_meant(**undone));
        undone.map(|(_, by)| *by).fold(self.newest(subject), u64::max)
    }

    /// Adds decisions durably, all or none. Decisions that others have added in the meantime are read first. Returns
    /// the number of the first new decision.
    ///
    /// # Errors
    /// When a decision is invalid, the file is damaged or cannot be written, or somebody else is writing it.
    pub fn add(&mut self, archive: &Path, new: Vec<Decision>) -> Result<u64, DecisionsError> {
        // `stops` never returns anything, so there always is a number.
        Ok(self.add_unless(archive, new, |_| None::<()>)?.unwrap_or_default())
    }

    /// As [`Decisions::add`], unless `stops` returns a reason after reading what others have added; the file is locked
    /// meanwhile.
    ///
    /// # Errors
    /// As [`Decisions::add`].
    pub fn add_unless<T>(
        &mut self,
        archive: &Path,
        new: Vec<Decision>,
        stops: impl FnOnce(&Self) -> Option<T>,
    ) -> Result<Result<u64, T>, DecisionsError> {
        let path = archive.join(FILE);
        let file = begin(&path).map_err(FileError::at(&path))?;
        *self = Self::read(archive)?;
        if let Some(why) = stops(self) {
            return Ok(Err(why));
        }
        if self.log.len() + new.len() > DECISIONS_MAX {
            return Err(DecisionsError::TooMany);
        }
        let first = self.log.len() as u64 + 1;
        for decision in new {
            self.check(&decision)?;
            self.log.push(decision);
        }
        file.commit_lines(&self.log).map_err(FileError::at(&path))?;
        self.settle();
        Ok(Ok(first))
    }

    /// Removes the URLs of erased pages, and the reasons and notes written about them, from decisions on these pages.
    ///
    /// # Errors
    /// When the file cannot be read or written; it is then unchanged.
    pub fn forget(archive: &Path, urls: &HashSet<String>) -> Result<(), DecisionsError> {
        let mut decisions = Self::read(archive)?;
        let mut is_changed = false;
        for decision in &mut decisions.log {
            if let DecisionContent::Said(said) = &mut decision.what
                && let Subject::Page(url) = &said.on
                && urls.contains(url)
            {
                said.on = Subject::Page(forgotten_name(url));
                (said.reason, said.note) = (FORGOTTEN_NOTE.to_owned(), String::new());
                is_changed = true;
            }
        }
        if !is_changed {
            return Ok(());
        }
        let path = archive.join(FILE);
        let written = WholeFile::begin(&path).and_then(|file| file.commit_lines(&decisions.log));
        Ok(written.map_err(FileError::at(&path))?)
    }

    pub(super) fn check(&self, decision: &Decision) -> Result<(), DecisionsError> {
        check_name(&decision.by)?;
        match &decision.what {
            DecisionContent::Said(said) => {
                said.mistake().map_or(Ok(()), |what| Err(DecisionsError::Mistake(what)))
            }
            DecisionContent::Undoes(number) => match self.at(*number) {
                Some(Decision { what: DecisionContent::Said(_), .. }) => Ok(()),
                Some(_) => Err(DecisionsError::Mistake(format!("decision {number} is itself an undo"))),
                None => Err(DecisionsError::Mistake(format!("there is no decision {number}"))),
            },
        }
    }

    /// The decision with this number; numbers start at 1.
    #[must_use]
    pub fn at(&self, number: u64) -> Option<&Decision> {
        self.log.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Whether the decision with this number was undone.
    #[must_use]
    pub fn is_undone(&self, number: u64) -> bool {
        self.undone.contains_key(&number)
    }

    fn settle(&mut self) {
        let undone = |(number, decision): (u64, &Decision)| match decision.what {
            DecisionContent::Undoes(undone) => Some((undone, number)),
            DecisionContent::Said(_) => None,
        };
        self.undone = (1..).zip(&self.log).filter_map(undone).collect();
        let Self { log, undone, standings } = self;
        standings.clear();
        for (number, decision) in (1..).zip(&*log).filter(|(number, _)| !undone.contains_key(number)) {
            if let DecisionContent::Said(said) = &decision.what {
                standings.entry(said.on.clone()).or_default().hear(decision, said, number);
            }
        }
    }
}

/// Checks that a name is valid for a person who decides.
///
/// # Errors
/// When it is empty or too long.
pub fn check_name(by: &str) -> Result<(), DecisionsError> {
    if by.trim().is_empty() || by.len() > NAME_BYTES_MAX {
        return Err(DecisionsError::Mistake(format!(
            "the name of the person who decides must have 1 to {NAME_BYTES_MAX} bytes"
        )));
    }
    Ok(())
}

/// Opens the file for writing; waits up to [`WAIT_MAX`] while somebody else writes it.
fn begin(path: &Path) -> io::Result<WholeFile> {
    let begun = Instant::now();
    loop {
        match WholeFile::begin(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < WAIT_MAX => {
                thread::sleep(WAIT);
            }
            file => return file,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decisions::{DecisionVerdict, Statement};
    use chrono::{DateTime, Utc};

    fn decision(day: i64, by: &str, what: DecisionContent) -> Decision {
        let time = DateTime::<Utc>::from_timestamp(86_400 * day, 0).unwrap();
        Decision { time, by: by.to_owned(), what }
    }

    fn said(on: &str, change: impl Fn(&mut Statement)) -> DecisionContent {
        let mut said = Statement::of(on.parse().unwrap());
        change(&mut said);
        DecisionContent::Said(Box::new(said))
    }

    #[test]
    fn the_newest_word_counts_until_it_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let mut decisions = Decisions::read(folder.path()).unwrap();
        assert!(decisions.is_empty());
        let add = |decisions: &mut Decisions, new| decisions.add(folder.path(), vec![new]).unwrap();
        add(&mut decisions, decision(1, "anna", said("a.test", |said| said.rating = Some(4))));
        add(&mut decisions, decision(2, "ben", said("a.test", |said| said.rating = Some(1))));
        add(&mut decisions, decision(3, "anna", said("a.test", |said| said.rating = Some(2))));
        add(
            &mut decisions,
            decision(4, "ben", said("a.test", |said| said.verdict = Some(DecisionVerdict::Never))),
        );
        let site = "a.test".parse().unwrap();
        assert_eq!(decisions.on(&site).unwrap().rating(), Some(1.5));
        assert_eq!(add(&mut decisions, decision(5, "anna", DecisionContent::Undoes(3))), 5);
        let again = Decisions::read(folder.path()).unwrap();
        assert_eq!(again.log(), decisions.log());
        assert_eq!(again.on(&site), decisions.on(&site));
        assert_eq!((again.on(&site).unwrap().rating(), again.newest(&site)), (Some(2.5), 4));
        assert!(again.is_undone(3) && !again.is_undone(4));
        let error =
            decisions.add(folder.path(), vec![decision(6, "ben", DecisionContent::Undoes(5))]).unwrap_err();
        assert_eq!(error.to_string(), "decision 5 is itself an undo");
    }

    #[test]
    fn several_are_added_together_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let good = decision(1, "anna", said("a.test", |said| said.rating = Some(4)));
        let bad = decision(1, "anna", said("a.test", |said| said.rating = Some(9)));
        let mut decisions = Decisions::default();
        decisions.add(folder.path(), vec![good.clone(), bad]).unwrap_err();
        assert!(Decisions::read(folder.path()).unwrap().is_empty());
        // Two writers: decisions added by the other one are read first.
        let mut other = Decisions::default();
        other.add(folder.path(), vec![good.clone()]).unwrap();
        assert_eq!(decisions.add(folder.path(), vec![good]).unwrap(), 2);
    }

    #[test]
    fn a_forgotten_page_is_named_by_its_digest() {
        let folder = tempfile::tempdir().unwrap();
        let note = |said: &mut Statement| said.note = "about somebody".to_owned();
        let new = ["http://a.test/secret", "http://a.test/other"]
            .map(|page| decision(1, "anna", said(page, note)))
            .to_vec();
        Decisions::default().add(folder.path(), new).unwrap();
        Decisions::forget(folder.path(), &["http://a.test/secret".to_owned()].into()).unwrap();
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(!text.contains("secret") && text.contains("urn:sha256:") && text.contains("other"), "{text}");
        assert_eq!(text.matches("about somebody").count(), 1);
        assert_eq!(Decisions::read(folder.path()).unwrap().log().len(), 2);
    }

    #[test]
    fn narrower_words_count_and_tags_add_up() {
        let tagged = |tag: &str| {
            let tag = tag.to_owned();
            move |said: &mut Statement| said.tags = vec![tag.clone()]
        };
        let new = vec![
            decision(1, "anna", said("a.test", |said| said.verdict = Some(DecisionVerdict::Drop))),
            decision(1, "anna", said("a.test", tagged("site"))),
            decision(
                1,
                "anna",
                said("http://www.a.test/b/", |said| said.verdict = Some(DecisionVerdict::Keep)),
            ),
            decision(1, "anna", said("http://www.a.test/b/c", tagged("page"))),
            decision(1, "anna", said("http://www.a.test/b/c", tagged("-page"))),
            decision(1, "anna", said("host:www.a.test", |said| said.rating = Some(3))),
        ];
        let mut decisions = Decisions::default();
        decisions.add(tempfile::tempdir().unwrap().path(), new).unwrap();
        let of = |url: &str| decisions.of_page(url, "www.a.test", "a.test");
        let verdict = |standing: CurrentDecisions| standing.verdict.map(|(verdict, ..)| verdict);
        assert_eq!(verdict(of("http://www.a.test/b/c")), Some(DecisionVerdict::Keep));
        assert_eq!(verdict(of("http://www.a.test/b")), Some(DecisionVerdict::Drop));
        assert_eq!(of("http://www.a.test/b/c").tags, ["site".to_owned()].into());
        assert_eq!(of("http://www.a.test/b/c").rating(), Some(3.0));
        assert_eq!(verdict(decisions.of_page("http://b.test/", "b.test", "b.test")), None);
    }

    #[test]
    fn a_wrong_line_is_reported_with_its_number() {
        let parse = |line: &str| Decisions::parse(format!("\n{line}\n").as_bytes()).unwrap_err();
        let wrong = [
            ("{}", "missing field `time`"),
            (
                "{\"time\":\"2026-01-01T00:00:00Z\",\"by\":\" \",\"what\":{\"undoes\":1}}",
                "the name of the person who decides",
            ),
            ("{\"time\":\"2026-01-01T00:00:00Z\",\"by\":\"a\",\"what\":{\"undoes\":0}}", "no decision 0"),
            ("\u{0}", "expected value"),
        ];
        for (line, problem) in wrong {
            let (number, found) = parse(line);
            assert!(number == 2 && found.contains(problem), "{found}");
        }
    }
}
