//! The index's fields. Nothing is stored in it but the page's number: texts stay in the archive.

use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::TokenizerManager;
use tantivy::{Index, IndexSettings};

use super::words;

/// The name under which the index knows our tokenizer. It changes when the words of a text would change, so that an
/// index of the older kind is refused rather than searched wrongly.
const TOKENIZER: &str = "words-1";

/// Where a document's parts go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    /// The page's number: one document each.
    pub(crate) page: Field,
    pub(crate) title: Field,
    pub(crate) body: Field,
    pub(crate) url: Field,
}

impl Fields {
    /// The schema, and the fields in it. Positions are kept, since phrases need them.
    pub(crate) fn schema() -> (Schema, Self) {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(TOKENIZER)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let text = TextOptions::default().set_indexing_options(indexing);
        let mut schema = Schema::builder();
        let fields = Self {
            page: schema.add_u64_field("page", NumericOptions::default() | FAST | INDEXED),
            title: schema.add_text_field("title", text.clone()),
            body: schema.add_text_field("body", text.clone()),
            url: schema.add_text_field("url", text),
        };
        (schema.build(), fields)
    }
}

/// Our tokenizer under its name.
pub(crate) fn tokenizers() -> TokenizerManager {
    let tokenizers = TokenizerManager::new();
    tokenizers.register(TOKENIZER, words::analyzer());
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
    index.schema() == Fields::schema().0
}
