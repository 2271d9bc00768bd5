//! The query language: grammar and syntax tree, no I/O.
