//! The difference of two texts for people: removed and added sentences, and the changed words in them.
//!
//! A text is given as the lines of a page's own text, one per block. Blocks are split into sentences, which are
//! compared first. Where sentences replace others, their words are compared.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline};

/// Time after which a comparison becomes a rough one.
const TIME_MAX: Duration = Duration::from_secs(2);

/// Maximum number of words of a passage that are compared one by one; a longer passage is shown entirely.
const WORDS_MAX: usize = 2000;

/// Minimum length of a sentence in bytes; shorter ones stay with the previous one.
const SENTENCE_BYTES_MIN: usize = 16;

/// What happened to a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextFate {
    /// It is in both versions.
    Same,
    /// It is only in the old version.
    Gone,
    /// It is only in the new version.
    New,
}

/// Consecutive words with the same fate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordRun {
    /// What happened to them.
    pub fate: TextFate,
    /// The words, with single spaces.
    pub text: String,
}

/// A place where the versions differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// The preceding sentence, which is in both versions; `None` at the beginning.
    pub before: Option<String>,
    /// Removed sentences.
    pub old: Vec<String>,
    /// Added sentences.
    pub new: Vec<String>,
    /// The words of both, if sentences replace others and there are not too many words; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<WordRun>,
}

/// Returns the places where `old` and `new` differ, in order, and whether time ran out, so that the result is rough.
/// Both are given as lines, one per block.
#[must_use]
pub fn passages<S: AsRef<str>, T: AsRef<str>>(old: &[S], new: &[T]) -> (Vec<Passage>, bool) {
    let old: Vec<&str> = old.iter().flat_map(|line| sentences(line.as_ref())).collect();
    let new: Vec<&str> = new.iter().flat_map(|line| sentences(line.as_ref())).collect();
    let deadline = Instant::now() + TIME_MAX;
    let mut passages: Vec<Passage> = Vec::new();
    let mut touches = false;
    for step in capture_diff_slices_deadline(Algorithm::Patience, &old, &new, Some(deadline)) {
        if step.tag() == DiffTag::Equal {
            touches = false;
            continue;
        }
        let (from, to) = (part(&old, &step, true), part(&new, &step, false));
        if !touches {
            let before = step.old_range().start.checked_sub(1).and_then(|place| old.get(place));
            passages.push(Passage {
                before: before.map(ToString::to_string),
                old: Vec::new(),
                new: Vec::new(),
                words: Vec::new(),
            });
        }
        touches = true;
        if let Some(passage) = passages.last_mut() {
            passage.old.extend(from.iter().map(ToString::to_string));
            passage.new.extend(to.iter().map(ToString::to_string));
        }
    }
    for passage in &mut passages {
        passage.words = words(&passage.old, &passage.new, deadline);
    }
    (passages, Instant::now() > deadline)
}

fn part<'a, 'b>(texts: &'a [&'b str], step: &DiffOp, is_old: bool) -> &'a [&'b str] {
    let range = if is_old { step.old_range() } else { step.new_range() };
    texts.get(range).unwrap_or_default()
}

/// Splits a block into sentences, after `.`, `!`, `?`, `…` and `。` followed by white space and no lower-case letter.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (sentence, after) = rest.split_at(sentence_end(rest));
        rest = after.trim_start();
        Some(sentence.trim_end())
    })
}

fn sentence_end(text: &str) -> usize {
    let mut ended = false;
    let mut spaced = false;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            spaced |= ended;
        } else if spaced && !c.is_lowercase() && at >= SENTENCE_BYTES_MIN {
            return at;
        } else {
            ended = matches!(c, '.' | '!' | '?' | '…' | '。')
                || (ended && matches!(c, '"' | '\'' | ')' | '”' | '»'));
            spaced = false;
        }
    }
    text.len()
}

fn words(old: &[String], new: &[String], deadline: Instant) -> Vec<WordRun> {
    let split = |texts: &[String]| -> Vec<String> {
        texts.iter().flat_map(|text| text.split_whitespace().map(ToOwned::to_owned)).collect()
    };
    let (old, new) = (split(old), split(new));
    if old.is_empty() || new.is_empty() || old.len() + new.len() > WORDS_MAX {
        return Vec::new();
    }
    let mut words = Vec::new();
    let mut put = |fate, part: &[String]| {
        if !part.is_empty() {
            words.push(WordRun { fate, text: part.join(" ") });
        }
    };
    for step in capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline)) {
        let (from, to) = (old.get(step.old_range()), new.get(step.new_range()));
        let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
        if step.tag() == DiffTag::Equal {
            put(TextFate::Same, to);
        } else {
            put(TextFate::Gone, from);
            put(TextFate::New, to);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{TextFate, passages, sentences};

    #[test]
    fn blocks_are_cut_into_sentences() {
        let cut = |line| sentences(line).collect::<Vec<_>>();
        assert_eq!(
            cut("The library opens at nine. It closes at five!  Who comes (if anybody)? We do."),
            ["The library opens at nine.", "It closes at five!", "Who comes (if anybody)?", "We do."]
        );
        assert_eq!(cut("About 3.5 of e.g. ten pages"), ["About 3.5 of e.g. ten pages"]);
        assert_eq!(cut("  "), Vec::<&str>::new());
    }

    #[test]
    fn only_differences_are_shown_with_their_words() {
        let old =
            ["Opening hours", "The library opens at nine every day. It closes at five in winter.", "Map"];
        let new = [
            "Opening hours",
            "The library opens at ten every day. It closes at five in winter.",
            "Map",
            "New",
        ];
        let (found, is_rough) = passages(&old, &new);
        assert!(!is_rough);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert_eq!(found[0].before.as_deref(), Some("Opening hours"));
        assert_eq!(found[0].old, ["The library opens at nine every day."]);
        assert_eq!(found[0].new, ["The library opens at ten every day."]);
        let words: Vec<_> = found[0].words.iter().map(|words| (words.fate, words.text.as_str())).collect();
        assert_eq!(
            words,
            [
                (TextFate::Same, "The library opens at"),
                (TextFate::Gone, "nine"),
                (TextFate::New, "ten"),
                (TextFate::Same, "every day.")
            ]
        );
        assert_eq!((found[1].old.len(), found[1].new.as_slice()), (0, &["New".to_owned()][..]));
        assert!(passages(&old, &old).0.is_empty());
    }
}
