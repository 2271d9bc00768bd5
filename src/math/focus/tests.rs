//! A small web of recipes among news.

use std::sync::Arc;

use super::*;
use crate::importance::order::tests::TestQueue;

const RECIPE: usize = 0;
const NEWS: usize = 1;

fn page<'a>(url: &'a str, title: &'a str, text: &'a str) -> TopicText<'a> {
    TopicText { url, title, headings: vec![title], text }
}

fn knowledge() -> Arc<Knowledge> {
    let urls: Vec<String> =
        (0..20).map(|i| format!("http://{i}.org/{}/{i}.html", ["cook", "paper"][i % 2])).collect();
    let examples: Vec<LabelledPage<'_>> = urls
        .iter()
        .enumerate()
        .map(|(i, url)| {
            let (title, text) =
                [("Apple pie", "flour oven recipe butter"), ("Election", "minister vote report")][i % 2];
            // Every page links to the next one of its class.
            let target = (i + 2) % 20;
            let lead = Lead {
                target: target as u32,
                url: &urls[target],
                anchor: title,
                heading: "",
                context: "",
                place: 0,
            };
            LabelledPage { text: page(url, title, text), class: [RECIPE, NEWS][i % 2], leads: vec![lead] }
        })
        .collect();
    Arc::new(Knowledge::learn(&examples, 2, Model::Logistic))
}

#[test]
fn examples_teach_classes_of_pages_and_links() {
    let knowledge = knowledge();
    let recipe = knowledge.page(&page("http://x.org/cook/1.html", "Pie", "butter and flour"));
    let news = knowledge.page(&page("http://x.org/paper/1.html", "Vote", "a minister"));
    assert!(recipe[RECIPE] > 0.7 && news[NEWS] > 0.7, "{recipe:?} {news:?}");
    assert!(knowledge.url("http://y.org/cook/")[RECIPE] > 0.0);
    assert!(knowledge.anchor("apple pie")[RECIPE] > 0.0 && knowledge.anchor("election")[RECIPE] < 0.0);
    let list = Lead {
        target: 0,
        url: "http://y.org/all",
        anchor: "recipe list",
        heading: "",
        context: "",
        place: 0,
    };
    assert!(knowledge.naming(&list)[RECIPE] > 0.0);
    // Unknown words are neutral.
    assert_eq!(knowledge.anchor("xyzzy"), [0.0, 0.0]);
    assert!(knowledge.lead_rate(&[1.0, 0.0], RECIPE) > 0.8);
    assert_eq!(knowledge.classes(), 2);
}

/// Lets `focus` fetch pages 0 to 9; page 0 links to all others. Returns the order of fetching.
fn crawl(focus: &mut dyn Focus, is_recipe: impl Fn(u32) -> bool) -> Vec<u32> {
    let urls: Vec<String> = (0..10)
        .map(|i| format!("http://a.org/{}/{i}.html", if is_recipe(i) { "cook" } else { "paper" }))
        .collect();
    let mut queue = TestQueue::default();
    focus.begin(&[(0, &urls[0])], &mut queue);
    let mut fetched = Vec::new();
    while let Some(number) = queue.take() {
        fetched.push(number);
        let text = page(&urls[number as usize], "", "");
        let leads: Vec<Lead<'_>> = (1..10)
            .filter(|_| number == 0)
            .map(|target| Lead {
                target,
                url: &urls[target as usize],
                anchor: "",
                heading: "",
                context: "",
                place: target - 1,
            })
            .collect();
        let p = if is_recipe(number) { 0.9 } else { 0.1 };
        focus.fetched(
            &FetchedPage { page: number, classes: &[p, 1.0 - p], text: &text, leads: &leads },
            &mut queue,
        );
    }
    fetched
}

#[test]
fn the_learned_order_follows_words_and_says_why() {
    let knowledge = knowledge();
    let mut learned = LearnedFocus::new(Arc::clone(&knowledge), RECIPE, "recipe", Tuning::default());
    let order = crawl(&mut learned, |page| page % 3 == 1);
    assert_eq!(order[0], 0);
    let mut first = order[1..4].to_vec();
    first.sort_unstable();
    assert_eq!(first, [1, 4, 7], "{order:?}");
    assert_eq!(order.len(), 10);
    // Waiting pages have parts; fetched pages do not.
    let mut learned = LearnedFocus::new(Arc::clone(&knowledge), RECIPE, "recipe", Tuning::default());
    let mut queue = TestQueue::default();
    learned.begin(&[(0, "http://a.org/")], &mut queue);
    let text = page("http://a.org/", "", "");
    let lead = Lead {
        target: 1,
        url: "http://a.org/all",
        anchor: "All recipes",
        heading: "",
        context: "",
        place: 0,
    };
    learned.fetched(&FetchedPage { page: 0, classes: &[0.1, 0.9], text: &text, leads: &[lead] }, &mut queue);
    let parts = learned.parts(1);
    let part = |name: &str| parts.iter().find(|part| part.0 == name).unwrap().1;
    assert!(part("the topic's name in a link text") > 0.0 && part("the topic's name in the URL") == 0.0);
    assert!(learned.parts(0).is_empty());
}

