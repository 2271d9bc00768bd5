//! What the grammar expected, in the user's terms.

use crate::error::ParseError;
use crate::suggest::nearest;
use crate::syntax::Rule;
use crate::tokens::{QueryToken, TokenKind, is_reserved};

/// Words that users know from other languages, and their equivalents here.
const SYNONYMS: [(&str, &str); 17] = [
    ("like", "~"),
    ("glob", "~"),
    ("regexp", "matches"),
    ("startswith", "starts with"),
    ("endswith", "ends with"),
    ("random", "sample"),
    ("equals", "="),
    ("eq", "="),
    ("has", "contains"),
    ("includes", "contains"),
    ("contain", "contains"),
    ("&&", "and"),
    ("&", "and"),
    ("||", "or"),
    ("|", "or"),
    ("sort", "order by"),
    ("top", "limit"),
];

/// The message for a text that the grammar rejects at byte `at`, where one of `rules` was expected.
pub(crate) fn mistake(text: &str, tokens: &[QueryToken], at: usize, rules: &[Rule]) -> ParseError {
    let index = tokens.partition_point(|token| token.span.end <= at);
    let found = tokens.get(index);
    let span = match found {
        Some(token) if cuts_word(text, token, at) => token.span.clone(),
        Some(token) => at.max(token.span.start)..token.span.end,
        None => text.trim_end().len()..text.trim_end().len(),
    };
    let cut_number = text[span.clone()].starts_with(|c: char| c.is_ascii_digit()) && span.start < at;
    let expected = if cut_number { vec!["a number such as 10, 2.5, 10k or 3M"] } else { phrases(rules) };
    let found_text = match text.get(span.clone()) {
        Some(found) if !found.is_empty() => format!("found `{}`", shortened(found)),
        _ => "but the query ends here".to_owned(),
    };
    let message = format!("expected {}, {found_text}", alternatives(&expected));
    let suggestion = text.get(span.clone()).and_then(|word| suggestion(text, tokens, index, word, rules));
    ParseError::new(text, span, message).with_suggestion(suggestion)
}

/// Whether `at` lies inside a word, so that the whole word is wrong.
fn cuts_word(text: &str, token: &QueryToken, at: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || "_-+:/.*?%@#".contains(c);
    token.kind == TokenKind::Word
        && token.span.start < at
        && text[..at].ends_with(is_word)
        && text[at..].starts_with(is_word)
}

fn suggestion(text: &str, tokens: &[QueryToken], index: usize, word: &str, rules: &[Rule]) -> Option<String> {
    if word.starts_with(['“', '”', '„', '«', '‘', '’']) {
        return Some("texts stand between straight quotes: \"…\"".to_owned());
    }
    let lower = word.to_lowercase();
    if let Some((_, meant)) = SYNONYMS.iter().find(|(known, _)| *known == lower) {
        return Some(format!("did you mean `{meant}`?"));
    }
    let value_expected =
        [Rule::string, Rule::value, Rule::product, Rule::operand].iter().any(|rule| rules.contains(rule));
    if is_reserved(word) && value_expected || word.contains([':', '/', '*', '@', '%']) {
        return Some(format!("to mean the text, put it in quotes: \"{}\"", shortened(word)));
    }
    if word.starts_with(|c: char| c.is_ascii_digit()) && word.matches('-').count() == 2 {
        return Some("dates are written as 2026-01-31".to_owned());
    }
    let keywords = rules.iter().flat_map(|rule| spellings(*rule)).copied();
    if let Some(meant) = nearest(word, keywords) {
        return Some(format!("did you mean `{meant}`?"));
    }
    let before = text.get(tokens.get(index.checked_sub(1)?)?.span.clone())?;
    if before.starts_with(|c: char| c.is_ascii_digit())
        && nearest(word, spellings(Rule::unit).iter().copied()).is_some()
    {
        return Some(format!(
            "a time counted back from now ends in ago: did you mean `{before} {word} ago`?"
        ));
    }
    if index == 1
        && let Some(meant) = nearest(before, ["page", "site", "host", "capture", "version", "link"])
    {
        return Some(format!("did you mean `{meant}` instead of `{before}`?"));
    }
    let pairs = ["first seen", "last seen", "last changed", "next visit", "change rate", "order by"];
    nearest(&format!("{before} {word}"), pairs).map(|meant| format!("did you mean `{meant}`?"))
}

