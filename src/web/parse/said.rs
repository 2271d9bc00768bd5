//! What a document says of itself by name: in `meta` elements, JSON-LD and elements of XML.

use serde_json::Value;

use super::dates::parse_date;
use super::facts::FACT_BYTES_MAX;
use super::html::{decode_entities, one_line};

/// Texts that a page says of itself beside those that it shows; each is on one line, and empty if it is not said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaidTexts {
    /// Description.
    pub description: String,
    /// Keywords.
    pub keywords: String,
    /// Authors.
    pub author: String,
    /// Headline, as it is shown where the document is shared or listed.
    pub headline: String,
}

/// A text with the rank of the name by which it was found: names with lower ranks are preferred.
#[derive(Default)]
pub(super) struct Named(Option<(usize, String)>);

impl Named {
    /// Takes a text if `name` is one of `names`, in lower case; several of one name are joined.
    pub(super) fn take(&mut self, names: &[&str], name: &str, text: &str) {
        let Some(rank) = names.iter().position(|known| *known == name) else { return };
        let text = one_line(text, FACT_BYTES_MAX);
        if text.is_empty() {
            return;
        }
        match &mut self.0 {
            Some((known, _)) if *known < rank => {}
            Some((known, all)) if *known == rank => {
                if all.len() + text.len() <= FACT_BYTES_MAX {
                    all.push_str(", ");
                    all.push_str(&text);
                }
            }
            found => *found = Some((rank, text)),
        }
    }

    pub(super) fn text(self) -> String {
        self.0.map(|(_, text)| text).unwrap_or_default()
    }
}

/// What a document says of itself.
#[derive(Default)]
pub(super) struct Said {
    pub(super) description: Named,
    pub(super) keywords: Named,
    pub(super) author: Named,
    pub(super) licence: Named,
    pub(super) headline: Named,
    pub(super) published: Named,
    pub(super) revised: Named,
    pub(super) language: Named,
}

/// Maximum bytes of a JSON-LD script that is read.
pub(super) const JSON_BYTES_MAX: usize = 1 << 20;

/// Maximum number of lists and objects of a JSON-LD script in one another that are read.
pub(super) const JSON_DEPTH_MAX: usize = 4;

/// Names in HTML, in lower case and with a point after a prefix, in JSON-LD, with `ld.` before them, and of elements of XML, the
/// preferred ones first.
const DESCRIPTIONS: [&str; 8] = [
    "description",
    "dc.description",
    "dcterms.description",
    "og.description",
    "subtitle",
    "abstract",
    "summary",
    "ld.description",
];
const KEYWORDS: [&str; 6] =
    ["keywords", "dc.subject", "dcterms.subject", "subject", "category", "ld.keywords"];
const AUTHORS: [&str; 7] =
    ["author", "dc.creator", "dcterms.creator", "ld.author", "article.author", "creator", "managingeditor"];
pub(super) const LICENCES: [&str; 10] = [
    "rel",
    "creativecommons",
    "license",
    "dcterms.license",
    "dc.rights",
    "dcterms.rights",
    "rights",
    "dc.rights.license",
    "copyright",
    "ld.license",
];
const HEADLINES: [&str; 6] =
    ["ld.headline", "headline", "og.title", "dc.title", "dcterms.title", "twitter.title"];
const PUBLISHED: [&str; 10] = [
    "ld.datepublished",
    "datepublished",
    "article.published_time",
    "dcterms.issued",
    "dc.date.issued",
    "dcterms.created",
    "dcterms.date",
    "dc.date",
    "date",
    "pubdate",
];
const REVISED: [&str; 7] = [
    "ld.datemodified",
    "datemodified",
    "article.modified_time",
    "og.updated_time",
    "dcterms.modified",
    "updated",
    "lastbuilddate",
];
/// Keys of JSON-LD objects that are about the document.
const ABOUT_DOCUMENT: [&str; 3] = ["headline", "datePublished", "dateModified"];

