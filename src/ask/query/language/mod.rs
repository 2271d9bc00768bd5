//! The language: fields, values, expressions and conditions, and the way from a query's text to a plan.

pub(crate) mod aggregate;
pub(crate) mod checks;
pub(crate) mod element_checks;
pub(crate) mod element_path;
pub(crate) mod error;
pub(crate) mod expr;
pub(crate) mod fields;
pub(crate) mod filter;
pub(crate) mod glob;
pub(crate) mod help;
pub(crate) mod names;
pub(crate) mod plan;
pub(crate) mod planner;
pub(crate) mod searches;
mod table;
pub(crate) mod text_checks;
pub(crate) mod times;
pub(crate) mod types;
pub(crate) mod value;

pub(crate) use aggregate::{Aggregate, Gather};
pub(crate) use element_path::{Content, ElementPath, ElementStep};
pub(crate) use error::{Error, Found, Late, RowsError};
pub(crate) use expr::{Function, Given, PlannedExpr, Subject};
pub(crate) use fields::{
    CAPTURE_KINDS, CHANGES, Column, ColumnKind, ERASED, FAILED, FieldPath, LINK_KINDS, NOT_MODIFIED,
    RESOURCE, ROBOTS_IGNORED, Via, plural, yes_no,
};
pub(crate) use filter::{Filter, Ranges, TextTest, TextTestKind};
pub(crate) use plan::{Context, GroupPlan, Heading, Plan, Scores, Search};
pub(crate) use times::{Instant, PERIODS_MAX, Period, Zone};
pub(crate) use value::{Value, by_texts};