/// Fifty pages of two hundred links, half of them to targets of earlier pages.
#[test]
fn a_waiting_page_takes_few_bytes() {
    let mut learned = LearnedFocus::new(knowledge(), RECIPE, "recipe", Tuning::default());
    let mut queue = TestQueue::default();
    learned.begin(&[(0, "http://a.org/")], &mut queue);
    let urls: Vec<String> = (0..6000).map(|page| format!("http://a.org/{}/{page}.html", page / 50)).collect();
    let text = page("http://a.org/", "", "");
    for number in 0..50 {
        let from = 100 + 100 * number;
        let leads: Vec<Lead<'_>> = (from..from + 200)
            .zip(0..)
            .map(|(target, place)| Lead {
                target,
                url: &urls[target as usize],
                anchor: "",
                heading: "",
                context: "",
                place,
            })
            .collect();
        let fetched = FetchedPage { page: number, classes: &[0.5, 0.5], text: &text, leads: &leads };
        learned.fetched(&fetched, &mut queue);
    }
    let OrderMemory { waiting, bytes } = learned.memory().unwrap();
    assert_eq!(waiting, 5100);
    assert!(bytes < 90 * waiting, "{} bytes a page", bytes / waiting);
}

#[test]
fn crawls_are_the_same_from_the_same_answers() {
    let knowledge = knowledge();
    let orders = [0, 1].map(|_| {
        let mut learned = LearnedFocus::new(Arc::clone(&knowledge), RECIPE, "", Tuning::default());
        crawl(&mut learned, |page| page > 5)
    });
    assert_eq!(orders[0], orders[1]);
}

#[test]
fn every_order_but_tunnels_fetches_all() {
    let knowledge = knowledge();
    for mode in ["learned", "soft", "context", "reinforced", "fish", "shark", "parent-anchor", "ucb"] {
        let learn = |learn: LearnOrder| Ok::<_, ()>(learn(&[], RECIPE));
        let mut order =
            mode.parse::<FocusMode>().unwrap().order(&knowledge, RECIPE, "recipe", learn).unwrap();
        let mut fetched = crawl(order.as_mut(), |page| page == 5);
        fetched.sort_unstable();
        assert_eq!(fetched, (0..10).collect::<Vec<_>>());
    }
}

/// The last priority of each page.
#[derive(Default)]
struct Priorities(std::collections::HashMap<u32, f64>);

impl PageQueue for Priorities {
    fn put(&mut self, page: u32, priority: f64) {
        self.0.insert(page, priority);
    }
}

/// A link of a page without relevance: its words, then those around it, count by the weights of the paper.
#[test]
fn sharks_smell_the_words_around_a_link() {
    let scores = ["flour and butter", "minister", "xyzzy", "xyzzy "].map(|anchor| {
        let mut shark = Shark::new(knowledge(), RECIPE);
        let mut queue = Priorities::default();
        shark.begin(&[(0, "http://a.org/0")], &mut queue);
        let text = page("http://a.org/", "", "");
        let context = if anchor == "xyzzy " { "xyzzy with butter and flour" } else { "" };
        let lead = Lead { target: 1, url: "http://a.org/1", anchor, heading: "", context, place: 0 };
        let fetched = FetchedPage { page: 0, classes: &[0.0, 1.0], text: &text, leads: &[lead] };
        shark.fetched(&fetched, &mut queue);
        queue.0[&1]
    });
    let [recipe, news, unknown, around] = scores;
    // (1 - γ) (β σ(0) + (1 - β) σ(0)) without a word of the topic; around the link its words count 1 - β.
    assert!(unknown == 0.25 && news < unknown, "{scores:?}");
    assert!(around > unknown && around <= unknown + 0.05 && recipe > around, "{scores:?}");
}

/// A list of recipes is behind a link from each front page; what leads to it is worth more than what leads elsewhere.
#[test]
fn links_are_worth_what_is_beyond_them() {
    let urls: Vec<String> = (0..40).map(|i| format!("http://{i}.org/")).collect();
    let lead = |target: usize, anchor: &'static str| Lead {
        target: target as u32,
        url: "http://a.org/",
        anchor,
        heading: "",
        context: "",
        place: 0,
    };
    // Groups of four: front page, list, recipe, news.
    let examples: Vec<LabelledPage<'_>> = (0..40)
        .map(|i| {
            let leads = match i % 4 {
                0 => vec![lead(i + 1, "all"), lead(i + 3, "today")],
                1 => vec![lead(i + 1, "pie")],
                _ => Vec::new(),
            };
            LabelledPage { text: page(&urls[i], "", ""), class: [NEWS, NEWS, RECIPE, NEWS][i % 4], leads }
        })
        .collect();
    let mut order = Reinforced::learn(&examples, RECIPE);
    let mut queue = Priorities::default();
    order.begin(&[(0, "http://a.org/")], &mut queue);
    let text = page("http://a.org/", "", "");
    let leads: Vec<Lead<'_>> = [(1, "pie"), (2, "all"), (3, "today")]
        .map(|(target, anchor)| Lead { target, ..lead(0, anchor) })
        .into();
    order.fetched(&FetchedPage { page: 0, classes: &[0.0, 1.0], text: &text, leads: &leads }, &mut queue);
    let [recipe, list, news] = [1, 2, 3].map(|page| queue.0[&page]);
    assert!(recipe > list && list > news + 0.1, "{recipe} {list} {news}");
}

