//! Checking single values: types, ranges, names, formats. The messages are Octavia's.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use super::schema::{Attribute, Reading, ValueCheck, read_object};

/// A value that must be there.
pub(crate) fn missing(name: &str) -> OctaviaFault {
    invalid(name, &Value::Null, "Mandatory field missing.")
}

/// A value that is not acceptable.
pub(crate) fn invalid(name: &str, value: &Value, reason: impl Into<String>) -> OctaviaFault {
    OctaviaFault::InvalidInput { attribute: name.to_owned(), value: value.clone(), reason: reason.into() }
}

/// Checks a value and brings it into the form in which it is kept.
pub(crate) fn check_value(
    attribute: &Attribute,
    value: &Value,
    reading: Reading<'_>,
) -> Result<Value, OctaviaFault> {
    let name = attribute.name;
    match attribute.check {
        ValueCheck::Text { max } => check_text(name, value, max),
        ValueCheck::Texts => list_of(name, value, Value::is_string, "Value should be a list of text"),
        ValueCheck::Tags => check_tags(name, value),
        ValueCheck::Flag => check_flag(value),
        ValueCheck::Integer { min, max } => check_integer(name, value, min, max),
        ValueCheck::HttpVersion => match value.as_f64() {
            Some(version) if version == 1.0 || version == 1.1 => Ok(json!(version)),
            _ => Err(invalid(name, value, "Value should be one of: 1.0, 1.1")),
        },
        ValueCheck::Uuid => match value.as_str() {
            Some(text) if Uuid::parse_str(text).is_ok() => Ok(value.clone()),
            _ => Err(invalid(name, value, "Value should be UUID format")),
        },
        ValueCheck::Uuids => {
            let is_uuid = |item: &Value| item.as_str().is_some_and(|text| Uuid::parse_str(text).is_ok());
            list_of(name, value, is_uuid, "Value should be UUID format")
        }
        ValueCheck::Address => match value.as_str() {
            Some(text) if text.parse::<IpAddr>().is_ok() => Ok(value.clone()),
            _ => Err(invalid(name, value, "Value should be IPv4 or IPv6 format")),
        },
        ValueCheck::Cidrs => {
            let is_cidr = |item: &Value| item.as_str().is_some_and(|text| text.parse::<IpNet>().is_ok());
            let cidrs = list_of(name, value, is_cidr, "Value should be IPv4 or IPv6 CIDR format")?;
            Ok(if cidrs.as_array().is_some_and(Vec::is_empty) { Value::Null } else { cidrs })
        }
        ValueCheck::OneOf(names) => check_one_of(name, value, names, reading.minor),
        ValueCheck::Headers => match value {
            Value::Object(_) => Ok(value.clone()),
            _ => Err(invalid(name, value, "Value should be an object")),
        },
        ValueCheck::SessionPersistence => check_session_persistence(value),
        ValueCheck::AdditionalVips => {
            list_of(name, value, Value::is_object, "Value should be a list of objects")
        }
        ValueCheck::Nested(kind) => {
            let items = value.as_array().ok_or_else(|| invalid(name, value, "Value should be a list"))?;
            items.iter().map(|item| check_nested(item, kind, name, reading)).collect()
        }
        ValueCheck::NestedOne(kind) => check_nested(value, kind, name, reading),
        ValueCheck::ReadOnly => Err(invalid(name, value, "Cannot set read only field.")),
    }
}

fn check_nested(
    item: &Value,
    kind: ObjectKind,
    name: &str,
    reading: Reading<'_>,
) -> Result<Value, OctaviaFault> {
    let argument = format!("{}.{name}", reading.argument);
    let inner = Reading { kind, argument: &argument, nested: true, ..reading };
    read_object(item, inner).map(Value::Object)
}

fn check_text(name: &str, value: &Value, max: usize) -> Result<Value, OctaviaFault> {
    match value.as_str() {
        Some(text) if text.chars().count() <= max => Ok(value.clone()),
        Some(_) => {
            Err(invalid(name, value, format!("Value should have a maximum character requirement of {max}")))
        }
        None => Err(invalid(name, value, "Value should be string")),
    }
}

fn check_tags(name: &str, value: &Value) -> Result<Value, OctaviaFault> {
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

fn check_flag(value: &Value) -> Result<Value, OctaviaFault> {
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

fn check_integer(name: &str, value: &Value, min: i64, max: i64) -> Result<Value, OctaviaFault> {
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

fn check_one_of(name: &str, value: &Value, names: &[(&str, u8)], minor: u8) -> Result<Value, OctaviaFault> {
    let known: Vec<&str> = names.iter().filter(|(_, since)| *since <= minor).map(|(name, _)| *name).collect();
    match value.as_str() {
        Some(text) if known.contains(&text) => Ok(value.clone()),
        _ => Err(invalid(name, value, format!("Value should be one of: {}", known.join(", ")))),
    }
}

fn check_session_persistence(value: &Value) -> Result<Value, OctaviaFault> {
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

fn list_of(
    name: &str,
    value: &Value,
    holds: impl Fn(&Value) -> bool,
    reason: &str,
) -> Result<Value, OctaviaFault> {
    match value.as_array() {
        Some(items) if items.iter().all(holds) => Ok(value.clone()),
        _ => Err(invalid(name, value, reason)),
    }
}
