//! Rows in the form that filters and expressions are evaluated on.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use archive_base::decisions::{self, CurrentDecisions};
use archive_books::search::copies::Passages;
use archive_books::topics::LinkWords;
use archive_storage::address::method_of;
use archive_storage::{CaptureId, HostId, SiteId, UrlId};
use archive_web::parse::{DocumentKind, Structure, Validity};

use crate::query::elements::{structure, tree};
use crate::query::language::{
    CHANGES, Column, ElementPath, FieldPath, Filter, Found, Instant, LINK_KINDS, RESOURCE, RowsError,
    Subject, Value, Via, expr, yes_no,
};
use crate::query::rows::ahead::{Ahead, known};
use crate::query::rows::details::{CaptureRow, HostRow, LinkRow, PageDetail, Record, ResponseField};
use crate::query::rows::digests::hexadecimal;
use crate::query::rows::history::{changed, newest, recaptured};
use crate::query::rows::hits::Hits;
use crate::query::rows::limits::Running;
use crate::query::rows::payloads::Payloads;
use crate::query::rows::seen::{Seen, Tally};
use crate::query::rows::{DocumentReader, PageRow, PageText, Row, Rows, SiteRow, score};

/// Maximum number of cached hosts.
const HOSTS_REMEMBERED: usize = 1 << 16;

/// The context in which rows are evaluated.
pub(crate) struct World<'a> {
    pub(crate) rows: &'a dyn Rows,
    pub(crate) hits: &'a Hits<'a>,
    /// All sites, loaded when another row first needs one: there are few.
    sites: OnceCell<HashMap<SiteId, SiteRow>>,
    /// Cache of hosts that other rows needed recently.
    hosts: RefCell<HashMap<HostId, Option<Rc<HostRow>>>>,
    /// The last record read: several fields may come from the same record.
    record: RefCell<Option<(CaptureId, Rc<Record>)>>,
    records: Ahead<CaptureId, Rc<Record>>,
    validities: Ahead<CaptureId, Option<Validity>>,
    pub(crate) payloads: Payloads,
    /// The last document structure read.
    structure: RefCell<Option<(CaptureId, Option<Rc<Structure>>)>>,
    /// What stands around the links of the page whose links were read last, by target.
    links: RefCell<(Option<UrlId>, HashMap<UrlId, LinkWords>)>,
    /// Passages of the texts of other pages, by URL; none for a page without content.
    passages: RefCell<HashMap<String, Option<Rc<Passages>>>>,
    pub(crate) running: &'a Running,
    /// Counters, if the query is explained.
    pub(crate) tally: Option<RefCell<Tally>>,
}

/// A row in its context.
pub(crate) struct RowSubject<'a> {
    pub(crate) world: &'a World<'a>,
    pub(crate) row: &'a Row,
}

/// The value of a field that people decide.
fn decided(standing: &CurrentDecisions, column: Column) -> Value {
    let listed = |names: Vec<&str>| Some(names.join(", ")).filter(|names| !names.is_empty()).into();
    let each = |names: &'_ BTreeSet<String>| listed(names.iter().map(String::as_str).collect());
    match column {
        Column::Rating => standing.rating().map_or(Value::Empty, expr::number),
        Column::Verdict => standing.verdict.as_ref().map(|(verdict, ..)| verdict.name()).into(),
        Column::Tags => each(&standing.tags),
        Column::Collections => each(&standing.collections),
        Column::RatedBy => listed(standing.ratings.keys().map(String::as_str).collect()),
        _ => Value::Empty,
    }
}

impl<'a> World<'a> {
    pub(crate) fn new(rows: &'a dyn Rows, hits: &'a Hits<'a>) -> Self {
        let (record, structure, running) = (RefCell::default(), RefCell::default(), rows.running());
        let tally = running.is_explained().then(RefCell::default);
        let (records, validities, hosts) = (Ahead::default(), Ahead::default(), RefCell::default());
        Self {
            rows,
            hits,
            sites: OnceCell::new(),
            hosts,
            record,
            records,
            validities,
            payloads: Payloads::default(),
            structure,
            links: RefCell::default(),
            passages: RefCell::default(),
            running,
            tally,
        }
    }

