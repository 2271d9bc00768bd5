//! Any text parses as a query or fails with the position of the mistake. A query prints as text that parses as the same
//! query, and is planned or refused with a mistake.
#![no_main]

use archive_ask::query::{Context, Plan, Zone};
use chrono::DateTime;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (lenient, mistakes) = archive_grammar::parse_lenient(text);
    match archive_grammar::parse(text) {
        Ok(query) => {
            assert!(mistakes.is_empty(), "strict and lenient agree");
            let printed = query.to_string();
            let again = archive_grammar::parse(&printed).expect("what is printed is a query");
            assert_eq!(again.to_string(), printed);
            let topics = &["maps".to_owned()];
            let context = Context { topics, ..Context::bare(DateTime::UNIX_EPOCH, Zone::Utc) };
            if let Err(mistake) = Plan::new(&query, text, &context) {
                assert!(text.get(mistake.span()).is_some());
            }
        }
        Err(mistake) => {
            let asks_nothing = lenient.to_string() == archive_grammar::Query::default().to_string();
            assert!(!mistakes.is_empty() || asks_nothing, "strict and lenient agree");
            assert!(mistake.line() >= 1 && mistake.column() >= 1);
        }
    }
});
