//! Facts about the page of a capture, the same for all its captures.

use archive_ask::query::{ArchiveRows, PageText, Rows};
use archive_base::access::Access;
use archive_storage::{Store, UrlId};
use serde::{Deserialize, Serialize};

use crate::export::ExportError;

/// Current facts about a page.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Known {
    /// Importance, with a mean of 1 over all known pages; absent for captures that belong to no page.
    #[serde(with = "bits")]
    pub(super) importance: Option<f64>,
    /// Importance of the site, with a mean of 1 over all known sites.
    #[serde(with = "bits")]
    pub(super) site_importance: Option<f64>,
    /// Mean of people's ratings, 1 to 4, of the page or of what it belongs to.
    #[serde(with = "bits")]
    pub(super) rating: Option<f64>,
}

/// Sends numbers as their bits, because decimal digits may not survive a round trip.
mod bits {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "serde hands over references")]
    pub(super) fn serialize<S: Serializer>(number: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        number.map(f64::to_bits).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(f64::from_bits))
    }
}

/// The pages of an archive.
pub(super) struct Pages<'a> {
    rows: ArchiveRows<'a>,
    /// Importance by site number.
    sites: Vec<f64>,
}

impl<'a> Pages<'a> {
    pub(super) fn open(store: &'a Store) -> Result<Self, ExportError> {
        let rows = ArchiveRows::new(store, Access::unlimited())?;
        let mut sites = vec![0.0; store.state().site_count() as usize];
        for site in rows.sites() {
            let site = site?;
            if let Some(importance) = sites.get_mut(site.id.index()) {
                *importance = site.importance;
            }
        }
        Ok(Self { rows, sites })
    }

    pub(super) fn of(&self, page: UrlId) -> Result<Known, ExportError> {
        let Some(row) = self.rows.page(page)? else { return Ok(Known::default()) };
        let rating = match self.rows.decisions().filter(|decisions| !decisions.is_empty()) {
            Some(decisions) => {
                let text =
                    |text| Ok::<_, ExportError>(self.rows.text(&row, text)?.unwrap_or_default().into_owned());
                let (url, host, site) = (text(PageText::Url)?, text(PageText::Host)?, text(PageText::Site)?);
                decisions.of_page(&url, &host, &site).rating()
            }
            None => None,
        };
        let site_importance = self.sites.get(row.site.index()).copied();
        Ok(Known { importance: Some(row.importance), site_importance, rating })
    }
}
