//! Long-running responses: the state of a run as server-sent events.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use archive_base::access::Role;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep, timeout};

use super::ServerState;
use super::bodies::SentBody;
use super::lanes::LaneKind;
use super::page::{Reply, Speech, Which, report};

/// Interval between checks for news.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A comment is sent after this time without news, to detect clients that are gone.
const SIGN_EVERY: Duration = Duration::from_secs(15);

/// A client that does not read for this time is dropped.
const UNREAD_MAX: Duration = Duration::from_secs(10);

/// Maximum duration of a stream; browsers then reconnect by themselves.
const LIFE_MAX: Duration = Duration::from_secs(600);

/// The body of a report.
struct Events(mpsc::Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.get_mut().0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Starts to report a run.
///
/// # Errors
/// The reply to clients that cannot be served.
pub(super) async fn begin(
    shared: &Arc<ServerState>,
    which: Which,
    t: Speech,
    role: Option<Role>,
) -> Result<SentBody, Reply> {
    let Ok(place) = Arc::clone(&shared.limits.listeners).try_acquire_owned() else {
        return Err(Reply::problem(503, t, "Too many clients follow runs already."));
    };
    if look(shared, which, t, role).await.is_none() {
        return Err(Reply::problem(404, t, "There is no such run."));
    }
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(follow(Arc::clone(shared), which, t, role, sender, place));
    Ok(Events(receiver).boxed_unsync())
}

async fn follow(
    shared: Arc<ServerState>,
    which: Which,
    t: Speech,
    role: Option<Role>,
    sender: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
) {
    let mut ends = shared.limits.ends.subscribe();
    let (begun, mut said, mut before) = (Instant::now(), Instant::now(), String::new());
    let mut is_over = false;
    while !is_over && begun.elapsed() < LIFE_MAX && !*ends.borrow_and_update() {
        let now = look(&shared, which, t, role).await;
        let event = match now {
            Some((text, over)) if text != before => {
                is_over = over;
                let event = event(if over { "last" } else { "run" }, &text);
                before = text;
                Some(event)
            }
            _ if said.elapsed() >= SIGN_EVERY => Some(":\n\n".to_owned()),
            _ => None,
        };
        if let Some(event) = event {
            said = Instant::now();
            if !matches!(timeout(UNREAD_MAX, sender.send(event.into())).await, Ok(Ok(()))) {
                return;
            }
        }
        tokio::select! {
            () = sleep(LOOK_EVERY) => {}
            () = sender.closed() => return,
            _ = ends.changed() => {}
        }
    }
}

/// The current state of a run, and whether it is final; `None` if the run cannot be read.
async fn look(
    shared: &Arc<ServerState>,
    which: Which,
    t: Speech,
    role: Option<Role>,
) -> Option<(String, bool)> {
    let turn = shared.limits.lanes.turn(LaneKind::Quick, role, None).await?;
    let shared = Arc::clone(shared);
    turn.run(move || report(shared.archive()?.path(), which, t, role)).await?.0
}

fn event(name: &str, text: &str) -> String {
    // Any line ending that the format recognises would end the data field.
    let lines = text.split(['\n', '\r']).map(|line| format!("data: {line}\n"));
    format!("retry: 3000\nevent: {name}\n{}\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::event;

    #[test]
    fn no_text_ends_an_event() {
        let sent = event("run", "a\n\nevent: x\r\rdata: y");
        assert_eq!(
            sent,
            "retry: 3000\nevent: run\ndata: a\ndata: \ndata: event: x\ndata: \ndata: data: y\n\n"
        );
    }
}
