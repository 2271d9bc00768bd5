//! Libraries that panic over the bytes of a damaged file.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives, or nothing if it panics. There is no report of the panic: whoever reads a damaged file gets one error, in a
/// sentence. What `work` changes must not be used afterwards.
pub fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                report(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    outcome.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn only_other_panics_are_reported() {
        static REPORTS: AtomicUsize = AtomicUsize::new(0);
        panic::set_hook(Box::new(|_| {
            REPORTS.fetch_add(1, Ordering::SeqCst);
        }));
        assert_eq!(quietly(|| quietly(|| 7)), Some(Some(7)));
        let nothing: Option<()> = quietly(|| {
            assert_eq!(quietly(|| panic!("within")), None::<()>);
            panic!("over the damage");
        });
        assert_eq!((nothing, REPORTS.load(Ordering::SeqCst)), (None, 0));
        assert!(catch_unwind(|| panic!("somewhere else")).is_err());
        assert_eq!(REPORTS.load(Ordering::SeqCst), 1);
    }
}
