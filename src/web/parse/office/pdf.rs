//! Reads PDF files: the letters that a page shows, put together to words and lines by their places.
//!
//! Pages are interpreted as if they were drawn (crate `hayro-interpret`), which has no unsafe code. What is drawn in the order of
//! the file is read in that order, as most writers follow the text. The thresholds are those of `pdftotext`.

use archive_storage::quietly;
use encoding_rs::{UTF_8, UTF_16BE, WINDOWS_1252};
use hayro_interpret::font::{Glyph, GlyphRun, PositionedGlyph};
use hayro_interpret::hayro_cmap::{BfString, WritingMode};
use hayro_interpret::hayro_syntax::object::{Array, DateTime, Dict, String as PdfString};
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::{LoadPdfError, Pdf};
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask, interpret_page,
};

use super::document::{OfficeDocument, OfficeProblem};
use super::letters::{accented, as_written, logical_order};

/// Maximum number of pages that are read.
pub(super) const PAGES_MAX: usize = 10_000;

/// Maximum number of letters of a line among which copies are looked for.
const LINE_LETTERS_MAX: usize = 500;

/// Width of a gap between words, distance of the lines of a paragraph, and of the copy of a letter that is drawn twice to be bold,
/// as shares of the font's size.
const WORD_GAP: f64 = 0.1;
const SPACED_WORD_GAP: f64 = 0.3;
const LINE_GAP: f64 = 0.5;
const COPY_GAP: f64 = 0.2;

/// In a document in which one in so many letters is a blank, blanks are written and small gaps are none: text under scans is spaced out.
const LETTERS_OF_BLANK: usize = 15;

/// Units of a font's size in which widths of letters are given.
const UNITS: f64 = 1000.0;

/// Reads a PDF file.
pub(super) fn read(file: Vec<u8>) -> OfficeDocument {
    let pdf = match Pdf::new(file) {
        Ok(pdf) => pdf,
        Err(LoadPdfError::Decryption(_)) => return OfficeDocument::unread(OfficeProblem::Encrypted),
        Err(LoadPdfError::Invalid) => return OfficeDocument::unread(OfficeProblem::Damaged),
    };
    let mut document = OfficeDocument::default();
    read_metadata(&pdf, &mut document);
    let (mut seen, mut pages) = (Seen::default(), 0);
    // What fonts and pictures of one document are known by is not theirs in another.
    let cache = InterpreterCache::new();
    for page in pdf.pages().iter() {
        if pages == PAGES_MAX {
            document.problem = Some(OfficeProblem::TooManyPages);
        }
        if pages == PAGES_MAX || document.is_full() {
            break;
        }
        pages += 1;
        let read = quietly(|| {
            let mut reader = PageReader::new(&mut document, seen);
            let settings = InterpreterSettings::default();
            // The place of the page does not matter.
            let all = Rect::new(-1e6, -1e6, 1e6, 1e6);
            let mut context = Context::new(Affine::IDENTITY, all, &cache, pdf.xref(), settings);
            interpret_page(page, &mut context, &mut reader);
            reader.end_line();
            reader.seen
        });
        match read {
            Some(read) => seen = read,
            None => document.problem = Some(OfficeProblem::PartDamaged),
        }
        document.line();
        read_links(page, &mut document);
    }
    if document.problem.is_none() {
        document.problem = match () {
            () if pages == 0 => Some(OfficeProblem::Damaged),
            () if seen.signs > seen.letters => Some(OfficeProblem::NoLetters),
            () if seen.letters == 0 => Some(OfficeProblem::NoText),
            () => None,
        };
    }
    document
}

