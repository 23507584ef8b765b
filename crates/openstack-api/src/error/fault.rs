//! Extracts the text of an error answer, in any of the services' formats.

use std::fmt;

use serde_json::{Map, Value};

/// The longest text kept of a body with an unknown format (a proxy's HTML page), in characters.
const MAX_UNKNOWN_TEXT_LENGTH: usize = 300;

/// A service's description of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// The service's own name for the error: Neutron's exception type (`OverQuota`), Nova's wrapper (`itemNotFound`),
    /// Octavia's fault code (`Client`, `Server`) or a title (`Not Found`).
    pub name: Option<String>,
    /// The sentence for users. Empty where the body was empty.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.message.is_empty()) {
            (_, false) => formatter.write_str(&self.message),
            (Some(name), true) => formatter.write_str(name),
            (None, true) => formatter.write_str("(no text)"),
        }
    }
}

impl Fault {
    /// Parses an error body. Known formats: Octavia's `faultstring`, a `title` with `description` (Octavia's routing, Barbican),
    /// the Keystone middleware's `error` with `message`, `NeutronError`, and Nova's object in an object. A body of another format
    /// is kept as text, cut short.
    pub fn from_body(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Object(object)) => Self::from_object(&object).unwrap_or_else(|| Self::from_text(body)),
            Ok(Value::String(message)) => Self { name: None, message },
            Ok(_) | Err(_) => Self::from_text(body),
        }
    }

    /// Returns whether the body is an HTML page, as front ends send.
    pub(crate) fn is_html(&self) -> bool {
        self.name.is_none() && self.message.starts_with('<')
    }

    fn from_object(object: &Map<String, Value>) -> Option<Self> {
        if let Some(message) = text(object, "faultstring") {
            return Some(Self { name: text(object, "faultcode"), message });
        }
        if let Some(title) = text(object, "title") {
            let message = text(object, "description").unwrap_or_else(|| title.clone());
            return Some(Self { name: Some(title), message });
        }
        if let Some(message) = text(object, "message") {
            return Some(Self { name: text(object, "type"), message });
        }
        let (wrapper, inner) = object.iter().next()?;
        match inner {
            // Old Neutron extensions and Neutron's plain web errors write the text directly into the wrapper.
            Value::String(message) => Some(Self { name: Some(wrapper.clone()), message: message.clone() }),
            Value::Object(inner) => {
                let message = text(inner, "message").or_else(|| text(inner, "faultstring"))?;
                let name = text(inner, "type").or_else(|| text(inner, "title"));
                Some(Self { name: name.or_else(|| Some(wrapper.clone())), message })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
        }
    }

    fn from_text(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut message: String = words.chars().take(MAX_UNKNOWN_TEXT_LENGTH).collect();
        if message.len() < words.len() {
            message.push('…');
        }
        Self { name: None, message }
    }
}

fn text(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}
