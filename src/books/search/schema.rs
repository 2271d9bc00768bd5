//! The fields of the index. It stores only numbers of pages; texts stay in the archive.

use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::TokenizerManager;
use tantivy::{Index, IndexSettings};

use super::elements::Terms;
use super::labels::Labels;
use super::{TextField, structures, words};

/// Name of our tokenizer in the index. It changes whenever the words of a text would change, so that an older index is
/// refused rather than searched wrongly.
const TOKENIZER: &str = "words-2";
/// The same for labels.
const LABEL_TOKENIZER: &str = "labels-2";
/// The same for elements, whose terms are made before indexing.
const ELEMENT_TOKENIZER: &str = "elements-4";
/// The same for terms of elements that have a position.
const PLACE_TOKENIZER: &str = "places-2";

/// Column for the number of an older version: see `versions`.
pub(crate) const VERSION: &str = "version";

/// The fields of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexSchema {
    /// Number of the page. There is one document per page, except in the index of older versions.
    pub(crate) page: Field,
    pub(crate) title: Field,
    pub(crate) body: Field,
    pub(crate) url: Field,
    /// What the page says of itself beside its text.
    pub(crate) description: Field,
    pub(crate) keywords: Field,
    pub(crate) author: Field,
    /// Names of the page and its parts: title and headings, one label per line.
    pub(crate) labels: Field,
    /// Elements of an XML document: see `elements`.
    pub(crate) elements: Field,
    /// Terms of single elements, with positions.
    pub(crate) places: Field,
    /// Document-level properties of an XML document: see `structures`.
    pub(crate) structure: Field,
    /// Texts of its links, one label per line.
    pub(crate) links: Field,
    /// Pages that these links lead to, in the order of the lines of `links`.
    pub(crate) targets: Field,
}

impl IndexSchema {
    /// Returns the schema of an index of newest or of older versions, and its fields. Positions are kept because
    /// phrases need them.
    pub(crate) fn schema(of_versions: bool) -> (Schema, Self) {
        let indexing = |tokenizer| {
            let positions = IndexRecordOption::WithFreqsAndPositions;
            TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(positions)
        };
        let text = TextOptions::default().set_indexing_options(indexing(TOKENIZER));
        // They are short and few pages have them, so their lengths say little.
        let said = TextOptions::default().set_indexing_options(indexing(TOKENIZER).set_fieldnorms(false));
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
            description: schema.add_text_field("description", said.clone()),
            keywords: schema.add_text_field("keywords", said.clone()),
            author: schema.add_text_field("author", said),
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

    /// The field of the index that has a text of a page.
    pub(crate) fn of(&self, field: TextField) -> Field {
        match field {
            TextField::Title => self.title,
            TextField::Description => self.description,
            TextField::Keywords => self.keywords,
            TextField::Author => self.author,
        }
    }
}

/// Returns our tokenizers by name.
pub(crate) fn tokenizers() -> TokenizerManager {
    let tokenizers = TokenizerManager::new();
    tokenizers.register(TOKENIZER, words::analyzer());
    tokenizers.register(LABEL_TOKENIZER, Labels::default());
    tokenizers.register(ELEMENT_TOKENIZER, Terms { have_position: false });
    tokenizers.register(PLACE_TOKENIZER, Terms { have_position: true });
    // The engine also looks this one up for fields without text, and never uses it.
    tokenizers.register("default", words::analyzer());
    tokenizers
}

/// Returns the settings: no field is stored, so there is nothing to compress.
pub(crate) fn settings() -> IndexSettings {
    IndexSettings {
        docstore_compression: tantivy::store::Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}

/// Whether an index on disk is one of ours.
pub(crate) fn is_ours(index: &Index) -> bool {
    [false, true].into_iter().any(|of_versions| index.schema() == IndexSchema::schema(of_versions).0)
}
