//! The rows of an archive on disk, as queries need them.

use std::borrow::Cow;
use std::collections::HashSet;

use archive_base::decisions::Decisions;
use archive_books::change::{facts, parsed, said_by_page, structure, validate, with_tree};
use archive_books::ledger::language;
use archive_books::prepared::{Column as Stored, newest_contents};
use archive_books::search::Phrase;
use archive_books::topics::{LinkWords, link_words};
use archive_grammar::{QueryRows, Relation};
use archive_storage::{CaptureId, HostId, SiteId, UrlId};
use archive_web::parse::{DocumentFacts, Structure, Validity};
use chrono::{DateTime, Utc};
use rayon::prelude::*;

use crate::query::columns::aggregate::{ColumnGroups, CountedBucket};
use crate::query::columns::answers;
use crate::query::columns::archive::{ArchiveRows, RECORDS_OF_PART};
use crate::query::columns::captures::{record_of, unreadable};
use crate::query::columns::filter::ColumnFilter;
use crate::query::columns::first::BestByNumber;
use crate::query::columns::page_batch::row;
use crate::query::language::{Found, Plan, RowsError, Value};
use crate::query::rows::{
    Bucket, CaptureRow, Chosen, DocumentReader, Each, FoundDigest, Hits, HostRow, LinkRow, PageDetail,
    PageDigest, PageRow, PageText, Record, ResponseField, Row, Rows, SaidTimes, SiteRow,
};

