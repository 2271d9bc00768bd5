//! The pipeline and the frontier: what to fetch next, and what becomes of it.
