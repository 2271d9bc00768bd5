//! Finds the most important pages of an archive: opens it for reading and runs a query.
//!
//!     cargo run --release --example query_archive -- web.archive 'page type = html order by importance desc limit 10'

use anyhow::{Context as _, bail};
use archive_ask::query::{Question, Value};
use archive_base::access::Access;
use archive_storage::Store;
use chrono::Utc;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, query] = arguments.as_slice() else { bail!("usage: query_archive ARCHIVE QUERY") };

    // A reader holds no lock for long, so a crawl may write to the archive at the same time.
    let store = Store::read_only(folder.as_ref()).with_context(|| format!("cannot open {folder}"))?;
    let question = Question::new(&store, Access::read(store.path())?, query, Utc::now())?;
    let answer = question.answer()?;

    let names: Vec<&str> = answer.headings.iter().map(|heading| heading.name.as_str()).collect();
    println!("{}", names.join("\t"));
    for row in &answer.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        println!("{}", cells.join("\t"));
    }
    Ok(())
}

fn cell(value: &Value) -> String {
    match value {
        Value::Empty => "-".to_owned(),
        Value::Text(text) => text.escape_debug().to_string(),
        value => format!("{value:?}"),
    }
}
