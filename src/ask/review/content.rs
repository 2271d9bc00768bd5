//! Features of an archive's sites that the automatic librarian learns from.

use std::collections::HashMap;

use archive_base::access::Access;
use archive_storage::Store;
use chrono::Utc;

use super::learned::{HostContent, without_www};
use crate::query::{Error, Question, Value};

/// Maximum number of pages whose titles are read; the most important pages of the archive come first.
const TITLES_MAX: usize = 100_000;

/// Part number of title words in `Words`.
const TITLE: u8 = 0;

/// Fills in the content of each site. `numbers` maps site names without `www.` to their indices.
pub(super) fn gather(
    store: &Store,
    numbers: &HashMap<String, usize>,
    contents: &mut [HostContent],
) -> Result<(), Error> {
    // Unrestricted access: nothing of a page is shown, its words only contribute to weights.
    let ask = |query: &str| Question::new(store, Access::unlimited(), query, Utc::now())?.answer();
    let place =
        |site: &Value| if let Value::Text(site) = site { numbers.get(&without_www(site)) } else { None };
    let mut most: Vec<u32> = vec![0; contents.len()];
    let groups = ask(
        "page status = 200 group by site, language, type select site, language, type, count, avg(size), avg(change_rate)",
    )?;
    for row in &groups.rows {
        let [site, language, kind, pages, bytes, changes] = row.as_slice() else { continue };
        let Some(&place) = place(site) else { continue };
        let content = &mut contents[place];
        let new = pages.as_number().unwrap_or_default();
        let all = f64::from(content.pages) + new;
        let mean = |old: f64, value: f64| (old * f64::from(content.pages) + value * new) / all;
        let is_xml = matches!(kind, Value::Text(kind) if ["xml", "feed", "sitemap"].contains(&kind.as_str()));
        content.xml = mean(content.xml, f64::from(u8::from(is_xml)));
        content.bytes = mean(content.bytes, bytes.as_number().unwrap_or_default());
        content.changes = mean(content.changes, changes.as_number().unwrap_or_default());
        content.pages = all as u32;
        // The language of the largest group of pages counts.
        if let (Value::Text(language), true) = (language, new as u32 > most[place]) {
            content.language.clone_from(language);
            most[place] = new as u32;
        }
    }
    let titles = format!(
        "page status = 200 and title is not empty order by importance limit {TITLES_MAX} select site, title"
    );
    for row in ask(&titles)?.rows {
        if let [site, Value::Text(title)] = row.as_slice()
            && let Some(&place) = place(site)
        {
            contents[place].titles.add_text(TITLE, title);
        }
    }
    Ok(())
}
