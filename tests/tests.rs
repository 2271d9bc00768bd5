//! The only integration test binary; each topic is a module. Topics are listed by the crate that they are most about:
//! `tests/run of CRATE` runs its own tests and these.
#![expect(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

mod support;

// base
mod placed;
mod signals;
mod strangers;
mod terminal;
mod texts;

// storage
mod power;

// web
mod compressed;
mod conformance;
mod hostile_documents;
mod hostile_names;
mod http2;
mod login_forms;
mod logins;
mod long_bodies;
mod office;
mod resumed;
mod secure;
mod sessions;
mod walls;
mod ways;

// books
mod answered;
mod change;
mod entities;
mod failures;
mod films;
mod importance;
mod prepared;
mod unchanged;
mod validating;
mod xpath;

// choose
mod choice;
mod freshness;
mod page_parts;
mod shared_budget;

// ask
mod curators;
mod decisions;
mod focus;
mod limits;
mod near;
mod patterns;
mod push;
mod questions;
mod reviewing;
mod searching;
mod sentences;
mod sheet_browser;
mod versions;
mod why;

// vault
mod arcs;
mod copies;
mod copies_s3;
mod damage;
mod erase;
mod exchange;
mod hostile_imports;
mod imports;
mod kill_import;
mod kill_repair;
mod listed;
mod readers;
mod rebuild;
mod repack;
mod repack_beside;
mod repack_year;
mod repair;
mod saved_pages;
mod signed;

// crawl
mod crawl;
mod cron;
mod hostile;
mod hubs;
mod kill;
mod later;
mod manners;
mod operation;
mod orders;
mod parameters;
mod pings;
mod politeness;
mod realsites;
mod robots;
mod robots_decided;
mod runs;
mod seeds;
mod soak;

// replay
mod memento;
mod replay;
mod replay_browser;
mod replay_ways;

// peers
mod cluster;
mod cluster_cost;
mod cluster_moves;
mod countries;
mod export;
mod machines;
mod nodes;
mod nodes_asked;
mod nodes_exported;
mod nodes_hostile;
mod nodes_packed;
mod nodes_reviewed;
mod ordered;
mod ordered_anywhere;
mod ranking;
mod sharing;
mod together;

// archive
mod access;
mod accounts;
mod bad_input;
mod budgets;
mod commands;
mod documented;
mod early;
mod examples;
mod front;
mod hidden;
mod jobs;
mod life;
mod outputs;
mod people;
mod readable;
mod review_browser;
mod serve;
mod serving;
mod typing;
mod unread;
