//! The table of shares: of each subject, how often the archive was asked and how often it was right.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// Number of wrong answers that are printed of each subject.
const WRONG_SHOWN: usize = 8;
/// Number of characters of them.
const TEXT_SHOWN: usize = 300;

#[derive(Default)]
pub(super) struct Table {
    rows: BTreeMap<&'static str, Row>,
    /// What was answered to each question.
    answers: BTreeMap<(&'static str, String), String>,
}

#[derive(Default)]
struct Row {
    right: usize,
    asked: usize,
    wrong: Vec<String>,
}

impl Table {
    /// Counts an answer.
    #[expect(clippy::needless_pass_by_value, reason = "most callers make both values for it")]
    pub(super) fn compare<T: Debug + PartialEq>(
        &mut self,
        subject: &'static str,
        question: &str,
        got: T,
        expected: T,
    ) {
        let row = self.rows.entry(subject).or_default();
        row.asked += 1;
        if got == expected {
            row.right += 1;
        } else {
            row.wrong.push(format!("{question}: {got:?}, not {expected:?}"));
        }
        self.answers.insert((subject, question.to_owned()), format!("{got:?}"));
    }

    /// Counts the answers of another table, too.
    pub(super) fn add(&mut self, other: Self) {
        for (subject, row) in other.rows {
            let own = self.rows.entry(subject).or_default();
            own.right += row.right;
            own.asked += row.asked;
            own.wrong.extend(row.wrong);
        }
        self.answers.extend(other.answers);
    }

    /// Prints all shares, and fails if one is below its bound; subjects without a bound must be right always.
    pub(super) fn holds(&self, bounds: &[(&str, f64)]) {
        let mut failed = Vec::new();
        for (subject, row) in &self.rows {
            let share = row.right as f64 / row.asked as f64;
            let bound = bounds.iter().find(|(known, _)| known == subject).map_or(1.0, |(_, bound)| *bound);
            println!("{subject:<34} {:>5} of {:>5}  {:>5.1} %", row.right, row.asked, 100.0 * share);
            if share < bound {
                failed.push(*subject);
            }
        }
        for (subject, row) in &self.rows {
            for wrong in row.wrong.iter().take(WRONG_SHOWN) {
                println!("{subject}: {}", wrong.chars().take(TEXT_SHOWN).collect::<String>());
            }
        }
        assert!(failed.is_empty(), "{failed:?} are below their bounds");
    }

    /// Counts the questions to which a second table has the same answer as the first.
    pub(super) fn compare_answers(&mut self, subject: &'static str, before: &Self, after: &Self) {
        for (question, answer) in &before.answers {
            self.compare(subject, &format!("{question:?}"), after.answers.get(question), Some(answer));
        }
    }
}
