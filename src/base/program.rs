//! The program's name and version, as it gives them to others.

/// Its name.
pub const NAME: &str = "archive";

/// Its version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Name and version as a product token (RFC 9110, section 10.1.5), for the header `User-Agent` and for records.
pub const PRODUCT: &str = concat!("archive/", env!("CARGO_PKG_VERSION"));
