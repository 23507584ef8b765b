//! The fields of a record and its spans, besides the message.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::{FmtContext, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, Scope};

/// The key of a record's text among the fields of `tracing`.
const MESSAGE: &str = "message";

/// Returns the message, and all fields by name; fields of the record replace those of its spans. Fields of spans have
/// to be formatted as JSON.
pub(super) fn of<S, N>(context: &FmtContext<'_, S, N>, event: &Event<'_>) -> (String, Map<String, Value>)
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    let mut fields = Map::new();
    for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
        let extensions = span.extensions();
        let text = extensions.get::<FormattedFields<N>>().map(|formatted| formatted.fields.as_str());
        if let Some(Ok(Value::Object(known))) = text.map(serde_json::from_str) {
            fields.extend(known);
        }
    }
    event.record(&mut Fields(&mut fields));
    let message = fields.remove(MESSAGE);
    (message.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(), fields)
}

/// Collects the fields of a record.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn insert(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value.into());
    }
}