    pub(crate) fn subject(&'a self, row: &'a Row) -> RowSubject<'a> {
        RowSubject { world: self, row }
    }

    fn site(&self, id: SiteId) -> Found<Option<&SiteRow>> {
        if self.sites.get().is_none() {
            let sites = self.rows.sites().map(|site| site.map(|site| (site.id, site)));
            let sites = sites.collect::<Found<HashMap<_, _>>>()?;
            self.sites.get_or_init(|| sites);
        }
        Ok(self.sites.get().and_then(|sites| sites.get(&id)))
    }

    fn host(&self, id: HostId) -> Found<Option<Rc<HostRow>>> {
        if let Some(host) = self.hosts.borrow().get(&id) {
            return Ok(host.clone());
        }
        let host = self.rows.host(id)?.map(Rc::new);
        let mut hosts = self.hosts.borrow_mut();
        if hosts.len() >= HOSTS_REMEMBERED {
            hosts.clear();
        }
        hosts.insert(id, host.clone());
        Ok(host)
    }

    /// Reads in parallel the records and validity checks that `asks` requests, and replaces those read ahead before.
    pub(crate) fn read_ahead(&self, asks: impl FnOnce() -> Found<()>) -> Found<()> {
        self.records.ask();
        self.validities.ask();
        self.payloads.ask();
        let asked = asks();
        let (records, validities) = (self.records.asked(), self.validities.asked());
        let payloads = self.payloads.asked();
        asked?;
        self.running.note(|seen| seen.records_read += records.len() as u64 + payloads.count());
        // What is not read ahead is read row by row, so that an unreadable record ends only its own row.
        let read = known(self.rows.records(&records))?;
        self.records.keep(records, read.into_iter().map(Rc::new));
        let checked = known(self.rows.validities(&validities))?;
        self.validities.keep(validities, checked);
        self.payloads.read(payloads, self.rows)
    }

    /// The passages of the text of the page at a URL.
    fn passages(&self, url: &str) -> Found<Option<Rc<Passages>>> {
        if let Some(known) = self.passages.borrow().get(url) {
            return Ok(known.clone());
        }
        let page = self.rows.find(url)?.map(|id| self.rows.page(id)).transpose()?.flatten();
        let newest = page.map(|page| newest(self.rows, &page)).transpose()?.flatten();
        let facts = newest.map(|capture| self.facts(capture.id)).transpose()?.flatten();
        let passages = facts.map(|facts| Rc::new(Passages::of(&facts.text)));
        self.passages.borrow_mut().insert(url.to_owned(), passages.clone());
        Ok(passages)
    }

    /// What the response of a capture says.
    fn said(&self, capture: CaptureId, asked: ResponseField<'_>) -> Found<Value> {
        match self.rows.noted(capture, asked)? {
            Some(value) => Ok(value),
            None => Ok(self.record(capture)?.answer(asked)),
        }
    }

    /// What the response of a page's newest capture says.
    fn said_of_newest(&self, page: &PageRow, asked: ResponseField<'_>) -> Found<Value> {
        let newest = match self.rows.newest(page)? {
            Some(newest) => Some(newest),
            None => newest(self.rows, page)?.map(|capture| capture.id),
        };
        newest.map_or(Ok(Value::Empty), |newest| self.said(newest, asked))
    }

    fn record(&self, capture: CaptureId) -> Found<Rc<Record>> {
        if let Some(record) = self.records.get(&capture) {
            return Ok(record);
        }
        if let Some((known, record)) = self.record.borrow().as_ref()
            && *known == capture
        {
            return Ok(Rc::clone(record));
        }
        self.reads(|seen| &mut seen.records_read)?;
        let record = Rc::new(self.rows.record(capture)?);
        *self.record.borrow_mut() = Some((capture, Rc::clone(&record)));
        Ok(record)
    }

    /// Before an expensive read: checks the deadline and counts the read.
    pub(crate) fn reads(&self, what: impl FnOnce(&mut Seen) -> &mut u64) -> Found<()> {
        self.running.check()?;
        self.running.note(|seen| *what(seen) += 1);
        Ok(())
    }

    /// A structure field of a capture's document, if it is XML and was fetched successfully. Feeds may be served as
    /// HTML: then `kind` tells.
    fn of_document(&self, capture: &CaptureRow, kind: Option<DocumentKind>, column: Column) -> Found<Value> {
        if !capture.has_document() || !structure::can_be_xml(&capture.content_type, kind) {
            return Ok(Value::Empty);
        }
        if column == Column::Valid {
            return Ok(self.validity(capture.id)?.map(Validity::name).into());
        }
        Ok(self.structure(capture)?.map_or(Value::Empty, |structure| structure::value(&structure, column)))
    }

    fn validity(&self, capture: CaptureId) -> Found<Option<Validity>> {
        if let Some(validity) = self.validities.get(&capture) {
            return Ok(validity);
        }
        Ok(self.rows.validities(&[capture])?.pop().flatten())
    }

    fn structure(&self, capture: &CaptureRow) -> Found<Option<Rc<Structure>>> {
        if let Some((known, structure)) = self.structure.borrow().as_ref()
            && *known == capture.id
        {
            return Ok(structure.clone());
        }
        self.reads(|seen| &mut seen.documents_parsed)?;
        let structure = self.rows.structure(capture.id)?.map(Rc::new);
        *self.structure.borrow_mut() = Some((capture.id, structure.clone()));
        Ok(structure)
    }

    fn of_page(&self, page: &PageRow, column: Column) -> Found<Value> {
        let text = |text| Ok::<_, RowsError>(self.rows.text(page, text)?.map(Cow::into_owned).into());
        let detail = |detail| self.rows.page_detail(page, detail);
        Ok(match column {
            Column::Importance => page.importance.into(),
            Column::Score => score::combined(self.hits.bm25(page.id)?, page.importance).into(),
            Column::Status => page.status.map(u32::from).into(),
            Column::ContentStatus => page.content_status.map(u32::from).into(),
            Column::Attempts => page.attempts.into(),
            Column::LastAnswer => page.last_answer.into(),
            Column::LastAttempt => page.last_attempt.into(),
            Column::FailingSince => page.failing_since.into(),
            Column::Died => {
                let is_gone = matches!(page.status, Some(404 | 410)) || page.last_attempt != page.last_answer;
                page.failing_since.filter(|_| page.captures > 0 && is_gone).into()
            }
            Column::Recaptured if page.captures < 2 => Value::Empty,
            Column::Recaptured => recaptured(self.rows, page.id, None)?.map_or(Value::Empty, expr::number),
            Column::Captures => page.captures.into(),
            Column::Captured => u32::from(page.captures > 0).into(),
            Column::Versions => page.versions.into(),
            Column::Depth => page.depth.into(),
            Column::Named(index) => self.rows.page_number(page.id, index)?.into(),
            Column::FirstSeen => page.first_seen.into(),
            Column::LastSeen => page.last_seen.into(),
            Column::Changed => page.changed.into(),
            Column::Type => page.kind.map(DocumentKind::page_type).into(),
            Column::Url => text(PageText::Url)?,
            Column::Method => {
                let url = self.rows.text(page, PageText::Url)?.unwrap_or_default();
                method_of(&url).unwrap_or("GET").into()
            }
            Column::Host => text(PageText::Host)?,
            Column::Site => text(PageText::Site)?,
            Column::Title => text(PageText::Title)?,
            Column::Language => text(PageText::Language)?,
            Column::ContentType => text(PageText::ContentType)?,
            Column::Hop => detail(PageDetail::Hop)?,
            Column::Via => detail(PageDetail::Via)?,
            Column::Seed => detail(PageDetail::Seed)?,
            Column::Refusal => detail(PageDetail::Refusal)?,
            Column::Redirect => detail(PageDetail::Redirect)?,
            Column::ChangeRate => detail(PageDetail::ChangeRate)?,
            Column::Freshness => detail(PageDetail::Freshness)?,
            Column::NextVisit => detail(PageDetail::NextVisit)?,
            Column::Parts => detail(PageDetail::Parts(None))?,
            Column::PartsAge => detail(PageDetail::PartsAge(None))?,
            Column::PartsRight => detail(PageDetail::PartsRight(None))?,
            column if column.is_of_structure() => {
                if page.content_status.is_some_and(|status| status != 200) {
                    return Ok(Value::Empty);
                }
                let known = self.hits.structures.get(page.id).filter(|_| page.content_status.is_some());
                if let Some(value) = known.and_then(|known| structure::known_value(known, column)) {
                    return Ok(value);
                }
                match newest(self.rows, page)? {
                    Some(newest) => self.of_document(&newest, page.kind, column)?,
                    None => Value::Empty,
                }
            }
            column if column.is_of_payload() => self.of_newest_payload(page, column)?,
            column if column.is_decided() => {
                let Some(decisions) = self.rows.decisions() else { return Ok(Value::Empty) };
                let text = |text| Ok::<_, RowsError>(self.rows.text(page, text)?.unwrap_or_default());
                let (url, host) = (text(PageText::Url)?, text(PageText::Host)?);
                decided(&decisions.of_page(&url, &host, &text(PageText::Site)?), column)
            }
            // Not of the content, but of the newest attempt.
            Column::Failure if page.last_attempt == page.last_answer => Value::Empty,
            Column::Failure => match self.rows.history(page.id)?.next().transpose()? {
                Some(newest) => self.said(newest.id, ResponseField::Failure)?,
                None => Value::Empty,
            },
            column => match ResponseField::of(column) {
                Some(asked) => self.said_of_newest(page, asked)?,
                None => match newest(self.rows, page)? {
                    Some(newest) => self.of_capture(&newest, column)?,
                    None => Value::Empty,
                },
            },
        })
    }

    fn of_site(&self, site: &SiteRow, column: Column) -> Found<Value> {
        Ok(match column {
            Column::Site => site.name.as_str().into(),
            Column::Importance => site.importance.into(),
            Column::Pages => site.pages.into(),
            Column::Captures => site.captures.into(),
            Column::Captured => u32::from(site.captures > 0).into(),
            Column::Html => site.html.into(),
            Column::Xml => site.xml.into(),
            Column::Other => site.other().into(),
            Column::FirstSeen => site.first_seen.into(),
            Column::LastSeen => site.last_seen.into(),
            Column::Named(index) => self.rows.site_number(site.id, index)?.into(),
            column => match self.rows.decisions() {
                Some(made) => made
                    .on(&decisions::Subject::Site(site.name.clone()))
                    .map_or(Value::Empty, |standing| decided(standing, column)),
                None => Value::Empty,
            },
        })
    }

    fn of_host(&self, host: &HostRow, column: Column) -> Found<Value> {
        Ok(match column {
            Column::Host => host.name.as_str().into(),
            Column::Site => self.site(host.site)?.map(|site| site.name.as_str()).into(),
            Column::Urls => self.rows.host_urls(host.id)?.into(),
            Column::Pages => host.pages.into(),
            Column::Captures => host.captures.into(),
            Column::Attempts => host.attempts.into(),
            Column::Failures => host.failures.into(),
            Column::Size => host.bytes.into(),
            column => match (self.rows.decisions(), self.site(host.site)?) {
                (Some(decisions), Some(site)) => decided(&decisions.of_host(&host.name, &site.name), column),
                _ => Value::Empty,
            },
        })
    }

    /// A field of the parts of a page, as of a capture that found it.
    fn of_parts(&self, capture: &CaptureRow, detail: fn(Option<i64>) -> PageDetail) -> Found<Value> {
        let is_found = capture.kind == RESOURCE || capture.status.is_some_and(|status| status < 400);
        match self.rows.page(capture.page)?.filter(|_| is_found) {
            Some(page) => self.rows.page_detail(&page, detail(Some(capture.time.timestamp_micros()))),
            None => Ok(Value::Empty),
        }
    }

    fn of_capture(&self, capture: &CaptureRow, column: Column) -> Found<Value> {
        Ok(match column {
            Column::Time => Value::Time(capture.time),
            Column::Content => yes_no(capture.is_content).into(),
            Column::Kind => capture.kind.into(),
            Column::Status => capture.status.map(u32::from).into(),
            Column::ContentType => capture.content_type.as_str().into(),
            Column::Size => capture.size.into(),
            Column::Stored => capture.stored.into(),
            Column::Digest => hexadecimal(&capture.digest).into(),
            Column::Software => self.rows.software(capture.id)?.into(),
            Column::Recaptured => {
                recaptured(self.rows, capture.page, Some(capture.id))?.map_or(Value::Empty, expr::number)
            }
            column if column.is_of_payload() => self.of_payload(capture, column)?,
            Column::Change => match (capture.content_changed, capture.bytes_changed) {
                (true, _) => CHANGES.first().copied().into(),
                (false, true) => CHANGES.last().copied().into(),
                (false, false) => Value::Empty,
            },
            Column::Parts => self.of_parts(capture, PageDetail::Parts)?,
            Column::PartsAge => self.of_parts(capture, PageDetail::PartsAge)?,
            Column::PartsRight => self.of_parts(capture, PageDetail::PartsRight)?,
            column if column.is_of_structure() => {
                let kind = self.rows.page(capture.page)?.and_then(|page| page.kind);
                self.of_document(capture, kind, column)?
            }
            _ => match ResponseField::of(column) {
                Some(asked) => self.said(capture.id, asked)?,
                None => match self.rows.page(capture.page)? {
                    Some(page) => self.of_page(&page, column)?,
                    None => Value::Empty,
                },
            },
        })
    }

    fn of_link(&self, link: &LinkRow, column: Column) -> Found<Value> {
        let url = |page| self.of(Via::Page, &Reached { page: Some(page), ..Reached::default() }, Column::Url);
        Ok(match column {
            Column::Source => url(link.source)?,
            Column::Target => url(link.target)?,
            Column::LinkKind => {
                LINK_KINDS.iter().find(|(_, letter)| *letter == link.hop).map(|(name, _)| *name).into()
            }
            Column::LinkText | Column::LinkContext | Column::LinkHeading => self.link_words(link, column)?,
            Column::Element => link.context.into(),
            Column::Nofollow => yes_no(link.nofollow).into(),
            Column::Template => yes_no(link.template).into(),
            _ => Value::Empty,
        })
    }

    /// What stands around a link, read from the page with it; the links of a page come together.
    fn link_words(&self, link: &LinkRow, column: Column) -> Found<Value> {
        if self.links.borrow().0 != Some(link.source) {
            let page = self.rows.page(link.source)?;
            let newest = page.map(|page| newest(self.rows, &page)).transpose()?.flatten();
            self.reads(|seen| &mut seen.records_read)?;
            let mut found = HashMap::new();
            for words in newest.map_or(Ok(Vec::new()), |newest| self.rows.link_words(newest.id))? {
                if let Some(target) = self.rows.find(&words.url)? {
                    found.entry(target).or_insert(words);
                }
            }
            *self.links.borrow_mut() = (Some(link.source), found);
        }
        let links = self.links.borrow();
        let said = |words: &LinkWords| match column {
            Column::LinkText => words.anchor.trim().to_owned(),
            Column::LinkContext => words.context.clone(),
            _ => words.heading.clone(),
        };
        Ok(links.1.get(&link.target).map(said).filter(|said| !said.is_empty()).into())
    }

    /// A field of a related row.
    fn of(&self, via: Via, reached: &Reached, column: Column) -> Found<Value> {
        match via {
            Via::Site => {
                let site = reached.site.map(|id| self.site(id)).transpose()?.flatten();
                site.map_or(Ok(Value::Empty), |site| self.of_site(site, column))
            }
            Via::Host => {
                let host = reached.host.map(|id| self.host(id)).transpose()?.flatten();
                host.map_or(Ok(Value::Empty), |host| self.of_host(&host, column))
            }
            Via::Page | Via::Source | Via::Target => {
                let page = reached.page.map(|id| self.rows.page(id)).transpose()?.flatten();
                page.map_or(Ok(Value::Empty), |page| self.of_page(&page, column))
            }
        }
    }
}

