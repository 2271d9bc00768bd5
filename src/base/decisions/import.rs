//! Batches of decisions to import: from a filled-in sheet, or from the archive's cluster.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Decision, DecisionContent, DecisionVerdict, Decisions, DecisionsError, Statement, Subject};

/// One person's statements about several subjects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionImport {
    /// Time of the statements, to the second.
    #[serde(with = "crate::instant")]
    pub time: DateTime<Utc>,
    /// Name of the person.
    pub by: String,
    /// Whether rows are imported although they conflict with decisions made since the sheet was exported.
    pub overwrite: bool,
    /// The statements.
    pub rows: Vec<ImportRow>,
}

/// A statement about a subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportRow {
    /// The statement.
    pub said: Statement,
    /// When the filled-in sheet was exported, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exported: Option<ExportedAt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct ExportedAt(#[serde(with = "crate::instant")] DateTime<Utc>);

/// An import compared with the existing decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparedImport {
    /// New decisions to be added.
    pub new: Vec<Decision>,
    /// Number of rows that were imported before.
    pub had: usize,
    /// Indices of rows that conflict with a decision, with that decision. Of a row whose verdict conflicts with that of
    /// another person, the rest is new.
    pub conflicts: Vec<(usize, Decision)>,
}

impl ImportRow {
    /// Creates a row of a sheet that was exported at this time, if known.
    #[must_use]
    pub fn new(said: Statement, exported: Option<DateTime<Utc>>) -> Self {
        Self { said, exported: exported.map(ExportedAt) }
    }
}

impl DecisionImport {
    /// Checks that every row is a valid decision.
    ///
    /// # Errors
    /// When a row is not valid: the error of the first one.
    pub fn check(&self) -> Result<(), DecisionsError> {
        let none = Decisions::default();
        self.rows.iter().try_for_each(|row| {
            let on = &row.said.on;
            match on.to_string().parse::<Subject>() {
                Ok(read) if read == *on => none.check(&self.decision(row)),
                _ => Err(DecisionsError::Mistake(format!(
                    "'{on}' is no site, host, folder or page by its URL"
                ))),
            }
        })
    }

    fn decision(&self, row: &ImportRow) -> Decision {
        Decision {
            time: self.time,
            by: self.by.clone(),
            what: DecisionContent::Said(Box::new(row.said.clone())),
        }
    }

    /// Compares the import with the existing decisions.
    #[must_use]
    pub fn compare(&self, known: &Decisions) -> ComparedImport {
        let (before, newest) = (self.among(known), self.newest(known));
        let mut compared = ComparedImport::default();
        for (place, row) in self.rows.iter().enumerate() {
            if before.contains_key(&row.said) {
                compared.had += 1;
                continue;
            }
            let newest = newest.get(&row.said.on).copied().unwrap_or_default();
            let is_since = |decision: &&Decision| {
                row.exported.is_none_or(|ExportedAt(exported)| decision.time >= exported)
            };
            let mut said = row.said.clone();
            // Ratings of several people stand beside each other, but there is one verdict.
            let other = newest.verdict.filter(is_since).filter(|other| {
                said.verdict.is_some() && other.by != self.by && verdict_of(other) != said.verdict
            });
            if let Some(other) = other.filter(|_| !self.overwrite) {
                compared.conflicts.push((place, other.clone()));
                said.verdict = None;
                if said.mistake().is_some() {
                    continue;
                }
            }
            let new = self.decision(&ImportRow { said, exported: row.exported });
            let collides = row.exported.is_some() || replaces(known, &self.by, &row.said);
            match newest.own.filter(is_since).filter(|_| collides) {
                // The same sheet was imported again.
                Some(own) if own.what == new.what => compared.had += 1,
                Some(own) if !self.overwrite => compared.conflicts.push((place, own.clone())),
                _ => compared.new.push(new),
            }
        }
        compared
    }

    /// The newest decisions that count on each subject of the rows: of this person, and on the verdict.
    fn newest<'a>(&self, known: &'a Decisions) -> HashMap<&'a Subject, Newest<'a>> {
        let subjects: HashSet<&Subject> = self.rows.iter().map(|row| &row.said.on).collect();
        let mut newest: HashMap<&Subject, Newest<'_>> = HashMap::new();
        for (number, decision) in (1..).zip(known.log()) {
            if let DecisionContent::Said(said) = &decision.what
                && subjects.contains(&said.on)
                && !known.is_undone(number)
            {
                let found = newest.entry(&said.on).or_default();
                found.own = Some(decision).filter(|_| decision.by == self.by).or(found.own);
                found.verdict = Some(decision).filter(|_| said.verdict.is_some()).or(found.verdict);
            }
        }
        newest
    }

    /// Which of the existing decisions came from this import, by statement, with their numbers.
    #[must_use]
    pub fn among<'a>(&self, known: &'a Decisions) -> HashMap<&'a Statement, u64> {
        let rows: HashSet<&Statement> = self.rows.iter().map(|row| &row.said).collect();
        let made = (1..).zip(known.log()).filter_map(|(number, decision)| match &decision.what {
            DecisionContent::Said(said) if decision.time == self.time && decision.by == self.by => {
                Some((&**said, number))
            }
            _ => None,
        });
        made.filter(|(said, _)| rows.contains(said)).collect()
    }
}

/// The newest decisions on a subject.
#[derive(Clone, Copy, Default)]
struct Newest<'a> {
    /// By the person whose import it is.
    own: Option<&'a Decision>,
    /// With a verdict, by anybody.
    verdict: Option<&'a Decision>,
}

fn verdict_of(decision: &Decision) -> Option<DecisionVerdict> {
    if let DecisionContent::Said(said) = &decision.what { said.verdict } else { None }
}

/// Whether a statement would supersede a rating or a verdict by the same person.
fn replaces(known: &Decisions, by: &str, said: &Statement) -> bool {
    known.on(&said.on).is_some_and(|standing| {
        said.rating.is_some() && standing.ratings.contains_key(by)
            || said.verdict.is_some() && standing.verdict.as_ref().is_some_and(|(_, who, _)| who == by)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_decisions_are_taken_in_once_and_senseless_ones_are_refused() {
        let archive = tempfile::tempdir().unwrap();
        let said =
            |on: Subject| Statement { rating: Some(4), tags: vec!["maps".to_owned()], ..Statement::of(on) };
        let site = || Subject::Site("a.test".to_owned());
        let import = |on: Subject| DecisionImport {
            time: DateTime::from_timestamp(86_400, 0).unwrap(),
            by: "anna".to_owned(),
            overwrite: true,
            rows: vec![ImportRow::new(said(on), None)],
        };
        let mut known = Decisions::default();
        let compared = import(site()).compare(&known);
        assert_eq!((compared.new.len(), compared.had), (1, 0));
        known.add(archive.path(), compared.new).unwrap();
        // Even if something else was decided in between, and if the row contains tags only.
        let later = DecisionImport { by: "ben".to_owned(), ..import(site()) };
        known.add(archive.path(), later.compare(&known).new).unwrap();
        assert_eq!(import(site()).compare(&known), ComparedImport { had: 1, ..ComparedImport::default() });
        assert_eq!(import(site()).among(&known).into_values().collect::<Vec<_>>(), [1]);
        import(site()).check().unwrap();
        for wrong in [Subject::Site("http://a.test/".to_owned()), Subject::Page("a.test".to_owned())] {
            assert!(import(wrong).check().unwrap_err().to_string().contains("is no site, host"));
        }
        DecisionImport { by: String::new(), ..import(site()) }.check().unwrap_err();
    }
}
