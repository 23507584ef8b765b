//! A controller is a set of parts that run for ever; the end of a part is a defect that ends the controller.

use std::future::Future;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::events::EventWriter;

/// Longest wait for events that are not written yet when a controller ends.
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a controller ended without a shutdown.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// A part that runs for ever ended; the process should be restarted.
    #[error("the controller lost its {0}")]
    PartEnded(&'static str),
    #[error("a task of the controller panicked")]
    Panicked(#[source] tokio::task::JoinError),
}

/// Wraps a part so that it returns its name. No `async fn`, which would store the part twice.
pub fn named(name: &'static str, part: impl Future<Output = ()>) -> impl Future<Output = &'static str> {
    part.map(move |()| name)
}

/// Waits until `is_it` accepts the value, and for ever once the sender is gone: the end of a part is noticed where the part is
/// joined.
pub async fn becomes<T>(mut value: watch::Receiver<T>, is_it: impl FnMut(&T) -> bool) {
    if value.wait_for(is_it).await.is_err() {
        std::future::pending::<()>().await;
    }
}

pub fn part_ended(ended: Option<Result<&'static str, tokio::task::JoinError>>) -> ControllerError {
    match ended {
        Some(Ok(name)) => ControllerError::PartEnded(name),
        Some(Err(error)) => ControllerError::Panicked(error),
        None => ControllerError::PartEnded("parts"),
    }
}

/// The running event writer of a controller. It outlives the parts, which may have a last event to write.
pub struct EventWriting {
    writer: JoinSet<()>,
    closing: CancellationToken,
}

impl EventWriting {
    /// Starts the writer. Dropping the value stops it at once.
    pub fn start(events: EventWriter) -> Self {
        let closing = CancellationToken::new();
        let mut writer = JoinSet::new();
        writer.spawn(events.run(closing.clone()));
        Self { writer, closing }
    }

    /// Writes the remaining events, for `LAST_EVENTS_TIMEOUT` at most.
    pub async fn finish(mut self) {
        self.closing.cancel();
        let last_events = async { while self.writer.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_EVENTS_TIMEOUT, last_events).await.is_err() {
            tracing::debug!("the last events could not be written");
        }
    }
}

/// Runs parts that may be dropped at any call, and the writer of their events, until `shutdown`.
pub async fn run_parts(
    mut parts: JoinSet<&'static str>,
    events: EventWriter,
    shutdown: CancellationToken,
) -> Result<(), ControllerError> {
    let writing = EventWriting::start(events);
    let result = tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        ended = parts.join_next() => Err(part_ended(ended)),
    };
    parts.shutdown().await;
    writing.finish().await;
    result
}
