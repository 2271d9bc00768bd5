//! Contains panics of libraries that read damaged files.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Returns the result of `work`, or `None` if it panics. The panic is not reported: the reader of a damaged file gets a
/// single error instead. Whatever `work` modifies must not be used after a panic.
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
    use super::*;

    #[test]
    fn what_panics_gives_nothing_and_leaves_others_as_they_were() {
        assert_eq!(quietly(|| quietly(|| 7)), Some(Some(7)));
        let nothing: Option<()> = quietly(|| {
            assert_eq!(quietly(|| panic!("within")), None::<()>);
            assert!(QUIET.get());
            panic!("over the damage");
        });
        assert_eq!((nothing, QUIET.get()), (None, false));
    }
}
