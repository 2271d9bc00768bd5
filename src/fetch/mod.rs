//! HTTP, robots, DNS, address guard.

pub mod robots;
