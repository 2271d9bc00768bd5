//! Ready questions of the query page: one is chosen, its blanks are filled in, and the query that this makes is shown and asked.

use archive_grammar::Literal;
use chrono::NaiveDate;
use maud::{Markup, html};

use super::{PageRequest, Speech};

/// Ready questions and their queries. `{site}` and `{source.site}` are a condition on the site that was filled in, or nothing;
/// `{words}` and `{date}` are what was filled in.
const QUESTIONS: [(&str, &str); 30] = [
    ("Which pages are the most important?", "page captures > 0{site} order by importance limit 50"),
    (
        "Which pages have been gone since the date?",
        "page died since {date}{site} order by died select url, title, died",
    ),
    (
        "Which pages have changed since the date?",
        "page changed since {date}{site} order by changed select url, title, changed",
    ),
    (
        "Which pages are new since the date?",
        "page first seen >= {date}{site} order by first seen select url, title, first seen",
    ),
    (
        "What did the archive have on the date?",
        "page captures > 0{site} select url, title, last seen as of {date}",
    ),
    ("Which pages say the words?", "page text contains {words}{site} select url, title"),
    (
        "Since when, and until when, have pages said the words?",
        "page type = html{site} and first_said({words}) is not empty select url, first_said({words}), last_said({words})",
    ),
    ("Which pages have the words in their title?", "page title contains {words}{site} select url, title"),
    ("Which links are broken?", "link target.status in (404, 410){source.site} select source, target"),
    ("Which pages redirect, and where to?", "page redirect is not empty{site} select url, redirect"),
    ("Which hosts never answer?", "host failures > 0 and captures = 0{site} select host, failures"),
    ("Which pages does robots.txt keep out?", "page refusal = robots{site} select url"),
    ("Why are pages not fetched?", "count pages refusal is not empty{site} group by refusal"),
    ("How many pages are there of each type?", "count pages captures > 0{site} group by type"),
    ("In which languages are the pages?", "count pages language is not empty{site} group by language"),
    ("How many captures were there each month?", "count captures time < now{site} per month"),
    ("How many versions were new each month?", "count versions time < now{site} per month"),
    ("How many answers were errors each month?", "count captures status >= 400{site} per month"),
    ("Which files are the largest?", "page size > 0{site} order by size limit 50 select url, type, size"),
    (
        "Which pages are the same at several addresses?",
        "page duplicates{site} order by digest select url, title",
    ),
    ("Which pages have no title?", "page type = html and status = 200 and title is empty{site} select url"),
    (
        "Which pages lost their title, text or pictures?",
        "page type = html and (lost title or lost text or lost pictures){site} select url, lost title, lost text, lost pictures",
    ),
    (
        "Which pages have pictures without an alternative text?",
        "page pictures without alt > 0{site} select url, pictures without alt",
    ),
    (
        "Which pages have mail addresses in their text?",
        "page type = html and text matches \"[\\w.]+@[\\w.]+\"{site} select url, part(text, \"[\\w.]+@[\\w.]+\") as address",
    ),
    (
        "Which pages are not in the language that they declare?",
        "page declared language != detected language and detected language is not empty{site} select url, declared language, detected language",
    ),
    (
        "What are picture files by their bytes?",
        "count pages type = image{site} group by content_type, format",
    ),
    (
        "Which licences do pages name?",
        "count pages type = html and licence is not empty{site} group by licence",
    ),
    ("Which XML documents are not well-formed?", "page type = xml and well formed = no{site} select url"),
    ("Which software do servers run?", "count pages server is not empty{site} group by server"),
    (
        "Which pages are due next?",
        "page next visit < now + 7 days{site} order by next visit asc limit 50 select url, next visit",
    ),
];

/// Why a ready question cannot be asked, in a sentence.
type Unready = &'static str;

/// The query that a request makes of a ready question, if it has chosen one.
pub(super) fn chosen(asked: &PageRequest<'_>) -> Option<Result<String, Unready>> {
    let (_, query) = QUESTIONS.get(asked.parameter("ready").parse::<usize>().ok()?)?;
    Some(filled(query, |blank| asked.parameter(blank)))
}

/// A query with its blanks filled in.
fn filled<'a>(query: &str, blank: impl Fn(&str) -> &'a str) -> Result<String, Unready> {
    let quoted = |text: &str| Literal::Text(text.to_owned()).to_string();
    let mut query = query.to_owned();
    let site = blank("site").trim();
    for field in ["site", "source.site"] {
        let condition =
            if site.is_empty() { String::new() } else { format!(" and {field} = {}", quoted(site)) };
        query = query.replace(&format!("{{{field}}}"), &condition);
    }
    if query.contains("{words}") {
        let words = blank("words").trim();
        if words.is_empty() {
            return Err("This question needs words.");
        }
        // In a call, a bare word would be a field.
        query = query.replace("{words}", &format!("\"{}\"", words.replace(['"', '\\'], " ")));
    }
    if query.contains("{date}") {
        let date = blank("date").trim().parse::<NaiveDate>().map_err(|_| "This question needs a date.")?;
        query = query.replace("{date}", &date.format("%Y-%m-%d").to_string());
    }
    Ok(query)
}

/// The form, with what was filled in.
pub(super) fn form(t: Speech) -> Markup {
    html! {
        h2 { (t.say("Ready questions")) }
        form action="/query" {
            (t.kept())
            p {
                label for="ready" { (t.say("Question")) } " "
                select #ready name="ready" {
                    @for (place, (question, _)) in QUESTIONS.iter().enumerate() {
                        option value=(place) { (t.say(question)) }
                    }
                }
            }
            p {
                label for="site" { (t.say("Only of the site")) } " "
                input #site name="site" type="text" autocomplete="off";
            }
            p { label for="ready-words" { (t.say("The words")) } " " input #ready-words name="words" type="text" autocomplete="off"; }
            p { label for="date" { (t.say("The date")) } " " input #date name="date" type="date"; }
            button { (t.say("Ask")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_ask::query::{Context, Plan, Zone};
    use chrono::Utc;

    use super::{QUESTIONS, filled};

    #[test]
    fn ready_questions_are_queries() {
        let given = |blank: &str| match blank {
            "site" => "lib.test",
            "words" => "open \"until\" \\ further",
            _ => "2026-01-31",
        };
        for (question, query) in QUESTIONS {
            for site in ["", "lib.test"] {
                let text = filled(query, |blank| if blank == "site" { site } else { given(blank) }).unwrap();
                let plan = Plan::parse(&text, &Context::bare(Utc::now(), Zone::Utc));
                assert!(plan.is_ok(), "{question}: {text}: {plan:?}");
                assert_eq!(text.contains("lib.test"), !site.is_empty(), "{text}");
            }
        }
        let words = QUESTIONS.iter().find(|(_, query)| query.contains("{words}")).unwrap().1;
        assert_eq!(filled(words, |_| ""), Err("This question needs words."));
        let date = QUESTIONS.iter().find(|(_, query)| query.contains("{date}")).unwrap().1;
        assert_eq!(filled(date, |_| "soon"), Err("This question needs a date."));
    }
}
