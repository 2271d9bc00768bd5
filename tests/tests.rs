//! The one integration test binary; each topic is a module.

mod testweb;
mod conformance;
