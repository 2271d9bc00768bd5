//! Reads the first sheet of a workbook, Office Open XML (`.xlsx`) or OpenDocument (`.ods`), as rows of texts.
//!
//! Both formats are ZIP files of XML. The unpacked size is checked before anything is parsed, and cells are read one by
//! one: a sheet that claims a cell in its millionth row does not cost a million rows.

use std::io::{self, Cursor, Read};

use archive_web::parse::{ParseLimits, with_xml_tree};
use calamine::{DataRef, Reader as _, Xlsx};
use roxmltree::Node;
use zip::ZipArchive;

/// Maximum unpacked size of a workbook in bytes.
pub const UNPACKED_BYTES_MAX: u64 = 256 << 20;

/// Maximum number of files in a workbook.
const FILES_MAX: usize = 1000;

/// Maximum number of non-empty cells.
pub(crate) const CELLS_MAX: usize = 2_000_000;

/// Number of columns read; a review sheet has about twenty.
const COLUMNS_MAX: usize = 256;

/// A non-empty row with its number in the sheet, from 1.
pub(super) type SheetRow = (u64, Vec<String>);

const ODS_MIME: &[u8] = b"application/vnd.oasis.opendocument.spreadsheet";
const TABLE: &str = "urn:oasis:names:tc:opendocument:xmlns:table:1.0";
const OFFICE: &str = "urn:oasis:names:tc:opendocument:xmlns:office:1.0";
const TEXT: &str = "urn:oasis:names:tc:opendocument:xmlns:text:1.0";

/// The rows of a workbook's first sheet; `None` if `file` is not a workbook.
///
/// # Errors
/// Why it cannot be read, as a message.
pub(super) fn rows(file: &[u8]) -> Option<Result<Vec<SheetRow>, String>> {
    if !file.starts_with(b"PK\x03\x04") {
        return None;
    }
    Some(read(file).map_err(|why| format!("this workbook cannot be read: {why}")))
}

fn read(file: &[u8]) -> Result<Vec<SheetRow>, String> {
    let mut zip = ZipArchive::new(Cursor::new(file)).map_err(|error| error.to_string())?;
    if zip.len() > FILES_MAX {
        return Err(format!("it holds more than {FILES_MAX} files"));
    }
    let mut left = UNPACKED_BYTES_MAX;
    let mut content = None;
    for index in 0..zip.len() {
        let mut part = zip.by_index(index).map_err(|error| error.to_string())?;
        let is_content = part.name().is_ok_and(|name| name == "content.xml");
        let mut bytes = Vec::new();
        let mut limited = (&mut part).take(left + 1);
        let read = if is_content {
            limited.read_to_end(&mut bytes).map(|read| read as u64)
        } else {
            io::copy(&mut limited, &mut io::sink())
        };
        left = left
            .checked_sub(read.map_err(|error| error.to_string())?)
            .ok_or_else(|| format!("it unpacks to more than {} MiB", UNPACKED_BYTES_MAX >> 20))?;
        if is_content {
            content = Some(bytes);
        }
    }
    let mut mime = Vec::new();
    if let Ok(part) = zip.by_name("mimetype") {
        part.take(100).read_to_end(&mut mime).map_err(|error| error.to_string())?;
    }
    match content {
        Some(content) if mime.starts_with(ODS_MIME) => ods(&content),
        _ => xlsx(file),
    }
}

/// Collects cells, which arrive in row order, into rows.
#[derive(Default)]
struct SheetRows {
    rows: Vec<SheetRow>,
    cells: usize,
}

impl SheetRows {
    fn add(&mut self, row: u64, column: usize, text: String) -> Result<(), String> {
        if text.is_empty() || column >= COLUMNS_MAX {
            return Ok(());
        }
        self.cells += 1;
        if self.cells > CELLS_MAX {
            return Err(format!("it has more than {CELLS_MAX} cells"));
        }
        if self.rows.last().is_none_or(|(last, _)| *last != row) {
            self.rows.push((row, Vec::new()));
        }
        if let Some((_, cells)) = self.rows.last_mut() {
            cells.resize(cells.len().max(column + 1), String::new());
            cells[column] = text;
        }
        Ok(())
    }
}

