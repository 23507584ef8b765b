//! Reading bodies: unknown attributes, wrong values, missing values and defaults, for one API version.

use serde_json::{Map, Value, json};

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use super::values::{check_value, invalid, missing};
use crate::request::Request;

/// One attribute of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attribute {
    /// The name on the wire.
    pub(crate) name: &'static str,
    pub(crate) check: ValueCheck,
    initial: Initial,
    required: bool,
    in_put: bool,
    /// Whether the value is kept as an attribute; otherwise it is a relation that the handler resolves.
    pub(crate) stored: bool,
    /// The API version 2.x that brought it.
    pub(crate) since: u8,
    /// Whether a member batch without it sets it back to its default.
    pub(crate) reset_by_batch: bool,
}

/// What values an attribute takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueCheck {
    Text {
        max: usize,
    },
    Texts,
    Tags,
    Flag,
    Integer {
        min: i64,
        max: i64,
    },
    HttpVersion,
    Uuid,
    Uuids,
    Address,
    Cidrs,
    /// Names, each with the API version 2.x that brought it.
    OneOf(&'static [(&'static str, u8)]),
    Headers,
    SessionPersistence,
    AdditionalVips,
    Nested(ObjectKind),
    NestedOne(ObjectKind),
    /// Shown, never taken.
    ReadOnly,
}

/// The value of an attribute that nobody gave.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Initial {
    Null,
    EmptyText,
    EmptyList,
    EmptyObject,
    Text(&'static str),
    Flag(bool),
    Integer(i64),
}

impl Initial {
    fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::EmptyText => json!(""),
            Self::EmptyList => json!([]),
            Self::EmptyObject => json!({}),
            Self::Text(text) => json!(text),
            Self::Flag(flag) => json!(flag),
            Self::Integer(number) => json!(number),
        }
    }
}

/// An optional, changeable, stored attribute that has always been there.
pub(crate) const fn attribute(name: &'static str, check: ValueCheck, initial: Initial) -> Attribute {
    Attribute {
        name,
        check,
        initial,
        required: false,
        in_put: true,
        stored: true,
        since: 0,
        reset_by_batch: false,
    }
}

impl Attribute {
    /// Must be given on creation.
    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Cannot change after creation.
    pub(crate) const fn fixed(mut self) -> Self {
        self.in_put = false;
        self
    }

    /// Is a relation that the handler resolves, given on creation only.
    pub(crate) const fn link(mut self) -> Self {
        self.stored = false;
        self.in_put = false;
        self
    }

    /// Can change although it is a relation.
    pub(crate) const fn changeable(mut self) -> Self {
        self.in_put = true;
        self
    }

    /// Exists from API version 2.`minor` on.
    pub(crate) const fn since(mut self, minor: u8) -> Self {
        self.since = minor;
        self
    }

    /// Falls back to its default in a member batch that leaves it out.
    pub(crate) const fn reset_by_batch(mut self) -> Self {
        self.reset_by_batch = true;
        self
    }

    /// The value when nobody gives one.
    pub(crate) fn default_value(&self) -> Value {
        self.initial.value()
    }
}

/// Where a body is read from: decides which attributes are known and what messages call them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) kind: ObjectKind,
    /// The API version 2.x.
    pub(crate) minor: u8,
    pub(crate) update: bool,
    /// The argument's name and the way to the object, for messages about unknown attributes.
    pub(crate) argument: &'a str,
    /// A nested pool may be only a name that refers to another.
    pub(crate) nested: bool,
}

/// The object under its root key in the request's body, checked; no defaults are filled in.
pub(crate) fn read_body(
    request: &Request,
    kind: ObjectKind,
    minor: u8,
) -> Result<Map<String, Value>, OctaviaFault> {
    let body = parse(request)?;
    let object = root_object(&body, kind.argument(), kind.root())?;
    let update = request.method == http::Method::PUT;
    let argument = format!("{}.{}", kind.argument(), kind.root());
    let reading = Reading { kind, minor, update, argument: &argument, nested: false };
    read_object(object, reading).map_err(|fault| name_whole_body(fault, kind.argument(), &body))
}

/// The body as JSON.
pub(crate) fn parse(request: &Request) -> Result<Value, OctaviaFault> {
    request.json().ok_or_else(|| OctaviaFault::BadRequest("Request is not in valid JSON format".to_owned()))
}

/// The one value that a body may have.
pub(crate) fn root_object<'a>(
    body: &'a Value,
    argument: &str,
    root: &str,
) -> Result<&'a Value, OctaviaFault> {
    if let Some(unknown) = body.as_object().and_then(|keys| keys.keys().find(|key| *key != root)) {
        return Err(OctaviaFault::UnknownAttribute {
            argument: argument.to_owned(),
            attribute: unknown.clone(),
        });
    }
    body.get(root).ok_or_else(|| missing(root))
}

/// Octavia cannot say which attribute had a bad Boolean: it shows the whole body.
pub(crate) fn name_whole_body(fault: OctaviaFault, argument: &str, body: &Value) -> OctaviaFault {
    match fault {
        OctaviaFault::InvalidInput { attribute, value: _, reason } if attribute.is_empty() => {
            OctaviaFault::InvalidInput { attribute: argument.to_owned(), value: body.clone(), reason }
        }
        other => other,
    }
}

/// Checks one object; what is given and known comes back, with null meaning the default.
pub(crate) fn read_object(object: &Value, reading: Reading<'_>) -> Result<Map<String, Value>, OctaviaFault> {
    let Some(entries) = object.as_object() else {
        return Err(invalid(reading.kind.root(), object, "Value should be an object"));
    };
    let mut given = Map::new();
    for (name, value) in entries {
        let attribute = known_attribute(reading, name)?;
        let value =
            if value.is_null() { attribute.default_value() } else { check_value(attribute, value, reading)? };
        given.insert(name.clone(), value);
    }
    if !reading.update && !is_reference(&given, reading) {
        for attribute in reading.kind.attributes() {
            if attribute.required && given.get(attribute.name).is_none_or(Value::is_null) {
                return Err(missing(attribute.name));
            }
        }
    }
    Ok(given)
}

fn is_reference(given: &Map<String, Value>, reading: Reading<'_>) -> bool {
    reading.nested && reading.kind == ObjectKind::Pool && given.keys().all(|name| name == "name")
}

fn known_attribute(reading: Reading<'_>, name: &str) -> Result<&'static Attribute, OctaviaFault> {
    reading
        .kind
        .attributes()
        .iter()
        .filter(|attribute| {
            attribute.since <= reading.minor && !matches!(attribute.check, ValueCheck::ReadOnly)
        })
        .find(|attribute| attribute.name == name && (attribute.in_put || !reading.update))
        .ok_or_else(|| OctaviaFault::UnknownAttribute {
            argument: reading.argument.to_owned(),
            attribute: name.to_owned(),
        })
}

/// Adds the defaults of everything that is stored and that this version has.
pub(crate) fn complete(kind: ObjectKind, given: &Map<String, Value>) -> Map<String, Value> {
    kind.attributes()
        .iter()
        .filter(|attribute| attribute.stored)
        .map(|attribute| {
            let value = given.get(attribute.name).cloned().unwrap_or_else(|| attribute.default_value());
            (attribute.name.to_owned(), value)
        })
        .collect()
}
