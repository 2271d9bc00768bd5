//! What stays known of a page whose server reports it missing: how much it mattered, and whether pages still link to it.
//!
//! A page without an account has no credit history, so this is kept in its place. An end is a hypothesis: the more a
//! page mattered, and as long as it is linked to, the sooner it is asked again (`refresh::retry`).

use archive_storage::{Page, State, StateError, UrlId, Visit};

use super::outcome::FetchOutcome;
use super::page_flags as flags;

/// Minimum number of seconds between two notes that a page is linked to: a thousand pages may link to it.
const NOTE_EVERY: u32 = 3600;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vanished {
    /// Its importance when it vanished, or that of the page that it stood for.
    pub importance: f64,
    /// When a captured page last linked to it, seconds since 1970; 0 if none did since it vanished.
    pub linked: u32,
}

impl Vanished {
    /// Returns what is known of a page; `None` if it has not vanished.
    #[must_use]
    pub fn of(page: &Page, visit: &Visit) -> Option<Self> {
        let [a, b, c, d, e, f, g, h, ..] = visit.credit;
        let importance = f64::from(f32::from_le_bytes([a, b, c, d]));
        let is_known = importance.is_finite() && importance >= 0.0;
        let known = Self {
            importance: if is_known { importance } else { 0.0 },
            linked: u32::from_le_bytes([e, f, g, h]),
        };
        page.flags.has_any(flags::VANISHED).then_some(known)
    }

    /// Writes it in the place of the credit history.
    pub(super) fn keep(self, visit: &mut Visit) {
        visit.credit = [0; 16];
        let bytes = (self.importance as f32).to_le_bytes().into_iter().chain(self.linked.to_le_bytes());
        visit.credit.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    }

    /// Notes that a page with content links to this one.
    pub(super) fn note_link(state: &mut State, id: UrlId, from: &FetchOutcome) -> Result<(), StateError> {
        let (page, seconds) = (state.page(id)?, u32::try_from(from.time.timestamp()).unwrap_or(0));
        let Some(mut visit) = state.visit(id)? else { return Ok(()) };
        match Self::of(&page, &visit) {
            Some(known) if known.linked.saturating_add(NOTE_EVERY) <= seconds => {
                Self { linked: seconds, ..known }.keep(&mut visit);
                state.set_visit(id, &visit)
            }
            _ => Ok(()),
        }
    }
}
