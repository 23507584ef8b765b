//! Events: what users see in `kubectl describe`.
//!
//! Recording never waits and never fails a reconciliation: occurrences go through a bounded channel to one writer, which folds
//! repeats (`correlate`) and drops what a noisy object says beyond its allowance. The classic `v1` Event is written,
//! as the framework's recorder does: `source.component` and `count` are what existing tools read.

mod correlate;

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

/// Occurrences that may wait for the writer before new ones are dropped.
const MAX_QUEUED_EVENTS: usize = 1024;

/// An event that is not written in this time is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

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

/// Writes one event now.
pub async fn write_one(client: Client, object: ObjectReference, component: &'static str, notice: Notice) {
    let (_, mut writer) = channel(client);
    writer.write(Occurrence { object, component, notice, at: jiff::Timestamp::now() }).await;
}

impl EventWriter {
    /// Takes out what waits to be written, each with the object that it is about: for a dry run, which writes nothing.
    pub fn take_unwritten(&mut self) -> Vec<(ObjectReference, Notice)> {
        let waiting = std::iter::from_fn(|| self.receiver.try_recv().ok());
        waiting.map(|occurrence| (occurrence.object, occurrence.notice)).collect()
    }

    /// Writes until `closing`, and then what is still waiting.
    pub async fn run(mut self, closing: CancellationToken) {
        loop {
            let next = tokio::select! {
                biased;
                next = self.receiver.recv() => next,
                () = closing.cancelled() => break,
            };
            match next {
                Some(occurrence) => self.write(occurrence).await,
                None => return,
            }
        }
        while let Ok(occurrence) = self.receiver.try_recv() {
            self.write(occurrence).await;
        }
    }

    async fn write(&mut self, mut occurrence: Occurrence) {
        truncate(&mut occurrence.notice.message);
        let topic = Topic {
            object: occurrence.object.uid.clone().unwrap_or_default(),
            component: occurrence.component,
            severity: occurrence.notice.severity,
            reason: occurrence.notice.reason,
        };
        let action = self.correlator.correlate(topic, &occurrence.notice.message, Instant::now());
        let written = match &action {
            Action::Drop => return,
            Action::Create { message } => {
                self.create(&occurrence, message).await.map(|name| self.correlator.created(name))
            }
            Action::Repeat { name, message, count } => {
                match self.repeat(&occurrence, name, message, *count).await {
                    Err(error) if error.is_not_found() => {
                        self.create(&occurrence, message).await.map(|name| self.correlator.created(name))
                    }
                    other => other,
                }
            }
        };
        if let Err(error) = written {
            self.correlator.failed();
            tracing::warn!(
                error = error.message(),
                reason = occurrence.notice.reason,
                object = occurrence.object.name,
                "event could not be written"
            );
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
        call(WRITE_TIMEOUT, self.api(occurrence).create(&PostParams::default(), &event)).await?;
        Ok(name)
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
