//! Knowledge without examples: a topic that is nothing but weighted words.
//!
//! What counts is the cosine between the words of the topic and those of a page, a URL or a link, where all other words
//! of the page count for its length: of two pages with the same words of the topic, the shorter one is more likely of
//! the topic. A sigmoid makes a probability of it. Its constants are the same for all topics: they were chosen on pages
//! of universities and hold for a phrase as well as for two hundred words, because a cosine has no unit.

use super::Knowledge;
use super::knowledge::{HEADING, TEXT, TITLE, Teller, URL};
use crate::learn::{HashedWords, Multinomial, TfIdf};

/// Share of pages of the topic among all, as long as nothing is known of them.
const PRIOR: f64 = 0.1;

/// Log-odds of a page: slope · cosine + constant.
const PAGE: (f64, f64) = (40.0, -4.0);

/// Log-odds of the target of a link, by its text or its URL. A link has few words, so that one of the topic's makes a
/// large cosine. The constant is the log-odds of [`PRIOR`].
const LINK: (f64, f64) = (5.0, -2.197);

/// How often a word in each part of a page counts.
const PARTS: [(u8, f64); 4] = [(TEXT, 1.0), (TITLE, 3.0), (HEADING, 2.0), (URL, 1.0)];

impl Knowledge {
    /// Knows a topic, class 1, by `words` in lower case with their weights (at least 0). All other pages are class 0.
    #[must_use]
    pub fn of_words(words: &[(String, f64)]) -> Self {
        let length = words.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
        let share = |weight: f64| if length > 0.0 { weight / length } else { 0.0 };
        let words: Vec<(&str, f64)> =
            words.iter().map(|(word, weight)| (word.as_str(), share(*weight))).collect();
        Self {
            pages: Teller::of_words(&words, &PARTS, PAGE),
            urls: Teller::of_words(&words, &[(URL, 1.0)], LINK),
            anchors: Teller::of_words(&words, &[(TEXT, 1.0)], LINK),
            // Pages of a topic link to others of it, half the time.
            leads_to: vec![vec![1.0 - PRIOR, PRIOR], vec![0.5, 0.5]],
            leaves: None,
        }
    }
}

impl Teller {
    fn of_words(words: &[(&str, f64)], parts: &[(u8, f64)], (slope, constant): (f64, f64)) -> Self {
        let mut known = HashedWords::default();
        let all = || parts.iter().flat_map(|part| words.iter().map(move |word| (part, word)));
        all().for_each(|((part, _), (word, _))| known.add(*part, word));
        let few = TfIdf::of_few(std::slice::from_ref(&known));
        let mut weights = vec![0.0_f32; 2 * (few.width() + 1)];
        for (&(part, times), (word, weight)) in all() {
            let mut one = HashedWords::default();
            one.add(part, word);
            for (place, _) in few.counts(&one) {
                weights[2 * place as usize + 1] += (slope * times * weight) as f32;
            }
        }
        weights[2 * few.width() + 1] = constant as f32;
        let model = Multinomial::of_weights(2, weights);
        Self { words: few, model, prior: vec![(1.0 - PRIOR).ln(), PRIOR.ln()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::focus::{Lead, TopicText};

    fn knowledge(words: &[&str]) -> Knowledge {
        Knowledge::of_words(&words.iter().map(|&word| (word.to_owned(), 1.0)).collect::<Vec<_>>())
    }

    fn of(knowledge: &Knowledge, title: &str, text: &str) -> f64 {
        knowledge.page(&TopicText { url: "http://a.test/", title, headings: Vec::new(), text })[1]
    }

    #[test]
    fn pages_are_known_by_words_alone() {
        let maps = knowledge(&["old", "maps"]);
        let other: String = (0..200).map(|word| format!("word{word} ")).collect();
        let about = of(&maps, "", &format!("old maps, maps and maps of an old world {other}"));
        let once = of(&maps, "", &format!("maps {other}"));
        assert!(about > 0.6 && once < 0.15 && about < 1.0, "{about} {once}");
        assert!(of(&maps, "Old maps", &other) > once);
        assert!(of(&maps, "", &other) < 0.05 && of(&maps, "", "") < 0.05);
        // A long description asks for no more of a page than a short one.
        let many: Vec<String> = (0..60).map(|word| format!("topic{word}")).collect();
        let many = knowledge(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let page: String = (0..20).map(|word| format!("topic{word} topic{word} ")).collect();
        assert!(of(&many, "", &format!("{page} {other}")) > 0.5);
        assert!(of(&many, "", &format!("topic1 topic2 {other}")) < 0.15);
    }

    #[test]
    fn links_are_known_by_words_alone() {
        let maps = knowledge(&["old", "maps"]);
        assert_eq!(maps.classes(), 2);
        assert!(maps.anchor("Old maps of London")[1] > 1.0 && maps.url("http://a.test/maps/")[1] > 0.0);
        // Links without a word of the topic say nothing.
        assert_eq!((maps.anchor("Contact")[1], maps.url("http://a.test/contact")[1]), (0.0, 0.0));
        let lead = Lead {
            target: 0,
            url: "http://a.test/x",
            anchor: "all maps",
            heading: "",
            context: "",
            place: 0,
        };
        assert!(maps.naming(&lead)[1] > 1.0 && maps.word("Maps", 1) > 0.0 && maps.word("house", 1) == 0.0);
        assert!(maps.lead_rate(&[0.0, 1.0], 1) > maps.lead_rate(&[1.0, 0.0], 1));
    }

    #[test]
    fn words_are_the_same_when_they_are_read_again() {
        let maps = knowledge(&["old", "maps"]);
        let again = Knowledge::from_bytes(&maps.to_bytes()).unwrap();
        assert_eq!(again.to_bytes(), maps.to_bytes());
        assert_eq!(of(&again, "Maps", "a map of the old world"), of(&maps, "Maps", "a map of the old world"));
        // No words, no topic.
        let nothing = Knowledge::from_bytes(&knowledge(&[]).to_bytes()).unwrap();
        assert!(of(&nothing, "Maps", "old maps") < 0.05 && nothing.anchor("maps") == [0.0, 0.0]);
    }
}
