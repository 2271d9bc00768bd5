//! Columns of numbers that stand for texts.

use archive_books::ledger::{Refusal, capture_flags, language, page_flags};
use archive_books::prepared::{self, Column as Stored};
use archive_storage::MimeId;
use archive_web::parse::DocumentKind;

use crate::query::columns::context::FilterContext;
use crate::query::language::{CAPTURE_KINDS, CHANGES, Column, Found, yes_no};

/// Returns the column of a field, and the result of a function for the text that each number stands for; other numbers
/// have no text.
pub(crate) fn coded<T>(
    column: Column,
    known: FilterContext<'_, '_, '_>,
    mut of: impl FnMut(Option<&str>) -> T,
) -> Found<Option<(Stored, Vec<T>)>> {
    let state = known.archive.state;
    Ok(Some(match column {
        Column::Seed => (Stored::Seed, [false, true].map(|is| of(Some(yes_no(is)))).into()),
        Column::Refusal => {
            let name = |code| Refusal::from_code(code).map(Refusal::name);
            (Stored::Refusal, (0..=page_flags::REFUSAL_MAX).map(|code| of(name(code))).collect())
        }
        Column::Hop => {
            let name = |letter: u8| (letter > 0).then(|| char::from(letter).to_string());
            (Stored::Hop, (0..=u8::MAX).map(|letter| of(name(letter).as_deref())).collect())
        }
        Column::Host => {
            let hosts = state.hosts().map(|host| host.map(|(_, name, _)| of(Some(&name))));
            (Stored::Host, hosts.collect::<Result<_, _>>()?)
        }
        Column::Site => {
            let sites = state.sites().map(|site| site.map(|(_, name, _)| of(Some(&name))));
            (Stored::Site, sites.collect::<Result<_, _>>()?)
        }
        Column::Type => {
            let name =
                |value| prepared::kind(value).map(DocumentKind::from_code).map(DocumentKind::page_type);
            (Stored::Kind, (0..prepared::KINDS_END).map(|value| of(name(value))).collect())
        }
        Column::Kind => {
            let name = |value: u64| CAPTURE_KINDS.get((value as usize).checked_sub(1)?).copied();
            (Stored::Kind, (0..=CAPTURE_KINDS.len() as u64).map(|value| of(name(value))).collect())
        }
        Column::Change => (Stored::Change, (0..CHANGE_END).map(|flags| of(change(flags))).collect()),
        Column::Language => {
            let name = |number| language(state, number);
            (Stored::Language, (0..=u8::MAX).map(|number| of(name(number).as_deref())).collect())
        }
        Column::ContentType => {
            // The first number means no type.
            let types = (1..).map(|id| state.mime(MimeId(id))).take_while(|mime| !mime.is_empty());
            (Stored::Mime, std::iter::once(None).chain(types.map(Some)).map(of).collect())
        }
        _ => return Ok(None),
    }))
}

/// Values of [`Stored::Change`] are below this.
pub(crate) const CHANGE_END: u64 = 4;

/// The text for a value of [`Stored::Change`].
fn change(flags: u64) -> Option<&'static str> {
    let [content, bytes] = CHANGES;
    let has = |flag: u8| flags & u64::from(flag) != 0;
    match has(capture_flags::CONTENT_CHANGED) {
        true => Some(content),
        false => has(capture_flags::BYTES_CHANGED).then_some(bytes),
    }
}