fn xlsx(file: &[u8]) -> Result<Vec<SheetRow>, String> {
    let mut book: Xlsx<_> = Xlsx::new(Cursor::new(file)).map_err(|error| error.to_string())?;
    let sheet = book.sheet_names().first().cloned().ok_or("it has no sheet")?;
    let mut cells = book.worksheet_cells_reader(&sheet).map_err(|error| error.to_string())?;
    let mut rows = SheetRows::default();
    while let Some(cell) = cells.next_cell().map_err(|error| error.to_string())? {
        let (row, column) = cell.get_position();
        rows.add(u64::from(row) + 1, column as usize, text_of(cell.get_value()))?;
    }
    Ok(rows.rows)
}

/// Formats a cell as in a CSV file.
fn text_of(value: &DataRef<'_>) -> String {
    match value {
        DataRef::DateTime(time) => {
            let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
        }
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) | DataRef::String(text) => {
            text.trim().to_owned()
        }
        DataRef::SharedString(text) => text.trim().to_owned(),
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(number) => number.to_string(),
        DataRef::Bool(is_so) => is_so.to_string(),
        DataRef::Error(_) | DataRef::Empty => String::new(),
    }
}

fn ods(content: &[u8]) -> Result<Vec<SheetRow>, String> {
    let limits = ParseLimits { xml_nodes_max: 20_000_000, ..ParseLimits::default() };
    let read = with_xml_tree(content, Some("text/xml"), &limits, |tree| {
        let of = |node: Node<'_, '_>, name| node.is_element() && node.has_tag_name((TABLE, name));
        let table = tree.descendants().find(|node| of(*node, "table")).ok_or("it has no sheet")?;
        let (mut rows, mut number) = (SheetRows::default(), 1);
        for row in table.descendants().filter(|node| of(*node, "table-row")) {
            let mut column = 0;
            for cell in
                row.children().filter(|node| of(*node, "table-cell") || of(*node, "covered-table-cell"))
            {
                rows.add(number, column, ods_text(cell))?;
                column += repeated(cell, "number-columns-repeated");
            }
            number += repeated(row, "number-rows-repeated") as u64;
        }
        Ok(rows.rows)
    });
    read.unwrap_or_else(|| Err("its content is not well-formed".to_owned()))
}

fn repeated(node: Node<'_, '_>, name: &str) -> usize {
    node.attribute((TABLE, name))
        .and_then(|count| count.parse().ok())
        .map_or(1, |count: u32| count.max(1) as usize)
}

