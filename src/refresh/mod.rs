//! Change rates, obsolescence and schedules: numbers in, numbers out, no I/O.
