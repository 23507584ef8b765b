//! A controller is a set of parts that run for ever; one that ends is a defect that ends the controller.

use std::future::Future;

/// Why a controller ended although nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// A part that runs for ever ended; the process should be restarted.
    #[error("the controller lost its {0}")]
    PartEnded(&'static str),
    /// A part panicked.
    #[error("a part of the controller panicked")]
    Panicked(#[source] tokio::task::JoinError),
}

/// A part that says its name when it ends.
pub(crate) async fn named(name: &'static str, part: impl Future<Output = ()>) -> &'static str {
    part.await;
    name
}

/// The error of a controller one of whose parts ended.
pub(crate) fn part_ended(ended: Option<Result<&'static str, tokio::task::JoinError>>) -> ControllerError {
    match ended {
        Some(Ok(name)) => ControllerError::PartEnded(name),
        Some(Err(error)) => ControllerError::Panicked(error),
        None => ControllerError::PartEnded("parts"),
    }
}
