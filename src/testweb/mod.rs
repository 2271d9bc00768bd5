//! A web of our own: deterministic, many hosts, served on loopback, and it knows the truth.
