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
//! as the URL it was made from, so nothing is lower-cased or re-ordered that a server may distinguish. A SURT is a key for
//! looking up, not an address: it throws away more, and can't be turned back into a URL.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

mod canonical;
mod host;
mod parameters;
mod surt;

pub use canonical::{Parts, RULES, Rule, canonical, canonical_query_is_clean};
pub use host::{HOST_BYTES_MAX, host_key, is_url_in_bounds, registry_suffix, site_of};
pub use parameters::{Name, PARAMETERS, ParameterRule, TOKEN_BYTES_MIN, Value, Why};
pub use surt::surt;

/// The 64-bit hash of a canonical URL by which the seen-set finds it: the standard library's SipHash-1-3, with a key that
/// every process draws again.
///
/// The URL table takes 62 of its bits for the URL while crawling. As the key is secret, no attacker can make a
/// URL that is taken for another one (fast hashes as XXH3 can be collided at will, whatever their seed). Hashes mean nothing to
/// another process, so they must not be stored.
#[must_use]
pub fn url_hash(url: &str) -> u64 {
    name_hash(url.as_bytes())
}

/// [`url_hash`] of the bytes of a name.
pub(crate) fn name_hash(name: &[u8]) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut hasher = KEY.build_hasher();
    hasher.write(name);
    hasher.finish()
}

#[cfg(test)]
mod tests;