fn read_metadata(pdf: &Pdf, document: &mut OfficeDocument) {
    let said = pdf.metadata();
    let text = |bytes: &Option<Box<[u8]>>| bytes.as_deref().map(text_string).unwrap_or_default();
    (document.title, document.author) = (text(&said.title), text(&said.author));
    (document.description, document.keywords) = (text(&said.subject), text(&said.keywords));
    document.published = said.creation_date.as_ref().and_then(seconds);
    document.revised = said.modification_date.as_ref().and_then(seconds);
    let catalogue = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
    let language = catalogue.and_then(|catalogue| catalogue.get::<PdfString<'_>>("Lang"));
    document.language = language.map(|tag| text_string(tag.as_bytes())).unwrap_or_default();
}

/// Decodes a text string (PDF 2.0, section 7.9.2.2). PDFDocEncoding is nearly that of Windows.
fn text_string(bytes: &[u8]) -> String {
    let encoding = match bytes {
        [0xFE, 0xFF, ..] => UTF_16BE,
        [0xEF, 0xBB, 0xBF, ..] => UTF_8,
        _ => WINDOWS_1252,
    };
    encoding.decode_with_bom_removal(bytes).0.trim_matches(['\0', ' ', '\n', '\r']).to_owned()
}

fn seconds(date: &DateTime) -> Option<i64> {
    let DateTime { year, month, day, hour, minute, second, utc_offset_hour, utc_offset_minute } = *date;
    let day = chrono::NaiveDate::from_ymd_opt(year.into(), month.into(), day.into())?;
    let local = day.and_hms_opt(hour.into(), minute.into(), second.into())?.and_utc().timestamp();
    Some(local - i64::from(utc_offset_hour) * 3600 - i64::from(utc_offset_minute) * 60)
}

/// Reads the addresses of a page's links (section 12.6.4.8).
fn read_links(page: &Page<'_>, document: &mut OfficeDocument) {
    let Some(annotations) = page.raw().get::<Array<'_>>("Annots") else { return };
    for annotation in annotations.iter::<Dict<'_>>() {
        let action = annotation.get::<Dict<'_>>("A");
        let address = action.and_then(|action| action.get::<PdfString<'_>>("URI"));
        if let Some(address) = address {
            document.add_link(&text_string(address.as_bytes()));
        }
    }
}

/// Where a letter ended, in which direction its line runs, and its size.
#[derive(Clone, Copy)]
struct Placed {
    end: Point,
    along: Vec2,
    size: f64,
}

/// What was seen of a document so far.
#[derive(Clone, Copy, Default)]
struct Seen {
    letters: usize,
    blanks: usize,
    /// Number of signs of which no letter is known.
    signs: usize,
}

impl Seen {
    /// Width of the gap between words that have no blank between them.
    fn word_gap(self) -> f64 {
        if self.blanks * LETTERS_OF_BLANK > self.letters { SPACED_WORD_GAP } else { WORD_GAP }
    }
}

/// Puts the letters of a page together.
struct PageReader<'d> {
    document: &'d mut OfficeDocument,
    last: Option<Placed>,
    /// Where the current line begins in the text.
    line_start: usize,
    /// Letters of the current line and their places.
    line: Vec<(char, Point)>,
    seen: Seen,
}

impl<'d> PageReader<'d> {
    fn new(document: &'d mut OfficeDocument, seen: Seen) -> Self {
        let line_start = document.text.len();
        Self { document, last: None, line_start, line: Vec::new(), seen }
    }

    fn sign(&mut self, sign: &PositionedGlyph<'_>, transform: Affine, mode: WritingMode) {
        let text = match sign.as_unicode() {
            Some(BfString::Char(letter)) => letter.to_string(),
            Some(BfString::String(text)) => text,
            None => String::new(),
        };
        let start = transform * Point::ZERO;
        let (width, side) = match mode {
            WritingMode::Horizontal => (advance(sign), Point::new(UNITS, 0.0)),
            WritingMode::Vertical => (UNITS, Point::new(0.0, -UNITS)),
        };
        let em = transform * side - start;
        let size = (transform * Point::new(0.0, UNITS) - start).hypot();
        if !(start.is_finite() && em.hypot() > 0.0 && em.is_finite() && size.is_finite()) {
            return;
        }
        if text.trim_matches(char::is_control).is_empty() {
            self.seen.signs += usize::from(text.is_empty());
            return;
        }
        self.seen.letters += 1;
        self.put(&text, start, Placed { end: start + em * (width / UNITS), along: em.normalize(), size });
    }