/// The keywords of the grammar, which are not fields, functions or values, each once: `order by` but not its parts.
#[must_use]
pub fn keywords() -> Vec<&'static str> {
    let rules =
        Rule::all_rules().iter().filter(|rule| !matches!(rule, Rule::BY | Rule::SITES | Rule::target));
    let mut words: Vec<&str> = rules.flat_map(|rule| spellings(*rule)).copied().collect();
    words.sort_unstable();
    words.dedup();
    let begins = |word: &str, other: &str| other.strip_prefix(word).is_some_and(|rest| rest.starts_with(' '));
    let all = words.clone();
    words.retain(|word| matches!(*word, "as") || !all.iter().any(|other| begins(word, other)));
    words
}

/// The words for the target of a query: `page`, `site` and so on.
#[must_use]
pub fn targets() -> &'static [&'static str] {
    spellings(Rule::target)
}

/// The spellings of a keyword, for finding near misses and for completion.
fn spellings(rule: Rule) -> &'static [&'static str] {
    match rule {
        Rule::AND => &["and"],
        Rule::OR => &["or"],
        Rule::NOT => &["not"],
        Rule::IN | Rule::membership => &["in"],
        Rule::BETWEEN | Rule::range => &["between"],
        Rule::CONTAINS | Rule::containment => &["contains"],
        Rule::IS | Rule::emptiness | Rule::identity => &["is"],
        Rule::MATCHES | Rule::pattern => &["matches"],
        Rule::STARTS | Rule::beginning => &["starts with"],
        Rule::ENDS | Rule::ending => &["ends with"],
        Rule::check => &["in", "between", "contains", "is", "matches"],
        Rule::EMPTY => &["empty"],
        Rule::AGO => &["ago"],
        Rule::unit => &["seconds", "minutes", "hours", "days", "weeks", "months", "years"],
        Rule::ORDER | Rule::order_clause => &["order", "order by"],
        Rule::BY => &["by"],
        Rule::ASC => &["asc", "ascending"],
        Rule::DESC => &["desc", "descending"],
        Rule::LIMIT | Rule::limit_clause => &["limit"],
        Rule::OFFSET | Rule::offset_clause => &["offset"],
        Rule::SELECT | Rule::select_clause => &["select"],
        Rule::FROM => &["from"],
        Rule::WHERE => &["where"],
        Rule::GROUP | Rule::group_clause => &["group", "group by"],
        Rule::PER | Rule::per_clause => &["per"],
        Rule::OF => &["of"],
        Rule::period => &["day", "week", "month", "year"],
        Rule::HAVING | Rule::having_clause => &["having"],
        Rule::SAMPLE | Rule::sample_clause => &["sample"],
        Rule::SEED => &["seed"],
        Rule::INSIDE | Rule::nearness => &["within"],
        Rule::SINCE | Rule::since => &["since"],
        Rule::UNTIL => &["until"],
        Rule::TO => &["to"],
        Rule::AS => &["as"],
        Rule::AS_OF | Rule::as_of_clause => &["as of"],
        Rule::ALL => &["all"],
        Rule::ANY_OF => &["any"],
        Rule::DISTINCT => &["distinct"],
        Rule::COUNTED => &["count"],
        Rule::LINKS_TO => &["links to"],
        Rule::LINKED_FROM => &["linked from"],
        Rule::REDIRECTS_TO => &["redirects to"],
        Rule::SAME_CONTENT => &["same content as"],
        Rule::NEAR => &["near"],
        Rule::DUPLICATES => &["duplicates"],
        Rule::SITES | Rule::target => &["site", "page", "host", "capture", "version", "link"],
        _ => &[],
    }
}

