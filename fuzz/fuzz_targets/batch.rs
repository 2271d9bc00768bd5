//! The lines of a batch are refused, or parse as a batch that survives a round trip.
#![no_main]

use archive_books::cluster::{Batch, Division, Mode, Partition, Route};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|lines: &str| {
    let (mode, by) = (Mode::Exchange, Division::Site);
    let partition = Partition { cluster: "c".to_owned(), number: 1, count: 1, mode, by };
    let route = Route { cluster: "c".to_owned(), from: 2, to: 1, number: 7 };
    let bytes = route.seal(lines).expect("there is memory");
    let Ok(batch) = Batch::read(&bytes, &route, &partition) else { return };
    let written = batch.write().expect("there is memory");
    let again = Batch::read(&written, &route, &partition).expect("it was written by a batch");
    assert_eq!((again.epoch, again.named(), again.cash()), (batch.epoch, batch.named(), batch.cash()));
    assert_eq!(again.write().expect("there is memory"), written);
});
