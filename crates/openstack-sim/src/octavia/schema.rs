//! Reading bodies: unknown attributes, wrong values, missing values and defaults, for one API version.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::fault::Fault;
use super::kind::Kind;
use crate::request::Request;

/// One attribute of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attribute {
    /// The name on the wire.
    pub(crate) name: &'static str,
    check: Check,
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
pub(crate) enum Check {
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
    Nested(Kind),
    NestedOne(Kind),
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
pub(crate) const fn attribute(name: &'static str, check: Check, initial: Initial) -> Attribute {
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
    pub(crate) kind: Kind,
    /// The API version 2.x.
    pub(crate) minor: u8,
    pub(crate) update: bool,
    /// The argument's name and the way to the object, for messages about unknown attributes.
    pub(crate) argument: &'a str,
    /// A nested pool may be only a name that refers to another.
    pub(crate) nested: bool,
}

/// The object under its root key in the request's body, checked; no defaults are filled in.
pub(crate) fn read_body(request: &Request, kind: Kind, minor: u8) -> Result<Map<String, Value>, Fault> {
    let body = parse(request)?;
    let object = root_object(&body, kind.argument(), kind.root())?;
    let update = request.method == http::Method::PUT;
    let argument = format!("{}.{}", kind.argument(), kind.root());
    let reading = Reading { kind, minor, update, argument: &argument, nested: false };
    read_object(object, reading).map_err(|fault| name_whole_body(fault, kind.argument(), &body))
}

/// The body as JSON.
pub(crate) fn parse(request: &Request) -> Result<Value, Fault> {
    request.json().ok_or_else(|| Fault::BadRequest("Request is not in valid JSON format".to_owned()))
}

/// The one value that a body may have.
pub(crate) fn root_object<'a>(body: &'a Value, argument: &str, root: &str) -> Result<&'a Value, Fault> {
    if let Some(unknown) = body.as_object().and_then(|keys| keys.keys().find(|key| *key != root)) {
        return Err(Fault::UnknownAttribute { argument: argument.to_owned(), attribute: unknown.clone() });
    }
    body.get(root).ok_or_else(|| missing(root))
}

/// Octavia cannot say which attribute had a bad Boolean: it shows the whole body.
pub(crate) fn name_whole_body(fault: Fault, argument: &str, body: &Value) -> Fault {
    match fault {
        Fault::InvalidInput { attribute, value: _, reason } if attribute.is_empty() => {
            Fault::InvalidInput { attribute: argument.to_owned(), value: body.clone(), reason }
        }
        other => other,
    }
}

/// Checks one object; what is given and known comes back, with null meaning the default.
pub(crate) fn read_object(object: &Value, reading: Reading<'_>) -> Result<Map<String, Value>, Fault> {
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
    reading.nested && reading.kind == Kind::Pool && given.keys().all(|name| name == "name")
}

