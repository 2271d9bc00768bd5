//! The parser that pest generates from `query.pest`.

/// pest's parser; its rules are the enum `Rule` beside it.
#[derive(pest_derive::Parser)]
#[grammar = "../query.pest"]
pub(crate) struct Syntax;