/// The rows that a row is related to.
#[derive(Clone, Copy, Default)]
struct Reached {
    page: Option<UrlId>,
    host: Option<HostId>,
    site: Option<SiteId>,
}

impl RowSubject<'_> {
    fn reached(&self, via: Via) -> Found<Reached> {
        Ok(match (self.row, via) {
            (Row::Page(page), _) => {
                Reached { page: Some(page.id), host: Some(page.host), site: Some(page.site) }
            }
            (Row::Host(host), _) => Reached { site: Some(host.site), ..Reached::default() },
            (Row::Link(link), Via::Target) => Reached { page: Some(link.target), ..Reached::default() },
            (Row::Link(link), _) => Reached { page: Some(link.source), ..Reached::default() },
            (Row::Capture(capture), Via::Page) => Reached { page: Some(capture.page), ..Reached::default() },
            (Row::Capture(capture), _) => match self.world.rows.page(capture.page)? {
                Some(page) => Reached { page: Some(page.id), host: Some(page.host), site: Some(page.site) },
                None => Reached::default(),
            },
            (Row::Site(_), _) => Reached::default(),
        })
    }

    /// Passes the row's XML document to a function, if it has one.
    fn document(&self, read: &mut DocumentReader<'_>) -> Found<()> {
        let capture = match self.row {
            Row::Page(page) if page.kind.is_some_and(DocumentKind::has_elements) => {
                newest(self.world.rows, page)?
            }
            Row::Capture(capture) => Some(capture.clone()),
            _ => None,
        };
        match capture {
            Some(capture) if capture.has_document() => {
                self.world.reads(|seen| &mut seen.documents_parsed)?;
                self.world.rows.document(capture.id, read)
            }
            _ => Ok(()),
        }
    }

    fn page(&self) -> Option<UrlId> {
        match self.row {
            Row::Page(page) => Some(page.id),
            Row::Capture(capture) => Some(capture.page),
            Row::Site(_) | Row::Host(_) | Row::Link(_) => None,
        }
    }
}

