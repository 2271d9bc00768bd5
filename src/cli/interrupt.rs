//! Ctrl-C and SIGTERM: the first asks for a clean stop, the second ends the program at once. SIGUSR1 pauses, SIGUSR2
//! goes on.

use std::process;
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use archive::crawl::Control;
use tokio::signal::unix::{SignalKind, signal};

/// Exit code after a second signal, as shells have it for SIGINT.
const EXIT_KILLED: i32 = 130;

/// Listens for signals and tells them to what it returns.
pub(crate) fn install() -> anyhow::Result<Arc<Control>> {
    let control = Arc::new(Control::default());
    let told = Arc::clone(&control);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot listen for signals")?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || runtime.block_on(listen(&told)))
        .context("cannot listen for signals")?;
    Ok(control)
}

async fn listen(control: &Control) {
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut pause), Ok(mut resume)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::user_defined1()),
        signal(SignalKind::user_defined2()),
    ) else {
        return;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => stop(control),
            _ = terminate.recv() => stop(control),
            _ = pause.recv() => control.pause(),
            _ = resume.recv() => control.resume(),
        }
    }
}

fn stop(control: &Control) {
    if control.stop() {
        process::exit(EXIT_KILLED);
    }
    eprintln!("archive: stopping; what is under way is still stored (once more to stop at once)");
}
