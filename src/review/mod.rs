//! What librarians review: sites by importance, exported for rating, and the ratings read back.
//!
//! A [`Sheet`] is what a person judges: for each site what the archive knows of it, a few of its pages, and room for a
//! rating of 1 to 4 and a comment. It is written as CSV for spreadsheets ([`Sheet::write_csv`]) or as one HTML file that
//! needs nothing else ([`Sheet::html`]). Both give back a CSV file that [`read_ratings`] understands, whatever a
//! spreadsheet program did to it: another separator, another encoding, other columns beside, a workbook instead.
//!
//! [`next()`] says which sites to look at first, and why. [`learned`] is the automatic librarian: from what people chose it
//! learns what they would choose.

mod content;
mod csv;
mod html;
pub mod learned;
mod librarian;
pub mod next;
mod ratings;
pub mod score;
mod sheet;
mod workbook;

#[cfg(test)]
mod tests;

pub use librarian::{Librarian, LibrarianError, favoured_sites};
pub use next::next;
pub use ratings::{Mistake, Mistakes, RATINGS_BYTES_MAX, Rating, Score, read_ratings};
pub use sheet::{SAMPLES_MAX, Sample, Sheet, SiteEntry, samples_of};
pub use workbook::{CELLS_MAX, UNPACKED_BYTES_MAX};
