//! Fields that are read from the payloads of captures: what documents say of themselves, what their bytes are, what
//! versions lost, and since when pages said something.

use std::cell::RefCell;
use std::rc::Rc;

use archive_storage::{CaptureId, UrlId};
use archive_web::parse::{DocumentFacts, DocumentKind};
use chrono::DateTime;

use crate::query::language::{Column, Found, RESOURCE, Value, yes_no};
use crate::query::rows::ahead::{Ahead, known};
use crate::query::rows::details::CaptureRow;
use crate::query::rows::history::{newest, version_before};
use crate::query::rows::subject::World;
use crate::query::rows::{PageRow, Rows, SaidTimes};

/// Text or pictures are lost if less than one in this many is left.
const LEFT_OF: u64 = 10;

type Facts = Option<Rc<DocumentFacts>>;

/// Payloads that were read.
#[derive(Default)]
pub(crate) struct Payloads {
    facts: Ahead<CaptureId, Facts>,
    said: Ahead<(UrlId, String), Option<SaidTimes>>,
    /// The last ones that were read for a single row, which has several fields: of a version, and of the one before.
    last: RefCell<Vec<(CaptureId, Facts)>>,
}

impl Payloads {
    /// Number of captures in `last`.
    const LAST: usize = 2;

    /// Starts to collect what is asked for.
    pub(crate) fn ask(&self) {
        self.facts.ask();
        self.said.ask();
    }

    /// Ends collecting.
    pub(crate) fn asked(&self) -> Asked {
        Asked { facts: self.facts.asked(), said: self.said.asked() }
    }

    /// Reads what was asked for, in parallel, and replaces what was read before.
    pub(crate) fn read(&self, asked: Asked, rows: &dyn Rows) -> Found<()> {
        let facts = known(rows.document_facts(&asked.facts))?;
        self.facts.keep(asked.facts, facts.into_iter().map(|facts| facts.map(Rc::new)));
        let said = known(rows.said(&asked.said, None))?;
        self.said.keep(asked.said, said);
        Ok(())
    }
}

/// What was asked for.
pub(crate) struct Asked {
    facts: Vec<CaptureId>,
    said: Vec<(UrlId, String)>,
}

impl Asked {
    /// Number of captures, and of pages whose versions are all read.
    pub(crate) fn count(&self) -> u64 {
        (self.facts.len() + self.said.len()) as u64
    }
}

impl World<'_> {
    /// A field that is read from the payload of a capture. Errors have a payload, too; a redirect has none that anybody
    /// sees.
    pub(crate) fn of_payload(&self, capture: &CaptureRow, column: Column) -> Found<Value> {
        let is_seen = match capture.status {
            Some(status) => !(300..400).contains(&status),
            None => capture.kind == RESOURCE,
        };
        match column {
            _ if !is_seen => Ok(Value::Empty),
            column if column.is_lost() => self.lost(capture, column),
            column => Ok(self.facts(capture.id)?.map_or(Value::Empty, |facts| value(&facts, column))),
        }
    }

    /// The same of a page's newest content; what documents of a kind never have is not read.
    pub(crate) fn of_newest_payload(&self, page: &PageRow, column: Column) -> Found<Value> {
        let may_have = |kind: DocumentKind| match column {
            Column::Format | Column::Pronom | Column::Width | Column::Height => true,
            Column::Alt | Column::Pictures | Column::PicturesWithoutAlt | Column::LostPictures => {
                kind == DocumentKind::Html
            }
            _ => kind.has_text() || kind == DocumentKind::Sitemap,
        };
        if page.captures == 0 || !page.kind.is_none_or(may_have) || column.is_lost() && page.versions < 2 {
            return Ok(Value::Empty);
        }
        newest(self.rows, page)?.map_or(Ok(Value::Empty), |newest| self.of_payload(&newest, column))
    }

    /// Whether a version lost what the one before had; unknown of the first one.
    fn lost(&self, capture: &CaptureRow, column: Column) -> Found<Value> {
        let before = if capture.has_document() { version_before(self.rows, capture)? } else { None };
        let Some(before) = before.filter(CaptureRow::has_document) else { return Ok(Value::Empty) };
        let (Some(then), Some(now)) = (self.facts(before.id)?, self.facts(capture.id)?) else {
            return Ok(Value::Empty);
        };
        let is_little = |then: u64, now: u64| now * LEFT_OF < then;
        let length = |facts: &DocumentFacts| facts.text.chars().count() as u64;
        Ok(yes_no(match column {
            Column::LostTitle => !then.title.is_empty() && now.title.is_empty(),
            Column::LostText => is_little(length(&then), length(&now)),
            _ => is_little(then.pictures.into(), now.pictures.into()),
        })
        .into())
    }

    /// What a capture's document says of itself.
    pub(crate) fn facts(&self, capture: CaptureId) -> Found<Facts> {
        if let Some(facts) = self.payloads.facts.get(&capture) {
            return Ok(facts);
        }
        let mut last = self.payloads.last.borrow_mut();
        if let Some((_, facts)) = last.iter().find(|(known, _)| *known == capture) {
            return Ok(facts.clone());
        }
        self.reads(|seen| &mut seen.records_read)?;
        let facts = self.rows.document_facts(&[capture])?.pop().flatten().map(Rc::new);
        if last.len() >= Payloads::LAST {
            last.remove(0);
        }
        last.push((capture, facts.clone()));
        Ok(facts)
    }

    /// When a page first or last had a phrase.
    pub(crate) fn page_said(&self, page: UrlId, phrase: &str, is_last: bool) -> Found<Value> {
        let asked = (page, phrase.to_owned());
        let times = match self.payloads.said.get(&asked) {
            Some(times) => times,
            None => {
                self.reads(|seen| &mut seen.records_read)?;
                self.rows.said(&[asked], None)?.pop().flatten()
            }
        };
        Ok(times.map_or(Value::Empty, |(first, last)| Value::Time(if is_last { last } else { first })))
    }
}

fn value(facts: &DocumentFacts, column: Column) -> Value {
    let text = |text: &str| Value::from(text);
    let time = |seconds: Option<i64>| {
        seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0)).map_or(Value::Empty, Value::Time)
    };
    match column {
        Column::VersionTitle => text(&facts.title),
        Column::Text if facts.title.is_empty() => text(&facts.text),
        Column::Text => format!("{}\n{}", facts.title, facts.text).into(),
        Column::TextLength => (facts.text.chars().count() as u64).into(),
        Column::DeclaredLanguage => text(&facts.declared_language),
        Column::DetectedLanguage => text(&facts.detected_language),
        Column::DeclaredCharset => text(&facts.declared_charset),
        Column::DetectedCharset => text(&facts.detected_charset),
        Column::Description => text(&facts.description),
        Column::Keywords => text(&facts.keywords),
        Column::Author => text(&facts.author),
        Column::Licence => text(&facts.licence),
        Column::Headline => text(&facts.headline),
        Column::Published => time(facts.published),
        Column::Revised => time(facts.revised),
        Column::Alt => text(&facts.alt),
        Column::Pictures => facts.pictures.into(),
        Column::PicturesWithoutAlt => facts.pictures_without_alt.into(),
        Column::Width => facts.size.map_or(Value::Empty, |(width, _)| (width as u64).into()),
        Column::Height => facts.size.map_or(Value::Empty, |(_, height)| (height as u64).into()),
        Column::Format => text(&facts.format),
        Column::Pronom => text(facts.pronom),
        _ => Value::Empty,
    }
}
