//! Batches of decisions to import: from a filled-in sheet, or from the archive's cluster.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Decision, Decisions, DecisionsError, Said, Subject, What};

/// One person's statements about several subjects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// Time of the statements, to the second.
    #[serde(with = "crate::instant")]
    pub time: DateTime<Utc>,
    /// Name of the person.
    pub by: String,
    /// Whether rows are imported although they conflict with decisions made since the sheet was exported.
    pub overwrite: bool,
    /// The statements.
    pub rows: Vec<Row>,
}

/// A statement about a subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The statement.
    pub said: Said,
    /// When the filled-in sheet was exported, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exported: Option<Exported>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Exported(#[serde(with = "crate::instant")] DateTime<Utc>);

/// An import compared with the existing decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// New decisions to be added.
    pub new: Vec<Decision>,
    /// Number of rows that were imported before.
    pub had: usize,
    /// Indices of rows that conflict with a decision, with that decision.
    pub conflicts: Vec<(usize, Decision)>,
}

impl Row {
    /// Creates a row of a sheet that was exported at this time, if known.
    #[must_use]
    pub fn new(said: Said, exported: Option<DateTime<Utc>>) -> Self {
        Self { said, exported: exported.map(Exported) }
    }
}

impl Import {
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

    fn decision(&self, row: &Row) -> Decision {
        Decision { time: self.time, by: self.by.clone(), what: What::Said(Box::new(row.said.clone())) }
    }

    /// Compares the import with the existing decisions.
    #[must_use]
    pub fn compare(&self, known: &Decisions) -> Compared {
        let before = self.among(known);
        let mut compared = Compared::default();
        for (place, row) in self.rows.iter().enumerate() {
            let new = self.decision(row);
            let collides = row.exported.is_some() || replaces(known, &self.by, &row.said);
            match since(known, &row.said.on, row.exported).filter(|_| collides) {
                _ if before.contains_key(&row.said) => compared.had += 1,
                // The same sheet was imported again.
                Some(other) if other.by == new.by && other.what == new.what => compared.had += 1,
                Some(other) if !self.overwrite => compared.conflicts.push((place, other.clone())),
                _ => compared.new.push(new),
            }
        }
        compared
    }

    /// Which of the existing decisions came from this import, by statement, with their numbers.
    #[must_use]
    pub fn among<'a>(&self, known: &'a Decisions) -> HashMap<&'a Said, u64> {
        let rows: HashSet<&Said> = self.rows.iter().map(|row| &row.said).collect();
        let made = (1..).zip(known.log()).filter_map(|(number, decision)| match &decision.what {
            What::Said(said) if decision.time == self.time && decision.by == self.by => {
                Some((&**said, number))
            }
            _ => None,
        });
        made.filter(|(said, _)| rows.contains(said)).collect()
    }
}

/// The newest decision on a subject that was made after the sheet was exported.
fn since<'a>(known: &'a Decisions, subject: &Subject, exported: Option<Exported>) -> Option<&'a Decision> {
    let decision = known.at(known.newest(subject))?;
    exported.is_none_or(|Exported(exported)| decision.time >= exported).then_some(decision)
}

/// Whether a statement would supersede a decision: a rating by the same person, or a verdict.
fn replaces(known: &Decisions, by: &str, said: &Said) -> bool {
    known.on(&said.on).is_some_and(|standing| {
        said.rating.is_some() && standing.ratings.contains_key(by)
            || said.verdict.is_some() && standing.verdict.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_decisions_are_taken_in_once_and_senseless_ones_are_refused() {
        let archive = tempfile::tempdir().unwrap();
        let said = |on: Subject| Said { rating: Some(4), tags: vec!["maps".to_owned()], ..Said::of(on) };
        let site = || Subject::Site("a.test".to_owned());
        let import = |on: Subject| Import {
            time: DateTime::from_timestamp(86_400, 0).unwrap(),
            by: "anna".to_owned(),
            overwrite: true,
            rows: vec![Row::new(said(on), None)],
        };
        let mut known = Decisions::default();
        let compared = import(site()).compare(&known);
        assert_eq!((compared.new.len(), compared.had), (1, 0));
        known.add(archive.path(), compared.new).unwrap();
        // Even if something else was decided in between, and if the row contains tags only.
        let later = Import { by: "ben".to_owned(), ..import(site()) };
        known.add(archive.path(), later.compare(&known).new).unwrap();
        assert_eq!(import(site()).compare(&known), Compared { had: 1, ..Compared::default() });
        assert_eq!(import(site()).among(&known).into_values().collect::<Vec<_>>(), [1]);
        import(site()).check().unwrap();
        for wrong in [Subject::Site("http://a.test/".to_owned()), Subject::Page("a.test".to_owned())] {
            assert!(import(wrong).check().unwrap_err().to_string().contains("is no site, host"));
        }
        Import { by: String::new(), ..import(site()) }.check().unwrap_err();
    }
}