impl Subject for RowSubject<'_> {
    fn field(&self, FieldPath { via, column }: FieldPath) -> Found<Value> {
        let world = self.world;
        if let Some(via) = via {
            return world.of(via, &self.reached(via)?, column);
        }
        match self.row {
            Row::Page(page) => world.of_page(page, column),
            Row::Site(site) => world.of_site(site, column),
            Row::Host(host) => world.of_host(host, column),
            Row::Capture(capture) => world.of_capture(capture, column),
            Row::Link(link) => world.of_link(link, column),
        }
    }

    fn header(&self, name: &str) -> Found<Value> {
        match self.row {
            Row::Page(page) => self.world.said_of_newest(page, ResponseField::Header(name)),
            Row::Capture(capture) => self.world.said(capture.id, ResponseField::Header(name)),
            Row::Site(_) | Row::Host(_) | Row::Link(_) => Ok(Value::Empty),
        }
    }

    fn topic(&self, name: &str) -> Found<Value> {
        let Some(page) = self.page() else { return Ok(Value::Empty) };
        self.world.reads(|seen| &mut seen.records_read)?;
        Ok(self.world.rows.topic(page, name)?.map_or(Value::Empty, Value::Number))
    }

    fn said(&self, phrase: &str, is_last: bool) -> Found<Value> {
        match self.row {
            Row::Page(page) if page.captures == 0 => Ok(Value::Empty),
            _ => self.page().map_or(Ok(Value::Empty), |page| self.world.page_said(page, phrase, is_last)),
        }
    }

    fn shared(&self, url: &str) -> Found<Value> {
        let Some(original) = self.world.passages(url)? else { return Ok(Value::Empty) };
        let text = self.field(FieldPath::from(Column::Text))?;
        let Value::Text(text) = text else { return Ok(Value::Empty) };
        Ok(expr::number(original.share_in(&Passages::of(&text))))
    }

    fn hit(&self, search: usize) -> bool {
        self.page().is_some_and(|page| self.world.hits.has(search, page))
    }

    fn some(&self, path: &ElementPath, filter: Option<&Filter>) -> Found<bool> {
        let mut is_there = false;
        self.document(&mut |tree| {
            is_there = tree::has(tree, path, filter)?;
            Ok(())
        })?;
        Ok(is_there)
    }

    fn elements(&self, path: &ElementPath) -> Found<Value> {
        let mut texts = Value::Empty;
        self.document(&mut |tree| {
            texts = tree::texts(tree, path)?;
            Ok(())
        })?;
        Ok(texts)
    }

    fn changed(&self, from: Option<Instant>, until: Option<Instant>) -> Found<bool> {
        let Row::Page(page) = self.row else { return Ok(false) };
        if page.versions < 2 || page.last_seen < from {
            return Ok(false);
        }
        let history = self.world.rows.history(page.id)?.map(|capture| {
            let capture = capture?;
            Ok((capture.time, capture.content_changed))
        });
        changed(history, from, until)
    }
}
