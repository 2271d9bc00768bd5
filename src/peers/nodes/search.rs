//! Searches of several archives, possibly on other machines; `find/parts` defines the rounds.

use std::collections::HashMap;

use archive_ask::find::{Best, Gathered, Options, Results, Shown, Typed, Wanted, Words};
use archive_books::search::Fit;

use super::asked::{Asked, Failure};
use super::wire::{Ask, Line};
use super::{AskError, NodeError};

/// Maximum size of the URLs and of their link data that are sent to an archive, in bytes.
const LINKED_BYTES_MAX: usize = 12 << 20;

/// Size of such a line without its URL, in bytes.
const LINKED_BYTES: usize = 64;

impl Asked<'_> {
    /// Searches all archives as if they were one. Days without a time zone are in UTC.
    ///
    /// # Errors
    /// When the search is wrong, no archive answers, or a folder has no index or cannot be read.
    pub fn search(&mut self, text: &str, options: Options<'_>) -> Result<Results, AskError> {
        let wrong = |mistake| AskError::Wrong(format!("in the search, {mistake}"));
        let (typed, wanted) = (Typed::parse(text).map_err(wrong)?, Wanted::new(text, options));
        self.insist(|asked| asked.search_once(&typed, &wanted))
    }

    fn search_once(&self, typed: &Typed, wanted: &Wanted) -> Result<Results, Failure> {
        let mut gathered = Gathered::new(typed);
        let ask = Ask::FindWords { wanted: wanted.clone() };
        let shares = self.each(|_, of| {
            let mut words = Words::default();
            of(&ask, &mut |line| {
                let Line::Found(found) = line else { return Ok(false) };
                words = found;
                Ok(true)
            })?;
            Ok(words)
        })?;
        shares.into_iter().for_each(|words| gathered.add_words(words));

        let (wanted, words) = (wanted.clone(), gathered.statistics.clone());
        let linked = self.linked(&Ask::FindLinked { wanted: wanted.clone(), words: words.clone() })?;
        let shares = self.each(|archive, of| {
            let linked = linked.get(archive).cloned().unwrap_or_default();
            let ask = Ask::FindBest { wanted: wanted.clone(), words: words.clone(), linked };
            let mut best = Best::default();
            of(&ask, &mut |line| {
                let Line::Best(found) = line else { return Ok(false) };
                best = found.checked(wanted.limit).map_err(NodeError::senseless)?;
                Ok(true)
            })?;
            Ok(best)
        })?;
        shares.into_iter().enumerate().for_each(|(archive, best)| gathered.add_best(archive, best));

        let chosen = gathered.choose(wanted.limit);
        let shares = self.each(|archive, of| {
            let pages = chosen.iter().filter(|chosen| chosen.archive == archive).map(|chosen| chosen.page);
            let pages: Vec<u32> = pages.collect();
            if pages.is_empty() {
                return Ok(Vec::new());
            }
            let (mut shown, count) = (Vec::new(), pages.len());
            let ask = Ask::FindShown { wanted: wanted.clone(), words: words.clone(), pages };
            of(&ask, &mut |line| {
                let Line::Shown(one) = line else { return Ok(false) };
                shown.push(one.checked().map_err(NodeError::senseless)?);
                Ok(true)
            })?;
            if shown.len() != count {
                return Err(NodeError::senseless("it shows other pages than were asked for").into());
            }
            Ok(shown)
        })?;
        let mut shares: Vec<_> = shares.into_iter().map(Vec::<Shown>::into_iter).collect();
        for chosen in chosen {
            // Each archive has returned as many results as were chosen from it.
            if let Some(shown) = shares.get_mut(chosen.archive).and_then(Iterator::next) {
                gathered.add_shown(chosen, shown);
            }
        }
        Ok(gathered.finish())
    }

    /// Link data on pages of other archives, grouped by the archive that has captured pages of their site.
    fn linked(&self, ask: &Ask) -> Result<Vec<Vec<(String, Fit)>>, Failure> {
        let shares = self.gather(ask, |archive, own: &mut Vec<_>, line| {
            let Line::Linked(linked) = line else { return false };
            let owner = self.answering(&linked.site).filter(|owner| *owner != archive);
            own.extend(owner.map(|owner| (owner, linked.url, linked.fit)));
            true
        })?;
        let mut all: Vec<(HashMap<String, Fit>, usize)> = vec![Default::default(); shares.len()];
        for (owner, url, fit) in shares.into_iter().flatten() {
            let Some((linked, bytes)) = all.get_mut(owner) else { continue };
            let length = url.len();
            linked.entry(url).and_modify(|known| known.take(fit)).or_insert_with(|| {
                *bytes += length + LINKED_BYTES;
                fit
            });
            if *bytes > LINKED_BYTES_MAX {
                let problem = "links to too many pages of other archives have one of these words: search for rarer ones";
                return Err(AskError::Wrong(problem.to_owned()).into());
            }
        }
        Ok(all.into_iter().map(|(linked, _)| linked.into_iter().collect()).collect())
    }
}
