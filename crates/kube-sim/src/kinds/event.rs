//! Events: one storage, shown by the core group and by events.k8s.io.

use serde_json::{Map, Value};

use super::{Part, Rules, Write};
use crate::failure::FieldError;
use crate::object::{namespace, text};
use crate::version::ApiVersion;

pub(super) const CORE: &str = "involvedObject!={kind namespace name uid apiVersion resourceVersion fieldPath} \
    reason message source!{component host} firstTimestamp!:time lastTimestamp!:time count:int type \
    eventTime!:microtime series{count:int lastObservedTime:microtime} action \
    related={kind namespace name uid apiVersion resourceVersion fieldPath} reportingComponent! reportingInstance!";

pub(super) const EVENTS_GROUP: &str = "eventTime!:microtime series{count!:int lastObservedTime!:microtime} \
    reportingController reportingInstance action reason \
    regarding!={kind namespace name uid apiVersion resourceVersion fieldPath} \
    related={kind namespace name uid apiVersion resourceVersion fieldPath} note type \
    deprecatedSource!{component host} deprecatedFirstTimestamp!:time deprecatedLastTimestamp!:time \
    deprecatedCount:int";

/// Names of the same field in the core group and in events.k8s.io.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Longest note, in bytes.
const NOTE_LIMIT: usize = 1024;
/// Longest action and reason, in bytes.
const WORD_LIMIT: usize = 128;

/// An event as it is stored, from its events.k8s.io form.
pub(crate) fn to_core(event: &Value) -> Value {
    rename(event, |field| RENAMED.iter().find(|(_, group)| *group == field).map(|(core, _)| *core))
}

/// An event in its events.k8s.io form.
pub(crate) fn to_events_group(event: &Value) -> Value {
    rename(event, |field| RENAMED.iter().find(|(core, _)| *core == field).map(|(_, group)| *group))
}

fn rename(event: &Value, other_name: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(fields) = event else { return event.clone() };
    fields
        .iter()
        .map(|(name, value)| (other_name(name).map_or_else(|| name.clone(), str::to_owned), value.clone()))
        .collect::<Map<String, Value>>()
        .into()
}

const SELECTABLE: [(&str, &str); 10] = [
    ("involvedObject.kind", "/involvedObject/kind"),
    ("involvedObject.namespace", "/involvedObject/namespace"),
    ("involvedObject.name", "/involvedObject/name"),
    ("involvedObject.uid", "/involvedObject/uid"),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    ("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    ("reason", "/reason"),
    ("reportingComponent", "/reportingComponent"),
    ("type", "/type"),
];

/// Through which group an event is written.
pub(super) enum Event {
    /// The core group: the old, lenient rules.
    Core,
    /// events.k8s.io
    EventsGroup,
}

impl Rules for Event {
    fn before_update(&self, _new: &mut Value, _old: &Value, _part: Part, _version: ApiVersion) {}

    fn creates_on_update(&self) -> bool {
        true
    }

    /// An event has the stored form here; so it has when the server validates it, hence `message` for the note.
    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        match (self, write.old) {
            (Self::Core, _) => namespace_problem(write.new).into_iter().collect(),
            (Self::EventsGroup, Some(old)) => immutable_problems(write.new, old),
            (Self::EventsGroup, None) => creation_problems(write.new),
        }
    }

    fn selectable_fields(&self, _version: ApiVersion) -> &'static [(&'static str, &'static str)] {
        &SELECTABLE
    }
}

fn namespace_problem(event: &Value) -> Option<FieldError> {
    let subject = text(event, "/involvedObject/namespace");
    let own = namespace(event);
    let matches = if subject.is_empty() { own == "default" || own.is_empty() } else { subject == own };
    (!matches).then(|| {
        let rule = "does not match event.namespace";
        FieldError::invalid("involvedObject.namespace", &subject.into(), rule)
    })
}

/// An event with a time may be about an object in another namespace; about one without, only in two of them.
fn new_namespace_problem(event: &Value) -> Option<FieldError> {
    if event["eventTime"].is_null() {
        return namespace_problem(event);
    }
    let about_none = text(event, "/involvedObject/namespace").is_empty();
    (about_none && !["default", "kube-system"].contains(&namespace(event))).then(|| {
        let rule = "does not match event.namespace";
        FieldError::invalid("involvedObject.namespace", &"".into(), rule)
    })
}

fn creation_problems(event: &Value) -> Vec<FieldError> {
    let mut problems: Vec<FieldError> = new_namespace_problem(event).into_iter().collect();
    if event["eventTime"].is_null() {
        problems.push(FieldError::required("eventTime", ""));
    }
    for (field, shown) in
        [("reportingComponent", "reportingController"), ("reportingInstance", "reportingInstance")]
    {
        if text(event, &format!("/{field}")).is_empty() {
            problems.push(FieldError::required(shown, ""));
        }
    }
    for field in ["action", "reason"] {
        match text(event, &format!("/{field}")) {
            "" => problems.push(FieldError::required(field, "")),
            word if word.len() > WORD_LIMIT => {
                let rule = format!("can have at most {WORD_LIMIT} characters");
                problems.push(FieldError::invalid(field, &"".into(), &rule));
            }
            _ => {}
        }
    }
    if !["Normal", "Warning"].contains(&text(event, "/type")) {
        let rule = format!("has invalid value: {}", text(event, "/type"));
        problems.push(FieldError::invalid("type", &"".into(), &rule));
    }
    if text(event, "/message").len() > NOTE_LIMIT {
        let rule = format!("can have at most {NOTE_LIMIT} characters");
        problems.push(FieldError::invalid("message", &"".into(), &rule));
    }
    problems
}

fn immutable_problems(new: &Value, old: &Value) -> Vec<FieldError> {
    const FIXED: [(&str, &str); 9] = [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    FIXED
        .iter()
        .filter(|(field, _)| new.get(*field) != old.get(*field))
        .map(|(field, shown)| FieldError::invalid(*shown, &new[*field], "field is immutable"))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_views_name_the_same_fields() {
        let shown = json!({"regarding": {"name": "web"}, "note": "n", "action": "a", "deprecatedCount": 2});
        let stored = json!({"involvedObject": {"name": "web"}, "message": "n", "action": "a", "count": 2});
        assert_eq!(to_core(&shown), stored);
        assert_eq!(to_events_group(&stored), shown);
    }
}
