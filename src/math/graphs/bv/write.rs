//! Writes graphs (section 4 of the paper): each list in its shortest form, copied from one of those before it or not.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use super::bits::BitWriter;
use super::codes::Code;
use super::properties::{Codes, USUAL_CODES};

/// A list may be copied from one of this many before it.
const WINDOW: usize = 7;

/// Maximum length of a chain of copied lists.
const REFERENCES_MAX: u32 = 3;

/// Minimum length of a run of targets that is written as an interval.
const INTERVAL_MIN: usize = 4;

const CODES: Codes = USUAL_CODES;

/// Writes a graph as `NAME.graph`, `NAME.offsets` and `NAME.properties`: the lists of all pages, with ascending
/// targets, in the format's default codes and parameters.
///
/// # Errors
/// When the files cannot be written.
pub fn write(basename: &Path, lists: impl Iterator<Item = Vec<u32>>) -> io::Result<()> {
    let create =
        |ending| File::create(basename.with_extension(ending)).map(BufWriter::new).map(BitWriter::new);
    let (mut graph, mut offsets) = (create("graph")?, create("offsets")?);
    let mut window = ReferenceWindow::default();
    Code::Gamma.write(0, &mut offsets)?;
    for list in lists {
        let draft = window.push(list);
        for (code, value) in &draft.numbers {
            code.write(*value, &mut graph)?;
        }
        Code::Gamma.write(draft.bits, &mut offsets)?;
    }
    graph.finish()?;
    offsets.finish()?;
    fs::write(basename.with_extension("properties"), window.properties())
}

/// A list as coded numbers.
#[derive(Default)]
struct ListDraft {
    numbers: Vec<(Code, u64)>,
    bits: u64,
}

impl ListDraft {
    fn put(&mut self, code: Code, value: u64) {
        self.bits += code.length(value);
        self.numbers.push((code, value));
    }

    /// Writes a first target as its distance from the page.
    fn put_first(&mut self, code: Code, target: u32, page: u64) {
        let target = u64::from(target);
        self.put(code, if target >= page { 2 * (target - page) } else { 2 * (page - target) - 1 });
    }

    /// Writes `list` of `page`, copying from the list that many before it, if given.
    fn fill(&mut self, page: u64, list: &[u32], from: Option<(usize, &[u32])>) {
        self.numbers.clear();
        self.bits = 0;
        self.put(CODES.degrees, list.len() as u64);
        if list.is_empty() {
            return;
        }
        let Some((back, from)) = from else {
            self.put(CODES.references, 0);
            return self.own(page, list);
        };
        self.put(CODES.references, back as u64);
        let (blocks, own) = difference(list, from);
        self.put(CODES.block_counts, blocks.len() as u64);
        for (place, block) in blocks.into_iter().enumerate() {
            self.put(CODES.blocks, block - u64::from(place > 0));
        }
        self.own(page, &own);
    }

    /// Writes targets that are not copied: long runs, then all others.
    fn own(&mut self, page: u64, targets: &[u32]) {
        if targets.is_empty() {
            return;
        }
        let (runs, others): (Vec<&[u32]>, Vec<&[u32]>) =
            targets.chunk_by(|a, b| a + 1 == *b).partition(|run| run.len() >= INTERVAL_MIN);
        self.put(CODES.intervals, runs.len() as u64);
        let mut before = None;
        for run in runs {
            self.put_target(CODES.intervals, run[0], before, page);
            self.put(CODES.intervals, (run.len() - INTERVAL_MIN) as u64);
            before = Some(run[0] + run.len() as u32);
        }
        let mut before = None;
        for &target in others.into_iter().flatten() {
            self.put_target(CODES.residuals, target, before, page);
            before = Some(target);
        }
    }

    fn put_target(&mut self, code: Code, target: u32, before: Option<u32>, page: u64) {
        match before {
            Some(before) => self.put(code, u64::from(target - before - 1)),
            None => self.put_first(code, target, page),
        }
    }
}

/// Splits `from` into blocks, of which every other one is in `list`; the last block is implicit. Returns the lengths of
/// the blocks, and the targets that are only in `list`.
fn difference(list: &[u32], from: &[u32]) -> (Vec<u64>, Vec<u32>) {
    let (mut blocks, mut own) = (Vec::new(), Vec::new());
    let (mut length, mut copies) = (0, true);
    let mut list = list.iter().copied().peekable();
    for &target in from {
        while let Some(less) = list.next_if(|next| *next < target) {
            own.push(less);
        }
        if list.peek().is_none() && !copies {
            // The implicit last block is one that is not copied.
            return (blocks, own);
        }
        if list.next_if_eq(&target).is_some() != copies {
            blocks.push(length);
            (length, copies) = (0, !copies);
        }
        length += 1;
    }
    own.extend(list);
    (blocks, own)
}

/// The last lists, each with the length of its chain of copies, and totals of what was written.
#[derive(Default)]
struct ReferenceWindow {
    lists: Vec<(Vec<u32>, u32)>,
    drafts: [ListDraft; 2],
    pages: u64,
    arcs: u64,
    bits: u64,
}

impl ReferenceWindow {
    /// Encodes the next list in its shortest form.
    fn push(&mut self, list: Vec<u32>) -> &ListDraft {
        let [best, other] = &mut self.drafts;
        let mut depth = 0;
        best.fill(self.pages, &list, None);
        for (place, (from, needs)) in self.lists.iter().rev().enumerate() {
            if *needs >= REFERENCES_MAX || from.is_empty() || list.is_empty() {
                continue;
            }
            other.fill(self.pages, &list, Some((place + 1, from)));
            if other.bits < best.bits {
                std::mem::swap(best, other);
                depth = needs + 1;
            }
        }
        self.pages += 1;
        self.arcs += list.len() as u64;
        self.bits += best.bits;
        if self.lists.len() == WINDOW {
            self.lists.remove(0);
        }
        self.lists.push((list, depth));
        &self.drafts[0]
    }

    fn properties(&self) -> String {
        let Self { pages, arcs, bits, .. } = self;
        let per_link = *bits as f64 / (*arcs).max(1) as f64;
        format!(
            "#BVGraph properties\ngraphclass=it.unimi.dsi.webgraph.BVGraph\nversion=0\nendianness=big\n\
             nodes={pages}\narcs={arcs}\nwindowsize={WINDOW}\nmaxrefcount={REFERENCES_MAX}\n\
             minintervallength={INTERVAL_MIN}\nzetak=3\ncompressionflags=\nlength={bits}\nbitsperlink={per_link:.3}\n"
        )
    }
}
