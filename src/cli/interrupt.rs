//! Signals. The first Ctrl-C, SIGTERM or SIGHUP (the terminal closes) requests a clean stop; a later one ends the
//! program at once. SIGUSR1 pauses, SIGUSR2 resumes.

use std::fs;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use archive_base::control::Control;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{During, Result};

/// Exit code after a second signal, the one that shells use for SIGINT.
const EXIT_KILLED: i32 = 130;

/// Terminals and process managers often send two signals in a row: within this time they count as one request.
const DOUBLED_WITHIN: Duration = Duration::from_secs(1);

/// Interval at which a waiting command checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Listens for signals, from now on, and forwards them to the returned control.
pub(crate) fn install() -> Result<Arc<Control>> {
    let control = Arc::new(Control::default());
    let signalled = Arc::clone(&control);
    let listening = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // A signal must not end the program because the thread has not begun yet.
        let signals = runtime.block_on(async { HeardSignals::register() })?;
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(signals.forward(&signalled)))
    };
    listening().within("cannot listen for signals")?;
    Ok(control)
}

/// Makes the first signal end the program at once after calling `last`. For programs that wait for user input before
/// they start.
pub(crate) fn end_with(last: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = runtime.block_on(async {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        kinds.map(signal).into_iter().collect::<std::io::Result<Vec<Signal>>>()
    });
    let mut signals = signals?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            let [interrupt, terminate] = signals.as_mut_slice() else { return };
            tokio::select! { _ = interrupt.recv() => {} _ = terminate.recv() => {} }
        });
        last();
        process::exit(EXIT_KILLED);
    })?;
    Ok(())
}

/// Waits for `time`; returns `false` as soon as a stop is requested.
pub(crate) fn wait(control: &Control, time: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < time && !control.is_stopped() {
        thread::sleep(time.saturating_sub(begun.elapsed()).min(LOOK_EVERY));
    }
    !control.is_stopped()
}

struct HeardSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
    pause: Signal,
    resume: Signal,
}

impl HeardSignals {
    fn register() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: hangup()?,
            pause: signal(SignalKind::user_defined1())?,
            resume: signal(SignalKind::user_defined2())?,
        })
    }

    async fn forward(mut self, control: &Control) {
        let mut asked = None;
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => stop(control, &mut asked),
                _ = self.terminate.recv() => stop(control, &mut asked),
                Some(()) = async { self.hangup.as_mut()?.recv().await } => stop(control, &mut asked),
                _ = self.pause.recv() => control.pause(),
                _ = self.resume.recv() => control.resume(),
            }
        }
    }
}

/// Listens for SIGHUP, unless the program was started with it ignored, as by nohup.
fn hangup() -> std::io::Result<Option<Signal>> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let kind = SignalKind::hangup();
    let bit = 1 << (kind.as_raw_value() - 1);
    if ignored & bit == 0 { signal(kind).map(Some) } else { Ok(None) }
}

fn stop(control: &Control, asked: &mut Option<Instant>) {
    control.stop();
    match asked {
        None => {
            *asked = Some(Instant::now());
            note!("stopping; what is under way is finished first (once more to stop at once)");
        }
        Some(first) if first.elapsed() < DOUBLED_WITHIN => {}
        Some(_) => process::exit(EXIT_KILLED),
    }
}
