//! Searches of several archives, possibly on other machines; `find/parts` defines the rounds.

use std::collections::HashMap;

use archive_ask::find::{Linked, MergedResults, ParsedSearch, Results, SearchOptions, SearchRequest, Shown};
use archive_books::ledger::captured_sites;
use archive_books::search::Fit;

use super::ask::{AskedFolder, EndOf, FindBest, FindLinked, FindShown, FindWords, LeafAnswer, Take};
use super::root::{Root, RoundFailure};
use super::{AskError, NodeError};

/// Maximum size of the URLs and of their link data that are sent to an archive, in bytes.
const LINKED_BYTES_MAX: usize = 12 << 20;

/// Size of such a line without its URL, in bytes.
const LINKED_BYTES: usize = 64;

impl LeafAnswer for FindWords {
    fn answer(self, folder: &AskedFolder<'_>, _: Take<'_, Self>) -> EndOf<Self> {
        Ok(self.wanted.within(folder.limits).words(folder.store, folder.access, folder.kept)?)
    }
}

impl LeafAnswer for FindLinked {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        let AskedFolder { store, access, limits, kept } = *folder;
        let captured = captured_sites(store.state())?;
        let linked = self.wanted.within(limits).linked(store, access, &self.words, &captured, kept)?;
        linked.into_iter().try_for_each(take)
    }
}

impl LeafAnswer for FindBest {
    fn answer(self, folder: &AskedFolder<'_>, _: Take<'_, Self>) -> EndOf<Self> {
        let AskedFolder { store, access, limits, kept } = *folder;
        Ok(self.wanted.within(limits).best(store, access, &self.words, &self.linked, kept)?)
    }
}

impl LeafAnswer for FindShown {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        let AskedFolder { store, access, limits, kept } = *folder;
        let shown = self.wanted.within(limits).shown(store, access, &self.words, &self.pages, kept)?;
        shown.into_iter().try_for_each(take)
    }
}

impl Root<'_> {
    /// Searches all archives as if they were one. Days without a time zone are in UTC.
    ///
    /// # Errors
    /// When the search is wrong, no archive answers, or a folder has no index or cannot be read.
    pub fn search(&mut self, text: &str, options: SearchOptions<'_>) -> Result<Results, AskError> {
        let wrong = |mistake| AskError::Wrong(format!("in the search, {mistake}"));
        let (typed, wanted) = (ParsedSearch::parse(text).map_err(wrong)?, SearchRequest::new(text, options));
        self.retry(|root| root.search_once(&typed, &wanted))
    }

    fn search_once(&self, typed: &ParsedSearch, wanted: &SearchRequest) -> Result<Results, RoundFailure> {
        let mut gathered = MergedResults::new(typed);
        let shares = self.each(|_, archive| archive.end(FindWords { wanted: wanted.clone() }))?;
        shares.into_iter().for_each(|words| gathered.add_words(words));

        let words = gathered.statistics.clone();
        let linked = self.linked(&FindLinked { wanted: wanted.clone(), words: words.clone() })?;
        let shares = self.each(|place, archive| {
            let linked = linked.get(place).cloned().unwrap_or_default();
            let best = archive.end(FindBest { wanted: wanted.clone(), words: words.clone(), linked })?;
            Ok(best.checked(wanted.limit).map_err(NodeError::senseless)?)
        })?;
        shares.into_iter().enumerate().for_each(|(archive, best)| gathered.add_best(archive, best));

        let chosen = gathered.choose(wanted.limit);
        let shares = self.each(|place, archive| {
            let pages = chosen.iter().filter(|chosen| chosen.archive == place).map(|chosen| chosen.page);
            let pages: Vec<u32> = pages.collect();
            if pages.is_empty() {
                return Ok(Vec::new());
            }
            let count = pages.len();
            let shown = archive.rows(FindShown { wanted: wanted.clone(), words: words.clone(), pages })?;
            if shown.len() != count {
                return Err(NodeError::senseless("it shows other pages than were asked for").into());
            }
            let shown: Result<Vec<_>, _> = shown.into_iter().map(Shown::checked).collect();
            Ok(shown.map_err(NodeError::senseless)?)
        })?;
        let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
        for chosen in chosen {
            // Each archive has returned as many results as were chosen from it.
            if let Some(shown) = shares.get_mut(chosen.archive).and_then(Iterator::next) {
                gathered.add_shown(chosen, shown);
            }
        }
        Ok(gathered.finish())
    }

    /// Link data on pages of other archives, grouped by the archive that has captured pages of their site.
    fn linked(&self, kind: &FindLinked) -> Result<Vec<Vec<(String, Fit)>>, RoundFailure> {
        let shares = self.each(|_, archive| archive.rows(kind.clone()))?;
        let mut all: Vec<(HashMap<String, Fit>, usize)> = vec![Default::default(); shares.len()];
        for (place, Linked { site, url, fit }) in shares
            .into_iter()
            .enumerate()
            .flat_map(|(place, share)| share.into_iter().map(move |one| (place, one)))
        {
            let owner = self.answering(&site).filter(|owner| *owner != place);
            let Some((linked, bytes)) = owner.and_then(|owner| all.get_mut(owner)) else { continue };
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
