//! Reviews by librarians: sites by importance are exported for rating, and the ratings are read back.
//!
//! A [`Sheet`] has everything a person needs to judge: for each site, what the archive knows of it, a few of its pages,
//! and room for a rating of 1 to 4 and a comment. It is written as CSV for spreadsheets ([`Sheet::write_csv`]) or as
//! one self-contained HTML file ([`Sheet::html`]). Both yield a CSV file that [`read_ratings`] understands, even after
//! a spreadsheet program has changed the separator, the encoding or the columns, or saved it as a workbook.
//!
//! [`next()`] determines which sites to look at first, and why. [`learned`] is the automatic librarian: it learns from
//! people's choices what they would choose.

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

pub use csv::guarded;
pub use librarian::{Librarian, favoured_sites};
pub use next::next;
pub use ratings::{Mistakes, RATINGS_BYTES_MAX, Rating, RatingMistake, Score, read_ratings};
pub use sheet::{SAMPLES_MAX, SamplePage, Sheet, SiteEntry, samples_of};
pub use workbook::UNPACKED_BYTES_MAX;
