//! Events: what users see in `kubectl describe`.
//!
//! Recording never waits and never fails a reconciliation: occurrences go through a bounded channel to one writer, which folds
//! repeats (`correlate`), drops what a noisy object says beyond its allowance, and tries again where the API server has no time.
//! The classic `v1` Event is written, as the framework's recorder does: `source.component` and `count` are what existing tools read.

mod correlate;
mod lasting;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use openstack_ccm_core::notice::{Notice, Severity};
use openstack_ccm_core::text::printable_lines;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::{CallError, call};
use correlate::{Action, Correlator, Topic};

pub use lasting::Lasting;

/// Occurrences that may wait for the writer before new ones are dropped.
const MAX_QUEUED_EVENTS: usize = 1024;

/// One try to write an event takes no longer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Tries that an event has, and the pause between them, as with the framework's recorder (client-go, `tools/record`).
const MAX_TRIES: u32 = 12;
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Longest message that every API server accepts, in bytes.
const MAX_MESSAGE_LENGTH: usize = 1024;

/// One thing that happened to an object.
#[derive(Clone, Debug)]
struct Occurrence {
    object: ObjectReference,
    component: &'static str,
    notice: Notice,
    at: jiff::Timestamp,
}

/// Records events. Clones share one writer.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    sender: mpsc::Sender<Occurrence>,
}

impl EventRecorder {
    /// Hands an event to the writer; drops it when too many wait already.
    pub fn record(&self, object: &ObjectReference, component: &'static str, mut notice: Notice) {
        // `kubectl describe` prints it as it is.
        notice.message = printable_lines(&notice.message);
        let at = jiff::Timestamp::now();
        let occurrence = Occurrence { object: object.clone(), component, notice, at };
        if let Err(error) = self.sender.try_send(occurrence) {
            tracing::debug!(%error, "event dropped");
        }
    }
}

/// Writes what recorders hand over.
pub struct EventWriter {
    client: Client,
    receiver: mpsc::Receiver<Occurrence>,
    correlator: Correlator,
    /// Where the events come from (`source.host`).
    host: Option<String>,
}

/// A recorder and the writer behind it.
pub fn channel(client: Client) -> (EventRecorder, EventWriter) {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_EVENTS);
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    (EventRecorder { sender }, EventWriter { client, receiver, correlator: Correlator::default(), host })
}

/// Writes one event now, in one try.
pub async fn write_one(client: Client, object: ObjectReference, component: &'static str, notice: Notice) {
    let (_, mut writer) = channel(client);
    let closing = CancellationToken::new();
    closing.cancel();
    writer.write(Occurrence { object, component, notice, at: jiff::Timestamp::now() }, &closing).await;
}

impl EventWriter {
    /// Takes out what waits to be written, each with the object that it is about: for a dry run, which writes nothing.
    pub fn take_unwritten(&mut self) -> Vec<(ObjectReference, Notice)> {
        let waiting = std::iter::from_fn(|| self.receiver.try_recv().ok());
        waiting.map(|occurrence| (occurrence.object, occurrence.notice)).collect()
    }

    /// Writes until `closing`, and then what is still waiting, each in one try.
    pub async fn run(mut self, closing: CancellationToken) {
        loop {
            let next = tokio::select! {
                biased;
                next = self.receiver.recv() => next,
                () = closing.cancelled() => break,
            };
            match next {
                Some(occurrence) => self.write(occurrence, &closing).await,
                None => return,
            }
        }
        while let Ok(occurrence) = self.receiver.try_recv() {
            self.write(occurrence, &closing).await;
        }
    }

