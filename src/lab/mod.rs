//! The papers' experiments on simulated and recorded webs.