    fn put(&mut self, text: &str, start: Point, placed: Placed) {
        let first = text.chars().next().unwrap_or_default();
        self.seen.blanks += usize::from(first.is_whitespace());
        if let Some(last) = self.last {
            let step = start - last.end;
            let size = last.size.max(placed.size);
            let (gap, shift) = (step.dot(last.along), step.cross(last.along).abs());
            if shift < size && (-size..-WORD_GAP * size).contains(&gap) && self.put_under_accent(text) {
                self.last = Some(placed);
                return;
            }
            let goes_back = gap < -LINE_GAP * size;
            if shift < LINE_GAP * size && goes_back && self.is_copy(first, start, size) {
                return;
            }
            if shift > LINE_GAP * size || goes_back || last.along.dot(placed.along) < 0.5 {
                self.end_line();
                self.join_or_break(first);
                if shift > LINE_GAP * size {
                    self.line.clear();
                }
            } else if gap > self.seen.word_gap() * size {
                self.document.space();
            }
        }
        if self.line.len() < LINE_LETTERS_MAX {
            self.line.push((first, start));
        }
        for letter in text.chars().flat_map(as_written) {
            match letter {
                _ if letter.is_whitespace() => self.document.space(),
                _ if letter.is_control() => {}
                _ => self.document.add(letter.encode_utf8(&mut [0; 4])),
            }
        }
        self.last = Some(placed);
    }

    /// Puts a letter under the accent before it, over which it is drawn.
    fn put_under_accent(&mut self, letter: &str) -> bool {
        let accent = self.document.text.chars().next_back().unwrap_or_default();
        let mut letters = letter.chars();
        let (Some(letter), None) = (letters.next(), letters.next()) else { return false };
        let Some(whole) = accented(accent, letter) else { return false };
        self.document.text.pop();
        self.document.add(whole.encode_utf8(&mut [0; 4]));
        true
    }

    /// Whether the same letter is already there: it is drawn twice to be bold or to have a shadow.
    fn is_copy(&self, letter: char, at: Point, size: f64) -> bool {
        self.line.iter().any(|(known, place)| *known == letter && (at - *place).hypot() < COPY_GAP * size)
    }

    /// Ends the line: text that runs to the left was drawn from its end.
    fn end_line(&mut self) {
        let start = self.line_start.min(self.document.text.len());
        if let Some(line) = logical_order(&self.document.text[start..]) {
            self.document.text.truncate(start);
            self.document.add(&line);
        }
        self.line_start = self.document.text.len();
    }

    /// Begins a line, unless a word goes on that was divided.
    fn join_or_break(&mut self, next: char) {
        let text = &mut self.document.text;
        let mut before = text.chars().rev();
        let is_divided = matches!(before.next(), Some('-' | '\u{AD}' | '\u{2010}'))
            && before.next().is_some_and(char::is_alphabetic)
            && next.is_lowercase();
        if is_divided {
            text.pop();
        } else {
            self.document.line();
        }
        self.line_start = self.document.text.len();
    }
}

/// Width of a sign in units of its font.
fn advance(sign: &PositionedGlyph<'_>) -> f64 {
    let width = match &**sign {
        Glyph::Outline(outline) => outline.advance_width(),
        Glyph::Type3(drawn) => drawn.advance_width(),
    };
    width.map_or(UNITS / 2.0, f64::from)
}

impl<'a> Device<'a> for PageReader<'_> {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        for sign in run.glyphs() {
            if self.document.is_full() {
                return;
            }
            self.sign(sign, props.transform * sign.transform(), run.writing_mode());
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}
