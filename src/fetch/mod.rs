//! HTTP, robots, DNS, address guard.