/// 0 links to 1, 1 to 2, and so on; only 3 is of the topic.
#[test]
fn tunnels_end_after_so_many_pages() {
    for (in_a_row_max, last) in [(0, 1), (1, 2), (2, 6), (9, 9)] {
        let mut tunnel = Tunnel::new(RECIPE, in_a_row_max);
        let mut queue = TestQueue::default();
        tunnel.begin(&[(0, "http://a.org/0")], &mut queue);
        let mut fetched = Vec::new();
        while let Some(number) = queue.take() {
            fetched.push(number);
            let text = page("http://a.org/", "", "");
            let lead = Lead {
                target: number + 1,
                url: "http://a.org/",
                anchor: "",
                heading: "",
                context: "",
                place: 0,
            };
            let leads = if number < 9 { vec![lead] } else { vec![] };
            let p = if number == 3 { 0.9 } else { 0.1 };
            tunnel.fetched(
                &FetchedPage { page: number, classes: &[p, 1.0 - p], text: &text, leads: &leads },
                &mut queue,
            );
        }
        assert_eq!(fetched.last(), Some(&last), "{in_a_row_max}: {fetched:?}");
    }
}

#[test]
fn knowledge_is_the_same_when_it_is_read_again() {
    let knowledge = knowledge();
    let bytes = knowledge.to_bytes();
    let again = Knowledge::from_bytes(&bytes).unwrap();
    let pie = page("http://x.org/cook/1.html", "Pie", "butter and flour");
    assert_eq!(again.page(&pie), knowledge.page(&pie));
    assert_eq!(again.url("http://y.org/cook/"), knowledge.url("http://y.org/cook/"));
    assert_eq!(again.anchor("apple pie"), knowledge.anchor("apple pie"));
    assert_eq!(again.lead_rate(&[0.5, 0.5], NEWS), knowledge.lead_rate(&[0.5, 0.5], NEWS));
    assert!(again.word("Butter", RECIPE) > 0.0 && again.word("minister", RECIPE) < 0.0);
    assert_eq!(again.word("xyzzy", RECIPE), 0.0);
    // Truncated or altered bytes cause no panic.
    for end in 0..bytes.len().min(400) {
        assert!(Knowledge::from_bytes(&bytes[..end]).is_none());
    }
    // Numbers that no learning gives: shares of links begin at byte 4, the first prior follows the number of words.
    for (place, number) in [(4, 2.0), (4, f64::NAN), (4 + 4 * 8 + 4, 1.0), (4 + 4 * 8 + 4, -1e9)] {
        let mut bytes = bytes.clone();
        bytes[place..place + 8].copy_from_slice(&f64::to_le_bytes(number));
        assert!(Knowledge::from_bytes(&bytes).is_none(), "{number}");
    }
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..500 {
        let mut bytes = bytes.clone();
        let place = random.usize(..bytes.len());
        bytes[place] = random.u8(..);
        drop(Knowledge::from_bytes(&bytes));
    }
}

#[test]
fn held_out_pages_are_classified_by_the_others() {
    let text = |i: usize| ["flour oven butter", "minister vote report"][i % 2];
    let examples: Vec<LabelledPage<'_>> = (0..20)
        .map(|i| LabelledPage { text: page("http://x.org/", "", text(i)), class: i % 2, leads: Vec::new() })
        .collect();
    let labels: Vec<usize> = examples.iter().map(|example| example.class).collect();
    for model in [Model::Logistic, Model::Bayes] {
        let found = held_out(&examples, &labels, 2, 5, model);
        assert!(found.iter().enumerate().all(|(i, classes)| classes[i % 2] > 0.6), "{model}: {found:?}");
        assert_eq!(model.to_string().parse(), Ok(model));
    }
    assert!("nothing".parse::<Model>().unwrap_err().to_string().contains("bayes"));
    // Finer classes are kept with the rest.
    let mut knowledge = Knowledge::learn(&examples, 2, Model::Bayes);
    let finer: Vec<usize> = (0..20).map(|i| i % 2 + 2 * usize::from(i == 7)).collect();
    knowledge.learn_leaves(&examples, &finer, 4, Model::Logistic);
    let again = Knowledge::from_bytes(&knowledge.to_bytes()).unwrap();
    assert_eq!(
        (again.leaf_count(), again.leaves(&examples[0].text)),
        (4, knowledge.leaves(&examples[0].text))
    );
    assert!(again.leaves(&examples[0].text).unwrap()[0] > 0.5);
}
