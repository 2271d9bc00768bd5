//! The index's fields. Nothing is stored in it but numbers of pages: texts stay in the archive.

use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::TokenizerManager;
use tantivy::{Index, IndexSettings};

use super::elements::Terms;
use super::labels::Labels;
use super::{structures, words};

/// The name under which the index knows our tokenizer. It changes when the words of a text would change, so that an
/// index of the older kind is refused rather than searched wrongly.
const TOKENIZER: &str = "words-1";
/// The same for labels.
const LABEL_TOKENIZER: &str = "labels-1";
/// The same for elements, whose words are made before.
const ELEMENT_TOKENIZER: &str = "elements-3";
/// The same for those of them that have a position.
const PLACE_TOKENIZER: &str = "places-1";

/// The column of an older version's number: see `versions`.
pub(crate) const VERSION: &str = "version";

/// Where a document's parts go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    /// The page's number: one document each, but for older versions.
    pub(crate) page: Field,
    pub(crate) title: Field,
    pub(crate) body: Field,
    pub(crate) url: Field,
    /// What names the page and its parts: its title and headings, a label each.
    pub(crate) labels: Field,
    /// Elements of an XML document: see `elements`.
    pub(crate) elements: Field,
    /// What is known of single ones of them.
    pub(crate) places: Field,
    /// What an XML document is as a whole: see `structures`.
    pub(crate) structure: Field,
    /// What its links say, a label each.
    pub(crate) links: Field,
    /// The pages that these links lead to, by the lines of `links`.
    pub(crate) targets: Field,
}

impl Fields {
    /// The schema of an index of newest or of older versions, and the fields in it. Positions are kept, since phrases need them.
    pub(crate) fn schema(of_versions: bool) -> (Schema, Self) {
        let indexing = |tokenizer| {
            let positions = IndexRecordOption::WithFreqsAndPositions;
            TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(positions)
        };
        let text = TextOptions::default().set_indexing_options(indexing(TOKENIZER));
        let places = indexing(PLACE_TOKENIZER).set_fieldnorms(false);
        let places = TextOptions::default().set_indexing_options(places);
        let labels = indexing(LABEL_TOKENIZER).set_fieldnorms(false);
        let labels = TextOptions::default().set_indexing_options(labels);
        let elements = TextFieldIndexing::default().set_tokenizer(ELEMENT_TOKENIZER).set_fieldnorms(false);
        let elements = TextOptions::default().set_indexing_options(elements);
        let mut schema = Schema::builder();
        let fields = Self {
            page: schema.add_u64_field("page", NumericOptions::default() | FAST | INDEXED),
            title: schema.add_text_field("title", text.clone()),
            body: schema.add_text_field("body", text.clone()),
            url: schema.add_text_field("url", text),
            labels: schema.add_text_field("labels", labels.clone()),
            elements: schema.add_text_field("elements", elements),
            places: schema.add_text_field("places", places),
            structure: schema.add_text_field(structures::COLUMN, TextOptions::default() | FAST),
            links: schema.add_text_field("links", labels),
            targets: schema.add_u64_field("targets", NumericOptions::default() | FAST),
        };
        if of_versions {
            schema.add_u64_field(VERSION, NumericOptions::default() | FAST);
        }
        (schema.build(), fields)
    }
}

/// Our tokenizer under its name.
pub(crate) fn tokenizers() -> TokenizerManager {
    let tokenizers = TokenizerManager::new();
    tokenizers.register(TOKENIZER, words::analyzer());
    tokenizers.register(LABEL_TOKENIZER, Labels::default());
    tokenizers.register(ELEMENT_TOKENIZER, Terms { have_position: false });
    tokenizers.register(PLACE_TOKENIZER, Terms { have_position: true });
    // The engine looks this one up for fields without text, too, and never uses it.
    tokenizers.register("default", words::analyzer());
    tokenizers
}

/// No field is stored, so there is nothing to compress.
pub(crate) fn settings() -> IndexSettings {
    IndexSettings {
        docstore_compression: tantivy::store::Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}

/// Whether an index on disk is one of ours.
pub(crate) fn is_ours(index: &Index) -> bool {
    [false, true].into_iter().any(|of_versions| index.schema() == Fields::schema(of_versions).0)
}