/// The text of a cell. Numbers and times use the stored value, because the displayed one may be rounded.
fn ods_text(cell: Node<'_, '_>) -> String {
    if let Some(value) = cell.attribute((OFFICE, "value")).or_else(|| cell.attribute((OFFICE, "date-value")))
    {
        return value.replace('T', " ").trim().to_owned();
    }
    let lines = cell.children().filter(|node| node.has_tag_name((TEXT, "p")));
    let lines = lines
        .map(|line| line.descendants().filter_map(|node| node.text().filter(|_| node.is_text())).collect());
    lines.collect::<Vec<String>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn zipped(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in parts {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn ods(rows: &str) -> Vec<u8> {
        let content = format!(
            "<d:document-content xmlns:d='{OFFICE}' xmlns:t='{TABLE}' xmlns:x='{TEXT}'><t:table>{rows}</t:table>\
             </d:document-content>"
        );
        zipped(&[("mimetype", ODS_MIME), ("content.xml", content.as_bytes())])
    }

    fn xlsx(sheet: &str) -> Vec<u8> {
        let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
        let links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        let workbook = format!(
            "<workbook xmlns='{main}' xmlns:r='{links}'><sheets><sheet name='a' sheetId='1' r:id='r1'/></sheets></workbook>"
        );
        let root = format!(
            "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'>\
             <Relationship Id='r1' Type='{links}/officeDocument' Target='xl/workbook.xml'/></Relationships>"
        );
        let related = format!(
            "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'>\
             <Relationship Id='r1' Type='{links}/worksheet' Target='worksheets/sheet1.xml'/></Relationships>"
        );
        let sheet = format!("<worksheet xmlns='{main}'><sheetData>{sheet}</sheetData></worksheet>");
        zipped(&[
            ("_rels/.rels", root.as_bytes()),
            ("xl/workbook.xml", workbook.as_bytes()),
            ("xl/_rels/workbook.xml.rels", related.as_bytes()),
            ("xl/worksheets/sheet1.xml", sheet.as_bytes()),
        ])
    }

    #[test]
    fn cells_far_away_cost_nothing() {
        let sheet = "<row r='1'><c r='A1' t='inlineStr'><is><t> site </t></is></c><c r='XFD1'><v>1</v></c></row>\
                     <row r='1048576'><c r='B1048576'><v>2.5</v></c></row>";
        let expected = vec![(1, vec!["site".to_owned()]), (1_048_576, vec![String::new(), "2.5".to_owned()])];
        assert_eq!(rows(&xlsx(sheet)), Some(Ok(expected)));
        let cell = |text: &str| format!("<t:table-cell><x:p>{text}</x:p></t:table-cell>");
        let far = "<t:table-cell t:number-columns-repeated='1000000000'/>";
        let table = format!(
            "<t:table-row t:number-rows-repeated='1000000000'>{}{far}{}</t:table-row><t:table-row>{far}{0}</t:table-row>\
             <t:table-row><t:table-cell d:value='3'><x:p>3,00</x:p></t:table-cell></t:table-row>",
            cell("a<x:s/>b"),
            cell("far")
        );
        let expected = vec![(1, vec!["ab".to_owned()]), (1_000_000_002, vec!["3".to_owned()])];
        assert_eq!(rows(&ods(&table)), Some(Ok(expected)));
    }

    #[test]
    fn a_file_that_is_not_a_workbook_is_refused() {
        let refusal = |file: &[u8]| rows(file).unwrap().unwrap_err();
        assert_eq!(rows(b"site,rating"), None);
        assert!(refusal(b"PK\x03\x04").contains("cannot be read"));
        assert!(refusal(&zipped(&[("a.txt", b"b")])).contains("cannot be read"));
        assert!(refusal(&zipped(&[("mimetype", ODS_MIME), ("content.xml", b"<a>")])).contains("no sheet"));
        let many: Vec<String> = (0..=FILES_MAX).map(|file| file.to_string()).collect();
        let parts: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &[][..])).collect();
        assert!(refusal(&zipped(&parts)).contains("1000 files"));
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let mebibyte = vec![0; 1 << 20];
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("content.xml", SimpleFileOptions::default()).unwrap();
        for _ in 0..=UNPACKED_BYTES_MAX >> 20 {
            zip.write_all(&mebibyte).unwrap();
        }
        let bomb = zip.finish().unwrap().into_inner();
        assert!(bomb.len() < 1 << 20);
        assert_eq!(
            rows(&bomb),
            Some(Err("this workbook cannot be read: it unpacks to more than 256 MiB".to_owned()))
        );
    }

    #[test]
    fn cells_are_counted() {
        let mut rows = SheetRows { cells: CELLS_MAX - 1, ..SheetRows::default() };
        rows.add(1, 0, "last".to_owned()).unwrap();
        rows.add(1, COLUMNS_MAX, "left out".to_owned()).unwrap();
        assert!(rows.add(1, 1, "too much".to_owned()).is_err());
    }
}