/// Media type of scripts that describe the document.
pub(super) const JSON_LD: &str = "application/ld+json";

pub(super) const LANGUAGES: [&str; 4] = ["lang", "xml:lang", "language", "content-language"];

/// Where Creative Commons has its licences, which say the same without `rel="license"`.
pub(super) const CREATIVE_COMMONS: [&str; 2] =
    ["creativecommons.org/licenses/", "creativecommons.org/publicdomain/"];

impl Said {
    /// Takes a text if its name is known.
    pub(super) fn take(&mut self, name: &str, text: &str) {
        let name = name.trim().to_ascii_lowercase().replace(':', ".");
        self.description.take(&DESCRIPTIONS, &name, text);
        self.keywords.take(&KEYWORDS, &name, text);
        self.author.take(&AUTHORS, &name, text);
        self.licence.take(&LICENCES, &name, text);
        self.headline.take(&HEADLINES, &name, text);
        // Only what is a date counts, and of several dates of one name the first.
        for (dates, names) in [(&mut self.published, &PUBLISHED[..]), (&mut self.revised, &REVISED)] {
            let rank = names.iter().position(|known| *known == name).filter(|_| parse_date(text).is_some());
            let is_better = |rank: &usize| dates.0.as_ref().is_none_or(|(known, _)| rank < known);
            if let Some(rank) = rank.filter(is_better) {
                dates.0 = Some((rank, text.to_owned()));
            }
        }
    }

    /// Takes what a JSON-LD script says of the document, unless it is too long or broken.
    pub(super) fn take_script(&mut self, json: &str) {
        // Most scripts are about publishers, parts and products alone.
        let may_say = |name: &&str| memchr::memmem::find(json.as_bytes(), name.as_bytes()).is_some();
        if json.len() <= JSON_BYTES_MAX
            && ABOUT_DOCUMENT.iter().any(may_say)
            && let Ok(json) = serde_json::from_str(json)
        {
            self.take_json(&json, 0);
        }
    }

    /// Returns the texts beside those that the document shows.
    pub(super) fn texts(self) -> SaidTexts {
        let Self { description, keywords, author, headline, .. } = self;
        SaidTexts {
            description: description.text(),
            keywords: keywords.text(),
            author: author.text(),
            headline: headline.text(),
        }
    }

    /// Takes what a JSON-LD script says of the document (schema.org): its objects with a headline or a date, at the top or in a
    /// `@graph`; other objects are about publishers, parts and products.
    fn take_json(&mut self, json: &Value, depth: usize) {
        let object = match json {
            Value::Array(all) if depth < JSON_DEPTH_MAX => {
                all.iter().for_each(|one| self.take_json(one, depth + 1));
                return;
            }
            Value::Object(object) => object,
            _ => return,
        };
        if let Some(graph) = object.get("@graph").filter(|_| depth < JSON_DEPTH_MAX) {
            self.take_json(graph, depth + 1);
        }
        if ABOUT_DOCUMENT.iter().any(|name| object.contains_key(*name)) {
            for name in
                ["headline", "description", "keywords", "author", "license", "datePublished", "dateModified"]
            {
                object.get(name).into_iter().for_each(|said| self.take_value(name, said, depth));
            }
        }
    }

    /// Takes a text, the name or address of an object, or a list of these.
    fn take_value(&mut self, name: &str, value: &Value, depth: usize) {
        match value {
            Value::String(text) => self.take(&format!("ld.{name}"), &decode_entities(text)),
            Value::Array(all) if depth < JSON_DEPTH_MAX => {
                all.iter().for_each(|one| self.take_value(name, one, depth + 1));
            }
            Value::Object(object) if depth < JSON_DEPTH_MAX => {
                let called = object.get("name").or_else(|| object.get("url")).or_else(|| object.get("@id"));
                called.into_iter().for_each(|called| self.take_value(name, called, depth + 1));
            }
            _ => {}
        }
    }
}