/// Names for `rules`, each once, in an order that reads well.
fn phrases(rules: &[Rule]) -> Vec<&'static str> {
    let has = |wanted: &[Rule]| rules.iter().any(|rule| wanted.contains(rule));
    let comparison = has(&[Rule::COMPARATOR, Rule::comparison, Rule::check]);
    let condition = !comparison
        && has(&[
            Rule::condition,
            Rule::conjunction,
            Rule::negation,
            Rule::group,
            Rule::relation,
            Rule::test,
            Rule::NOT,
        ])
        && !has(&[Rule::EMPTY]);
    let value = has(&[Rule::value, Rule::product, Rule::operand])
        || has(&[Rule::number, Rule::quantity, Rule::amount]) && has(&[Rule::string, Rule::bare_word]);
    let mut words = Vec::new();
    let mut say = |applies: bool, phrase: &'static str| {
        if applies {
            words.push(phrase);
        }
    };
    say(comparison, "a comparison (= != < <= > >= ~ in, between, contains, is, matches, starts with …)");
    say(condition, "a condition such as importance > 2");
    say(
        !comparison
            && !condition
            && has(&[Rule::field, Rule::left, Rule::left_product, Rule::selection, Rule::order_key]),
        "a field such as importance",
    );
    say(
        has(&[Rule::SITES, Rule::PAGES, Rule::target]) && !condition,
        "page, site, host, capture, version or link",
    );
    say(value, "a value (a number, \"text\", a date such as 2026-01-31, or 30 days ago)");
    say(!value && has(&[Rule::number, Rule::quantity, Rule::limit_clause, Rule::offset_clause]), "a number");
    say(!value && has(&[Rule::string, Rule::bare_word]), "\"text\"");
    say(has(&[Rule::ALL, Rule::ANY_OF]), "all (…) or any (…)");
    say(!comparison && has(&[Rule::EMPTY]), "empty");
    say(has(&[Rule::AGO]), "ago");
    say(!comparison && has(&[Rule::IN]), "in");
    say(!comparison && has(&[Rule::BETWEEN]), "between");
    say(!comparison && has(&[Rule::CONTAINS]), "contains");
    say(!condition && !comparison && has(&[Rule::OPEN]), "(");
    say(has(&[Rule::COMMA]), "a comma");
    say(has(&[Rule::CLOSE]), ")");
    say(has(&[Rule::WITHOUT]), "]");
    let element = [Rule::path_name, Rule::relative, Rule::path_negation, Rule::path_test];
    say(has(&element) && !value, "an element, an @attribute or *");
    say(!comparison && has(&[Rule::AND]), "and");
    say(!comparison && has(&[Rule::OR]), "or");
    say(has(&[Rule::ASC]), "asc");
    say(has(&[Rule::DESC]), "desc");
    say(has(&[Rule::BY]), "by");
    say(!condition && has(&[Rule::ORDER, Rule::order_clause]), "order by");
    say(!condition && has(&[Rule::GROUP, Rule::group_clause]), "group by");
    say(!condition && has(&[Rule::LIMIT]), "limit");
    say(!condition && has(&[Rule::OFFSET]), "offset");
    say(!condition && has(&[Rule::SELECT, Rule::select_clause]), "select");
    say(!condition && has(&[Rule::EOI]), "the end");
    if words.is_empty() {
        words.push("a date or time such as 2026-01-31T10:00Z");
    }
    words
}

fn alternatives(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [init @ .., last] => format!("{} or {last}", init.join(", ")),
    }
}

fn shortened(found: &str) -> String {
    const CHARACTERS_MAX: usize = 30;
    if found.chars().count() <= CHARACTERS_MAX {
        return found.to_owned();
    }
    found.chars().take(CHARACTERS_MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use pest::Parser;

    use super::*;
    use crate::syntax::Syntax;

    /// Rules in capitals that are not keywords: signs and the targets.
    const OTHERS: &str = "EOI WHITESPACE COMMENT OPEN CLOSE COMMA WITHIN WITHOUT DEEP CHILD HERE COMPARATOR LIKE UNLIKE STAR PLUS \
                          MINUS TIMES OVER SITES HOSTS PAGES VERSIONS CAPTURES LINKS";

    #[test]
    fn every_keyword_of_the_grammar_is_known_as_it_is_written() {
        let keywords = keywords();
        for rule in Rule::all_rules() {
            let name = format!("{rule:?}");
            let is_in_capitals = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            if !is_in_capitals || OTHERS.split_whitespace().any(|other| other == name) {
                continue;
            }
            assert!(!spellings(*rule).is_empty(), "{name}");
            for word in spellings(*rule) {
                // Some are keywords only before certain words.
                let text = format!("{word} pages");
                let found = Syntax::parse(*rule, &text);
                assert!(found.is_ok_and(|found| word.starts_with(found.as_str())), "{name}: {word}");
                let is_part = |other: &&str| other.split(' ').any(|part| part == *word);
                assert!(keywords.contains(word) || keywords.iter().any(is_part), "{word}");
            }
        }
        for target in targets() {
            assert!(Syntax::parse(Rule::target, target).is_ok() && !keywords.contains(target), "{target}");
        }
        let mut once = keywords.clone();
        once.dedup();
        assert!(once == keywords && keywords.contains(&"order by") && !keywords.contains(&"order"));
    }
}