    async fn write(&mut self, mut occurrence: Occurrence, closing: &CancellationToken) {
        truncate(&mut occurrence.notice.message);
        let topic = Topic {
            object: occurrence.object.uid.clone().unwrap_or_default(),
            component: occurrence.component,
            severity: occurrence.notice.severity,
            reason: occurrence.notice.reason,
        };
        let action = self.correlator.correlate(topic, &occurrence.notice.message, Instant::now());
        let mut tries = 1;
        let error = loop {
            match self.carry_out(&occurrence, &action).await {
                Ok(None) => return,
                Ok(Some(created)) => return self.correlator.created(created),
                Err(error) if !error.is_temporary() || tries == MAX_TRIES => break error,
                Err(error) => {
                    if closing.run_until_cancelled(tokio::time::sleep(RETRY_INTERVAL)).await.is_none() {
                        break error;
                    }
                }
            }
            tries += 1;
        };
        self.correlator.failed();
        tracing::warn!(
            error = error.message(),
            reason = occurrence.notice.reason,
            object = occurrence.object.name,
            "event could not be written"
        );
    }

    /// Returns the name of an event that was created.
    async fn carry_out(&self, occurrence: &Occurrence, action: &Action) -> Result<Option<String>, CallError> {
        match action {
            Action::Drop => Ok(None),
            Action::Create { message } => self.create(occurrence, message).await.map(Some),
            Action::Repeat { name, message, count } => {
                match self.repeat(occurrence, name, message, *count).await {
                    Err(error) if error.is_not_found() => self.create(occurrence, message).await.map(Some),
                    other => other.map(|()| None),
                }
            }
        }
    }

    fn api(&self, occurrence: &Occurrence) -> Api<Event> {
        let namespace = occurrence.object.namespace.as_deref().unwrap_or("default");
        Api::namespaced(self.client.clone(), namespace)
    }

    async fn create(&self, occurrence: &Occurrence, message: &str) -> Result<String, CallError> {
        let name = event_name(occurrence);
        let time = Some(Time(occurrence.at));
        let event = Event {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: occurrence.object.namespace.clone(),
                ..ObjectMeta::default()
            },
            involved_object: occurrence.object.clone(),
            reason: Some(occurrence.notice.reason.to_owned()),
            message: Some(message.to_owned()),
            type_: Some(event_type(occurrence.notice.severity).to_owned()),
            source: Some(EventSource {
                component: Some(occurrence.component.to_owned()),
                host: self.host.clone(),
            }),
            first_timestamp: time.clone(),
            last_timestamp: time,
            count: Some(1),
            ..Event::default()
        };
        match call(WRITE_TIMEOUT, self.api(occurrence).create(&PostParams::default(), &event)).await {
            // An earlier try was carried out although its answer did not arrive.
            Err(error) if !error.is_conflict() => Err(error),
            Ok(_) | Err(_) => Ok(name),
        }
    }

    async fn repeat(
        &self,
        occurrence: &Occurrence,
        name: &str,
        message: &str,
        count: i32,
    ) -> Result<(), CallError> {
        let time = Time(occurrence.at);
        let patch = Patch::Merge(json!({"count": count, "lastTimestamp": time, "message": message}));
        call(WRITE_TIMEOUT, self.api(occurrence).patch(name, &PatchParams::default(), &patch)).await.map(drop)
    }
}

/// The name that the framework's recorder gives: the object's and the time in nanoseconds.
fn event_name(occurrence: &Occurrence) -> String {
    let object = occurrence.object.name.as_deref().unwrap_or("object");
    format!("{object}.{:x}", occurrence.at.as_nanosecond())
}

fn event_type(severity: Severity) -> &'static str {
    match severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    }
}

fn truncate(message: &mut String) {
    if message.len() > MAX_MESSAGE_LENGTH {
        let end =
            (0..=MAX_MESSAGE_LENGTH - 3).rev().find(|index| message.is_char_boundary(*index)).unwrap_or(0);
        message.truncate(end);
        message.push_str("...");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_between_characters() {
        let mut message = "ä".repeat(600);
        truncate(&mut message);
        assert!(message.len() <= MAX_MESSAGE_LENGTH);
        assert!(message.ends_with("ä..."));
        let mut short = "short".to_owned();
        truncate(&mut short);
        assert_eq!(short, "short");
    }
}
