//! Addresses: what makes two URLs the same page, the same host, the same site.
//!
//! Five keys, each with its own purpose:
//!
//! | key | function | used for |
//! |---|---|---|
//! | canonical URL | [`canonical`] | the seen-set, the URL table, what is fetched |
//! | URL hash | [`url_hash`] | the hash index in front of the URL table |
//! | host key, site | [`host_key`], [`site_of`] | politeness, budgets, site importance |
//! | SURT | [`surt`] | CDXJ lines and lookups by prefix, sorted as other archives' tools do |
//! | lookup key | [`lookup_key`] | captures of a URL spelled otherwise, or with another number against caches |
//!
//! Invariants: a canonical URL can be parsed, and is canonical again (`canonical(parse(c)) == c`). It fetches the same
//! page as the URL it was made from, so nothing that a server may distinguish is lower-cased or reordered. A SURT is a
//! lookup key, not an address: it drops more, and cannot be converted back to a URL.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

mod canonical;
mod host;
mod lookup;
mod parameters;
mod request;
mod surt;

pub use canonical::{CanonicalRule, RULES, UrlParts, canonical};
pub use host::{HOST_BYTES_MAX, host_key, is_url_in_bounds, registry_suffix, site_of};
pub use lookup::{callback_of, lookup_key, loose_key};
pub use parameters::{
    Parameter, is_suspect, may_have_parameters, parameters, was_dropped, without_parameters,
};
pub(crate) use request::requested_with;
pub use request::{method_of, without_request};
pub use surt::surt;

/// Returns the 64-bit hash of a canonical URL, by which the seen-set finds it: the standard library's SipHash-1-3, with
/// a key that each process draws anew.
///
/// While crawling, the URL table identifies a URL by 62 bits of its hash. As the key is secret, no attacker can
/// construct a URL that collides with another one (fast hashes such as XXH3 can be collided at will, whatever their
/// seed). Hashes are meaningless to another process, so they must not be stored.
#[must_use]
pub fn url_hash(url: &str) -> u64 {
    name_hash(url.as_bytes())
}

/// Returns the [`url_hash`] of a name's bytes.
pub(crate) fn name_hash(name: &[u8]) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut hasher = KEY.build_hasher();
    hasher.write(name);
    hasher.finish()
}

#[cfg(test)]
mod tests;
