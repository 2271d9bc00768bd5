//! Ctrl-C and SIGTERM: the first asks for a clean stop, the second ends the program at once.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

/// Exit code after a second signal, as shells have it for SIGINT.
const EXIT_KILLED: i32 = 130;

/// Listens for signals; the flag it returns is raised by the first.
pub(crate) fn install() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot listen for signals")?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || runtime.block_on(listen(&flag)))
        .context("cannot listen for signals")?;
    Ok(stop)
}

async fn listen(stop: &AtomicBool) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if stop.swap(true, Ordering::SeqCst) {
            process::exit(EXIT_KILLED);
        }
        eprintln!("archive: stopping; what is under way is still stored (once more to stop at once)");
    }
}
