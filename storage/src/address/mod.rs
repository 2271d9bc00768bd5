//! Addresses: what makes two URLs the same page, the same host, the same site.
//!
//! Four keys, each for one purpose:
//!
//! | key | function | used for |
//! |---|---|---|
//! | canonical URL | [`canonical`] | the seen-set, the URL table, what is fetched |
//! | URL hash | [`url_hash`] | the hash index in front of the URL table |
//! | host key, site | [`host_key`], [`site_of`] | politeness, budgets, site importance |
//! | SURT | [`surt`] | CDXJ lines and look-ups by prefix, as other archives' tools sort them |
//!
//! Invariants: a canonical URL parses, and is canonical again (`canonical(parse(c)) == c`); it fetches the same page
//! as the URL it was made from, so nothing is lower-cased or re-ordered that a server may tell apart. A SURT is a key for
//! looking up, not an address: it throws away more, and can't be turned back into a URL.

mod canonical;
mod host;
mod parameters;
mod surt;

pub use canonical::{Parts, RULES, Rule, canonical, canonical_query_is_clean};
pub use host::{host_key, registry_suffix, site_of};
pub use parameters::{Name, PARAMETERS, ParameterRule, TOKEN_BYTES_MIN, Value, Why};
pub use surt::surt;

/// The stable 64-bit hash of a canonical URL by which the seen-set finds it: XXH3-64 with seed 0 over its bytes.
///
/// The algorithm is frozen (<https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md>), so hashes may stand in
/// files. The URL table takes 62 of its bits for the URL while crawling, and compares the URLs themselves when one is
/// asked for by name.
#[must_use]
pub fn url_hash(url: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(url.as_bytes())
}

#[cfg(test)]
mod tests;
