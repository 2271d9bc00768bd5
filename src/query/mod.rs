//! From a query's syntax tree to rows: the one selection language of every subcommand.
