//! The language of a page, and links that preserve a chosen language.

use std::ops::Deref;

use archive_base::texts::Language;
use chrono::{DateTime, SecondsFormat, Utc};
use maud::{Markup, html};
use url::form_urlencoded;

/// The parameter that chooses a language.
pub(super) const PARAMETER: &str = "lang";

/// The language of a page.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) struct Speech {
    language: Language,
    /// Whether the address chose it, so that links must preserve it.
    is_chosen: bool,
}

impl Deref for Speech {
    type Target = Language;

    fn deref(&self) -> &Language {
        &self.language
    }
}

impl Speech {
    /// The language chosen by the address, or else preferred by `Accept-Language`.
    pub(in crate::serve) fn of(path: &str, accept: Option<&str>) -> Self {
        let (_, query) = path.split_once('?').unwrap_or_default();
        let chosen = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == PARAMETER);
        let likes = Self { language: accept.map(Language::preferred).unwrap_or_default(), is_chosen: false };
        chosen.map_or(likes, |(_, tag)| likes.choosing(&tag))
    }

    /// Chooses a language; an unknown tag changes nothing.
    pub(in crate::serve) fn choosing(self, tag: &str) -> Self {
        Language::of_tag(tag).map_or(self, |language| Self { language, is_chosen: true })
    }

    /// Data is always in English.
    pub(super) fn of_data(self) -> Self {
        Self { language: Language::English, ..self }
    }

    /// An address of the application.
    pub(super) fn address(self, path: &str, parameters: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        if self.is_chosen {
            query.append_pair(PARAMETER, self.tag());
        }
        let query = query.finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }

    /// Address of the page about a URL.
    pub(super) fn page_of(self, url: &str) -> String {
        self.address("/page", &[("url", url)])
    }

    /// Address of the page about a site.
    pub(super) fn site_of(self, name: &str) -> String {
        self.address("/site", &[("name", name)])
    }

    /// Address of the answer to a query.
    pub(super) fn query_of(self, query: &str) -> String {
        self.address("/query", &[("q", query)])
    }

    /// Hidden form fields that preserve the language.
    pub(super) fn kept(self) -> Markup {
        html! { @if self.is_chosen { input type="hidden" name=(PARAMETER) value=(self.tag()); } }
    }

    /// Formats a time for readers, in the server's time zone.
    pub(super) fn moment(self, time: Option<DateTime<Utc>>) -> Markup {
        html! {
            @if let Some(time) = time {
                @let text = self.minute(time);
                // In a narrow column, date and time wrap onto separate lines.
                time datetime=(time.to_rfc3339_opts(SecondsFormat::Secs, true)) {
                    @for (place, part) in text.split(' ').enumerate() { @if place > 0 { " " } span { (part) } }
                }
            } @else { "–" }
        }
    }
}