impl Rows for ArchiveRows<'_> {
    fn pages(&self) -> Each<'_, PageRow> {
        Box::new(
            self.facts(ColumnFilter::All(Vec::new())).map(|page| page.map(|(id, facts)| row(id, &facts))),
        )
    }

    fn pages_for(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Chosen<'_, PageRow>> {
        let (filter, are_selected) = match self.chosen(plan, hits, self.state.url_count().into())? {
            Some((mut columnar, is_exact)) => {
                columnar.filter.prepare()?;
                (columnar.filter, is_exact)
            }
            None => (ColumnFilter::All(Vec::new()), false),
        };
        let pages = self.facts(filter).map(|page| page.map(|(id, facts)| row(id, &facts)));
        Ok(Chosen { rows: Box::new(pages), are_selected })
    }

    fn buckets_for(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Option<(Vec<Bucket>, u64)>> {
        let Some(wanted) = ColumnGroups::of(plan) else { return Ok(None) };
        let Some(columnar) = self.columnar(plan, hits)? else { return Ok(None) };
        let Some((counted, left_out)) = columnar.sorted(&wanted)? else { return Ok(None) };
        columnar.note(plan, wanted.columns());
        let rows = match plan.target {
            QueryRows::Pages => {
                let page = |counted: &CountedBucket| row(UrlId(counted.last), &wanted.facts(&counted.values));
                counted.iter().map(|counted| Row::Page(page(counted))).collect()
            }
            _ => self.rows_of(plan, counted.iter().map(|counted| counted.last).collect())?,
        };
        let buckets = rows.into_iter().zip(counted);
        let buckets = buckets.map(|(row, CountedBucket { count, sums, .. })| Bucket { row, count, sums });
        Ok(Some((buckets.collect(), left_out)))
    }

    fn best_for(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Option<(Vec<Row>, u64)>> {
        let Some(best) = BestByNumber::of(plan) else { return self.first_by_keys(plan, hits) };
        let Some(columnar) = self.columnar(plan, hits)? else { return Ok(None) };
        let (ids, count) = columnar.best(&best, hits)?;
        columnar.note(plan, best.columns());
        Ok(Some((self.rows_of(plan, ids)?, count)))
    }

    fn drawn_for(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Option<Vec<Row>>> {
        let Some(sample) = plan.sample else { return Ok(None) };
        let Some(columnar) = self.columnar(plan, hits)? else { return Ok(None) };
        let (ids, count) = columnar.drawn(sample)?;
        columnar.note(plan, Vec::new());
        self.running.note(|seen| seen.selected(count));
        self.rows_of(plan, ids).map(Some)
    }

    fn page(&self, id: UrlId) -> Found<Option<PageRow>> {
        if id.0 >= self.state.url_count() {
            return Ok(None);
        }
        let (page, visit) = self.known(id)?;
        if !self.access.shows_page(self.state, visit.as_ref())? {
            return Ok(None);
        }
        Ok(self.pages.facts(id, &page, visit.as_ref())?.map(|facts| row(id, &facts)))
    }

    fn text(&self, page: &PageRow, text: PageText) -> Found<Option<Cow<'_, str>>> {
        let state = self.state;
        let mut texts = self.texts.borrow_mut();
        let text = match text {
            PageText::Url => Some(texts.urls.get(page.id.0)?.to_owned()),
            PageText::Host => Some(texts.hosts.get(page.host.0)?.to_owned()),
            PageText::Site => Some(texts.sites.get(page.site.0)?.to_owned()),
            PageText::Title => {
                let title = self.visit(page.id)?.and_then(|visit| visit.title);
                title.map(|position| texts.titles.get(position).map(str::to_owned)).transpose()?
            }
            PageText::Language => {
                let number = self.visit(page.id)?.map_or(0, |visit| visit.language);
                language(state, number)
            }
            PageText::ContentType => {
                let content = newest_contents(state, &[page.id])?.pop();
                content
                    .map(|(_, content)| state.mime(content.mime).to_owned())
                    .filter(|mime| !mime.is_empty())
            }
        };
        Ok(text.map(Cow::Owned))
    }

    fn page_columns(&self) -> &[String] {
        &self.page_columns.names
    }

    fn page_number(&self, page: UrlId, index: usize) -> Found<Option<f64>> {
        Ok(self.page_column(index)?.get(page.index()))
    }

    fn site_columns(&self) -> &[String] {
        &self.site_columns.names
    }

    fn site_number(&self, site: SiteId, index: usize) -> Found<Option<f64>> {
        let Some(computed) = index.checked_sub(self.site_columns.columns.len()) else {
            return Ok(self.site_columns.columns.get(index).and_then(|column| column.get(site.index())));
        };
        let sums = || Ok::<_, RowsError>(self.site_sums()?.get(site.index()));
        Ok(match computed {
            0 => sums()?.map(|sums| sums.importance),
            1 => sums()?.map(|sums| sums.importance_max),
            _ => self.trends()?[1].get(site.index()),
        })
    }

    fn sites(&self) -> Each<'_, SiteRow> {
        self.all_sites()
    }

    fn sites_for(&self, plan: &Plan) -> Found<Chosen<'_, SiteRow>> {
        self.chosen_sites(plan)
    }

    fn topics(&self) -> &[String] {
        self.topics.names()
    }

    fn topic(&self, page: UrlId, name: &str) -> Found<Option<f64>> {
        Ok(self.topics.probability(self.store, page, name)?)
    }

    fn decisions(&self) -> Option<&Decisions> {
        Some(&self.decisions).filter(|decisions| !decisions.is_empty())
    }

    // Implemented in `captures` and elsewhere.

    fn find(&self, url: &str) -> Found<Option<UrlId>> {
        Ok(self.state.find(url)?)
    }

    fn page_detail(&self, page: &PageRow, detail: PageDetail) -> Found<Value> {
        self.page_detail_of(page, detail)
    }

    fn hosts(&self) -> Each<'_, HostRow> {
        let shown = self
            .state
            .hosts()
            .filter(|host| host.as_ref().map_or(true, |(id, ..)| self.state.shows_host(*id)));
        Box::new(shown.map(|host| {
            let (id, name, host) = host?;
            Ok(self.host_row(id, name, &host))
        }))
    }

    fn host(&self, host: HostId) -> Found<Option<HostRow>> {
        self.host_of(host)
    }

    fn host_urls(&self, host: HostId) -> Found<u32> {
        Ok(self.urls_of_hosts()?.get(host.index()).copied().unwrap_or_default())
    }

    fn captures(&self) -> Each<'_, CaptureRow> {
        Box::new(self.all_captures())
    }

    fn captures_for(&self, plan: &Plan) -> Found<Chosen<'_, CaptureRow>> {
        self.chosen_captures(plan)
    }

    fn history(&self, page: UrlId) -> Found<Each<'_, CaptureRow>> {
        Ok(Box::new(self.history_of(page)?))
    }

    fn links(&self, visit: &mut dyn FnMut(LinkRow) -> Found<()>) -> Found<()> {
        self.all_links(None, &mut |link, _| visit(link))
    }

    fn links_for(&self, plan: &Plan, visit: &mut dyn FnMut(LinkRow, bool) -> Found<()>) -> Found<()> {
        self.all_links(Some(plan), visit)
    }

    fn linked(&self, relation: Relation, others: &HashSet<UrlId>) -> Found<Option<HashSet<UrlId>>> {
        self.pages_linked(relation, others)
    }

    fn contents_alike(&self, wanted: Option<&HashSet<FoundDigest>>) -> Found<Option<Vec<PageDigest>>> {
        self.digests_alike(wanted)
    }

    fn newest(&self, page: &PageRow) -> Found<Option<CaptureId>> {
        let Some(prepared) = self.prepared.as_ref().filter(|_| page.attempts > 0) else { return Ok(None) };
        let (block, row) = prepared.block_of(page.id.0);
        let mut newest = self.newest.borrow_mut();
        if newest.as_ref().is_none_or(|(read, _)| *read != block) {
            *newest = Some((block, prepared.values(block, Stored::Newest)?));
        }
        let value = newest.as_ref().and_then(|(_, values)| values.get(row as usize)).copied();
        Ok(value.and_then(|value| value.checked_sub(1)).map(|capture| CaptureId(capture as u32)))
    }

    fn noted(&self, capture: CaptureId, asked: ResponseField<'_>) -> Found<Option<Value>> {
        let answers = self.answers()?;
        answers.map_or(Ok(None), |answers| answers::noted(answers, capture, asked))
    }

    fn software(&self, capture: CaptureId) -> Found<Option<String>> {
        self.software_of(self.state.capture(capture)?.location.segment)
    }

    fn records(&self, captures: &[CaptureId]) -> Found<Vec<Record>> {
        let (store, running) = (self.store, &self.running);
        let record = |capture: &CaptureId| -> Found<Record> {
            running.check()?;
            record_of(store, *capture)
        };
        captures.par_iter().with_min_len(RECORDS_OF_PART).map(record).collect()
    }

    fn document_facts(&self, captures: &[CaptureId]) -> Found<Vec<Option<DocumentFacts>>> {
        let (state, store, access, running) = (self.state, self.store, &self.access, &self.running);
        let facts_of = |capture: &CaptureId| -> Found<Option<DocumentFacts>> {
            running.check()?;
            let capture = state.capture(*capture)?;
            facts(store, access, &capture).map_err(|error| unreadable(store, &capture, &error))
        };
        captures.par_iter().map(facts_of).collect()
    }

    fn said(
        &self,
        pages: &[(UrlId, String)],
        before: Option<DateTime<Utc>>,
    ) -> Found<Vec<Option<SaidTimes>>> {
        let (store, access, running) = (self.store, &self.access, &self.running);
        let times = |(page, phrase): &(UrlId, String)| -> Found<Option<SaidTimes>> {
            running.check()?;
            let Some(phrase) = Phrase::of(phrase) else { return Ok(None) };
            let Some(said) = said_by_page(store, access, &phrase, *page, before, running.limits.until())?
            else {
                running.check()?;
                return Ok(None);
            };
            let ends = said.spans.first().zip(said.spans.last());
            Ok(ends.map(|(first, last)| (first.since, last.last)))
        };
        pages.par_iter().map(times).collect()
    }

    fn document(&self, capture: CaptureId, read: &mut DocumentReader<'_>) -> Found<()> {
        let capture = self.state.capture(capture)?;
        let read = with_tree(self.store, &self.access, &capture, read);
        read.map_err(|error| unreadable(self.store, &capture, &error))?.unwrap_or(Ok(()))
    }

    fn link_words(&self, capture: CaptureId) -> Found<Vec<LinkWords>> {
        let capture = self.state.capture(capture)?;
        let document = parsed(self.store, &capture);
        let document = document.map_err(|error| unreadable(self.store, &capture, &error))?;
        Ok(link_words(&self.state.url(capture.url)?, &document, usize::MAX))
    }

    fn documents_for(&self, plan: &Plan, hits: &Hits<'_>, search: usize) -> Found<Option<Vec<UrlId>>> {
        self.documents_that(plan, hits, search)
    }

    fn structure(&self, capture: CaptureId) -> Found<Option<Structure>> {
        let capture = self.state.capture(capture)?;
        structure(self.store, &capture).map_err(|error| unreadable(self.store, &capture, &error))
    }

    fn validities(&self, captures: &[CaptureId]) -> Found<Vec<Option<Validity>>> {
        let (state, store, access, running) = (self.state, self.store, &self.access, &self.running);
        // Reading ahead records also gets here, with no documents to check.
        let known = if captures.is_empty() { None } else { self.checks()? };
        let validity = |capture: &CaptureId| -> Found<Option<Validity>> {
            running.check()?;
            if let Some((answers, checks)) = known
                && let Some(validity) = checks.found(answers, state, *capture)?
            {
                return Ok(Some(validity));
            }
            running.note(|seen| seen.documents_parsed += 1);
            let capture = state.capture(*capture)?;
            let found =
                validate(store, access, &capture).map_err(|error| unreadable(store, &capture, &error))?;
            Ok(found.map(|found| found.validity()))
        };
        captures.par_iter().with_min_len(RECORDS_OF_PART).map(validity).collect()
    }
}
