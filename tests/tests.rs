//! The one integration test binary; each topic is a module.

mod conformance;
mod testweb;
