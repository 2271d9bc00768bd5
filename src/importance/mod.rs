//! The papers' mathematics of importance: numbers in, numbers out, no I/O.
