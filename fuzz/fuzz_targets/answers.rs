//! Any line from a node parses as a part of an answer or as an error, and the parts can be assembled to an answer; any
//! text parses as a request or fails with an error.
#![no_main]

use archive_ask::find::{BestPages, MergedResults, ParsedSearch, Shown, WordStatistics};
use archive_ask::query::{Limits, Plan, Portion};
use archive_peers::nodes::{AnswerLine, Ask};
use chrono::DateTime;
use libfuzzer_sys::fuzz_target;

const PLANS: [&str; 3] = [
    "page select url, size, last seen order by size desc, url limit 3 offset 1",
    "page select type, count, sum(size), avg(size), min(title), max(last seen), median(size), count(distinct url) group by type order by max(last seen)",
    "link sample 2 seed 1 select source, target.site order by target",
];

fuzz_target!(|bytes: &[u8]| {
    // The only guarantee is termination.
    drop(Ask::read(bytes));
    for text in PLANS {
        let plan = Plan::of_several(text, DateTime::UNIX_EPOCH).expect("this is a query");
        let typed = ParsedSearch::parse("open access").expect("this is a search");
        let (mut taken, mut gathered) = (Vec::new(), MergedResults::new(&typed));
        for (archive, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if let Ok(AnswerLine::Row(portion)) = AnswerLine::<Portion, Option<u64>>::read(line) {
                taken.extend(plan.take(portion).map(|taken| (archive, taken)));
            }
            if let Ok(AnswerLine::End(words)) = AnswerLine::<(), WordStatistics>::read(line) {
                gathered.add_words(words);
            }
            if let Ok(AnswerLine::End(best)) = AnswerLine::<(), BestPages>::read(line) {
                best.checked(5).into_iter().for_each(|best| gathered.add_best(archive, best));
            }
            if let Ok(AnswerLine::Row(shown)) = AnswerLine::<Shown, ()>::read(line) {
                drop(shown.checked());
            }
        }
        if let Ok(answer) = plan.whole(taken.into_iter(), Some(0), Limits::USUAL) {
            assert!(answer.rows.iter().all(|row| row.len() == answer.headings.len()));
        }
        assert!(gathered.choose(5).len() <= 5);
        drop(gathered.finish());
    }
});