fn known_attribute(reading: Reading<'_>, name: &str) -> Result<&'static Attribute, Fault> {
    reading
        .kind
        .attributes()
        .iter()
        .filter(|attribute| attribute.since <= reading.minor && !matches!(attribute.check, Check::ReadOnly))
        .find(|attribute| attribute.name == name && (attribute.in_put || !reading.update))
        .ok_or_else(|| Fault::UnknownAttribute {
            argument: reading.argument.to_owned(),
            attribute: name.to_owned(),
        })
}

/// Adds the defaults of everything that is stored and that this version has.
pub(crate) fn complete(kind: Kind, given: &Map<String, Value>) -> Map<String, Value> {
    kind.attributes()
        .iter()
        .filter(|attribute| attribute.stored)
        .map(|attribute| {
            let value = given.get(attribute.name).cloned().unwrap_or_else(|| attribute.default_value());
            (attribute.name.to_owned(), value)
        })
        .collect()
}

fn missing(name: &str) -> Fault {
    invalid(name, &Value::Null, "Mandatory field missing.")
}

fn invalid(name: &str, value: &Value, reason: impl Into<String>) -> Fault {
    Fault::InvalidInput { attribute: name.to_owned(), value: value.clone(), reason: reason.into() }
}

fn check_value(attribute: &Attribute, value: &Value, reading: Reading<'_>) -> Result<Value, Fault> {
    let name = attribute.name;
    match attribute.check {
        Check::Text { max } => check_text(name, value, max),
        Check::Texts => list_of(name, value, |item| item.is_string(), "Value should be a list of text"),
        Check::Tags => check_tags(name, value),
        Check::Flag => check_flag(value),
        Check::Integer { min, max } => check_integer(name, value, min, max),
        Check::HttpVersion => match value.as_f64() {
            Some(version) if version == 1.0 || version == 1.1 => Ok(json!(version)),
            _ => Err(invalid(name, value, "Value should be one of: 1.0, 1.1")),
        },
        Check::Uuid => match value.as_str() {
            Some(text) if Uuid::parse_str(text).is_ok() => Ok(value.clone()),
            _ => Err(invalid(name, value, "Value should be UUID format")),
        },
        Check::Uuids => {
            let is_uuid = |item: &Value| item.as_str().is_some_and(|text| Uuid::parse_str(text).is_ok());
            list_of(name, value, is_uuid, "Value should be UUID format")
        }
        Check::Address => match value.as_str() {
            Some(text) if text.parse::<IpAddr>().is_ok() => Ok(value.clone()),
            _ => Err(invalid(name, value, "Value should be IPv4 or IPv6 format")),
        },
        Check::Cidrs => {
            let is_cidr = |item: &Value| item.as_str().is_some_and(|text| text.parse::<IpNet>().is_ok());
            let cidrs = list_of(name, value, is_cidr, "Value should be IPv4 or IPv6 CIDR format")?;
            Ok(if cidrs.as_array().is_some_and(Vec::is_empty) { Value::Null } else { cidrs })
        }
        Check::OneOf(names) => check_one_of(name, value, names, reading.minor),
        Check::Headers => match value {
            Value::Object(_) => Ok(value.clone()),
            _ => Err(invalid(name, value, "Value should be an object")),
        },
        Check::SessionPersistence => check_session_persistence(value),
        Check::AdditionalVips => list_of(name, value, Value::is_object, "Value should be a list of objects"),
        Check::Nested(kind) => {
            let items = value.as_array().ok_or_else(|| invalid(name, value, "Value should be a list"))?;
            items.iter().map(|item| check_nested(item, kind, name, reading)).collect()
        }
        Check::NestedOne(kind) => check_nested(value, kind, name, reading),
        Check::ReadOnly => Err(invalid(name, value, "Cannot set read only field.")),
    }
}

fn check_nested(item: &Value, kind: Kind, name: &str, reading: Reading<'_>) -> Result<Value, Fault> {
    let argument = format!("{}.{name}", reading.argument);
    let inner = Reading { kind, argument: &argument, nested: true, ..reading };
    read_object(item, inner).map(Value::Object)
}

fn check_text(name: &str, value: &Value, max: usize) -> Result<Value, Fault> {
    match value.as_str() {
        Some(text) if text.chars().count() <= max => Ok(value.clone()),
        Some(_) => {
            Err(invalid(name, value, format!("Value should have a maximum character requirement of {max}")))
        }
        None => Err(invalid(name, value, "Value should be string")),
    }
}

fn check_tags(name: &str, value: &Value) -> Result<Value, Fault> {
    let tags = list_of(name, value, Value::is_string, "Value should be a list of text")?;
    let mut tags: Vec<String> =
        tags.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    if tags.iter().any(|tag| tag.chars().count() > 255) {
        return Err(invalid(name, value, "Value should have a maximum character requirement of 255"));
    }
    tags.sort();
    tags.dedup();
    Ok(json!(tags))
}

fn check_flag(value: &Value) -> Result<Value, Fault> {
    let text = match value {
        Value::Bool(flag) => return Ok(json!(flag)),
        other => crate::python_repr::python_str(other),
    };
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Ok(json!(true)),
        "false" | "f" | "no" | "n" | "off" | "0" => Ok(json!(false)),
        _ => Err(invalid("", value, format!("Value not an unambiguous boolean: {text}"))),
    }
}

fn check_integer(name: &str, value: &Value, min: i64, max: i64) -> Result<Value, Fault> {
    let number = value.as_i64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    match number {
        Some(number) if number < min => {
            Err(invalid(name, value, format!("Value should be greater or equal to {min}")))
        }
        Some(number) if number > max => {
            Err(invalid(name, value, format!("Value should be lower or equal to {max}")))
        }
        Some(number) => Ok(json!(number)),
        None => Err(invalid(name, value, "Wrong type. Expected an integer.")),
    }
}

fn check_one_of(name: &str, value: &Value, names: &[(&str, u8)], minor: u8) -> Result<Value, Fault> {
    let known: Vec<&str> = names.iter().filter(|(_, since)| *since <= minor).map(|(name, _)| *name).collect();
    match value.as_str() {
        Some(text) if known.contains(&text) => Ok(value.clone()),
        _ => Err(invalid(name, value, format!("Value should be one of: {}", known.join(", ")))),
    }
}

fn check_session_persistence(value: &Value) -> Result<Value, Fault> {
    const TYPES: &[(&str, u8)] = &[("SOURCE_IP", 0), ("HTTP_COOKIE", 0), ("APP_COOKIE", 0)];
    let kind = value.get("type").cloned().ok_or_else(|| missing("type"))?;
    check_one_of("type", &kind, TYPES, 0)?;
    let field = |name: &str| value.get(name).cloned().unwrap_or_default();
    Ok(json!({
        "type": kind,
        "cookie_name": field("cookie_name"),
        "persistence_timeout": field("persistence_timeout"),
        "persistence_granularity": field("persistence_granularity"),
    }))
}

fn list_of(name: &str, value: &Value, holds: impl Fn(&Value) -> bool, reason: &str) -> Result<Value, Fault> {
    match value.as_array() {
        Some(items) if items.iter().all(holds) => Ok(value.clone()),
        _ => Err(invalid(name, value, reason)),
    }
}
