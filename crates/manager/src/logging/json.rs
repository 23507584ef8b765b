//! Records as JSON, with the keys of Kubernetes' own components
//! (<https://kubernetes.io/docs/concepts/cluster-administration/system-logs/#json-log-format>): `ts` in milliseconds since
//! 1970, `caller`, `msg`, `v`, `err`; and the level by name. Other fields of a record and its spans follow under their
//! own names.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use openstack_ccm_core::text::printable;
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::fields;

/// The key of an error among the fields of `tracing`, and the one that Kubernetes gives it.
const ERROR: (&str, &str) = ("error", "err");

#[derive(Serialize)]
struct Record<'a> {
    ts: f64,
    level: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<String>,
    msg: &'a str,
    /// The verbosity from which on the record is shown; errors have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    v: Option<u8>,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// Returns the record of an error that ends the program, without the line break.
pub fn fatal(error: &str) -> String {
    let fields = Map::from_iter([(ERROR.1.to_owned(), error.into())]);
    let record =
        Record { ts: now(), level: "error", caller: None, msg: "openstack-ccm has failed", v: None, fields };
    // Serializing texts and numbers cannot fail.
    serde_json::to_string(&record).unwrap_or_default()
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs_f64() * 1000.0
}

/// Writes each record as one JSON object.
pub(super) struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (message, mut fields) = fields::of(context, event);
        if let Some(error) = fields.remove(ERROR.0) {
            fields.insert(ERROR.1.to_owned(), error);
        }
        let metadata = event.metadata();
        let caller = metadata.file().zip(metadata.line()).map(|(file, line)| format!("{file}:{line}"));
        let (level, v) = level(*metadata.level());
        let record = Record { ts: now(), level, caller, msg: &message, v, fields };
        writer.write_str(&printable(&serde_json::to_string(&record).map_err(|_| fmt::Error)?))?;
        writer.write_char('\n')
    }
}

/// Returns the name of a level, and klog's verbosity for it.
fn level(level: Level) -> (&'static str, Option<u8>) {
    match level {
        Level::ERROR => ("error", None),
        Level::WARN => ("warn", Some(0)),
        Level::INFO => ("info", Some(0)),
        Level::DEBUG => ("debug", Some(4)),
        Level::TRACE => ("trace", Some(6)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use openstack_ccm_core::lock::lock;
    use serde_json::json;
    use tracing_subscriber::fmt::format::JsonFields;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The record that `log` writes; its time and place are checked and taken out.
    fn record(log: impl FnOnce()) -> Value {
        let output = Output::default();
        let writer = output.clone();
        let layer = tracing_subscriber::fmt::layer()
            .event_format(Json)
            .fmt_fields(JsonFields::new())
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let mut record: Value = serde_json::from_str(&text).unwrap();
        let fields = record.as_object_mut().unwrap();
        // Milliseconds, in this century and the next.
        assert!((1e12..7e12).contains(&fields.remove("ts").unwrap().as_f64().unwrap()), "{text}");
        assert!(fields.remove("caller").unwrap().as_str().unwrap().contains("json.rs:"), "{text}");
        record
    }

    #[test]
    fn records_have_the_keys_of_kubernetes() {
        let written = record(|| {
            let _span = tracing::info_span!("reconcile", service = "default/web").entered();
            let error = io::Error::other("no\nanswer");
            tracing::warn!(%error, attempt = 3_u32, done = false, "trying again");
        });
        assert_eq!(
            written,
            json!({"level": "warn", "msg": "trying again", "v": 0, "err": "no\nanswer", "attempt": 3, "done": false,
                "service": "default/web"})
        );
        let written = record(|| tracing::error!("over"));
        assert_eq!(written, json!({"level": "error", "msg": "over"}));
    }

    #[test]
    fn a_fatal_error_is_a_record_too() {
        let record: Value = serde_json::from_str(&fatal("two\nlines")).unwrap();
        assert_eq!((&record["level"], &record["err"]), (&json!("error"), &json!("two\nlines")));
        assert!(record["ts"].is_number() && record["msg"].is_string());
    }
}
