//! Reading an object as a Go server does: fields that are not known are dropped and reported, empty values that
//! carry no meaning disappear, fields that are always shown appear.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Field, Presence, Scalar, Schema};
use crate::clock;

/// A value that does not fit its field's type: the request is refused with 400.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecodeError(pub(crate) String);

/// Decodes a whole object of a kind. Paths of unknown fields are appended to `unknown` in the order of reading.
pub(crate) fn decode(
    schema: &Schema,
    value: &Value,
    minor: u8,
    unknown: &mut Vec<String>,
) -> Result<Value, DecodeError> {
    Decoder { minor, unknown }.value(schema, value, "")
}

struct Decoder<'a> {
    minor: u8,
    unknown: &'a mut Vec<String>,
}

impl Decoder<'_> {
    fn value(&mut self, schema: &Schema, value: &Value, path: &str) -> Result<Value, DecodeError> {
        match schema {
            Schema::Scalar(scalar) => single(*scalar, value, path),
            Schema::Anything => Ok(value.clone()),
            Schema::Map => map(value, path),
            Schema::List(item, _) => self.list(item, value, path),
            Schema::Object(fields) | Schema::AtomicObject(fields) => self.object(fields, value, path),
        }
    }

    fn list(&mut self, item: &Schema, value: &Value, path: &str) -> Result<Value, DecodeError> {
        let Value::Array(items) = value else { return Err(mismatch(value, path, "[]")) };
        let items: Result<Vec<Value>, DecodeError> = items
            .iter()
            .enumerate()
            .map(|(index, entry)| match entry {
                Value::Null => Ok(empty(item, self.minor)),
                _ => self.value(item, entry, &format!("{path}[{index}]")),
            })
            .collect();
        Ok(Value::Array(items?))
    }

    fn object(&mut self, fields: &[Field], value: &Value, path: &str) -> Result<Value, DecodeError> {
        let Value::Object(given) = value else { return Err(mismatch(value, path, "object")) };
        let minor = self.minor;
        let known = |name: &str| fields.iter().find(|field| field.name == name && field.since <= minor);
        let unknown: Vec<String> =
            given.keys().filter(|name| known(name).is_none()).map(|name| join(path, name)).collect();
        let mut decoded = Map::new();
        for field in fields.iter().filter(|field| field.since <= minor) {
            let value = given.get(&field.name).filter(|value| !value.is_null());
            let value = match value {
                Some(value) => Some(self.value(&field.schema, value, &join(path, &field.name))?),
                None => None,
            };
            if let Some(value) = present(field, value, minor) {
                decoded.insert(field.name.clone(), value);
            }
        }
        self.unknown.extend(unknown);
        Ok(Value::Object(decoded))
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// What is shown of a field that has this value.
fn present(field: &Field, value: Option<Value>, minor: u8) -> Option<Value> {
    match (field.presence, value) {
        (Presence::Optional, Some(value)) if is_empty(&field.schema, &value) => None,
        (Presence::Optional | Presence::Pointer, value) => value,
        (Presence::Always, value) => Some(value.unwrap_or_else(|| empty(&field.schema, minor))),
    }
}

/// Whether a value says the same as an absent one. Objects are kept: `{}` of an optional struct differs from none.
fn is_empty(schema: &Schema, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => *schema == Schema::Map && fields.is_empty(),
    }
}

/// The value of a field that was never set but is always shown.
fn empty(schema: &Schema, minor: u8) -> Value {
    match schema {
        Schema::Scalar(Scalar::Text) => "".into(),
        Schema::Scalar(Scalar::Integer | Scalar::IntegerOrText) => 0.into(),
        Schema::Scalar(Scalar::Flag) => false.into(),
        Schema::Scalar(Scalar::Time | Scalar::MicroTime) | Schema::Anything | Schema::List(..) => Value::Null,
        Schema::Map => Value::Object(Map::new()),
        Schema::Object(fields) | Schema::AtomicObject(fields) => fields
            .iter()
            .filter(|field| field.since <= minor)
            .filter_map(|field| Some((field.name.clone(), present(field, None, minor)?)))
            .collect::<Map<String, Value>>()
            .into(),
    }
}

fn map(value: &Value, path: &str) -> Result<Value, DecodeError> {
    let Value::Object(entries) = value else { return Err(mismatch(value, path, "map[string]string")) };
    let mut decoded = Map::new();
    for (key, entry) in entries {
        match entry {
            Value::Null => decoded.insert(key.clone(), "".into()),
            Value::String(_) => decoded.insert(key.clone(), entry.clone()),
            other => return Err(mismatch(other, path, "string")),
        };
    }
    Ok(Value::Object(decoded))
}

fn single(scalar: Scalar, value: &Value, path: &str) -> Result<Value, DecodeError> {
    match (scalar, value) {
        (Scalar::Text | Scalar::IntegerOrText, Value::String(_)) | (Scalar::Flag, Value::Bool(_)) => {
            Ok(value.clone())
        }
        (Scalar::Integer | Scalar::IntegerOrText, Value::Number(number)) if number.is_i64() => {
            Ok(value.clone())
        }
        (Scalar::Time, Value::String(text)) => time(text),
        (Scalar::MicroTime, Value::String(text)) => micro_time(text),
        (Scalar::Text | Scalar::Time | Scalar::MicroTime, _) => Err(mismatch(value, path, "string")),
        (Scalar::Flag, _) => Err(mismatch(value, path, "bool")),
        (Scalar::Integer, _) => Err(mismatch(value, path, "int32")),
        (Scalar::IntegerOrText, _) => Err(mismatch(value, path, "intstr.IntOrString")),
    }
}

fn time(text: &str) -> Result<Value, DecodeError> {
    let parsed: Timestamp =
        text.parse().map_err(|_| cannot_parse(text, "2006-01-02T15:04:05Z07:00", text, "2006"))?;
    Ok(clock::seconds(parsed).into())
}

/// Go's layout `.000000` asks for exactly six digits; fewer are refused, not filled up.
fn micro_time(text: &str) -> Result<Value, DecodeError> {
    const LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
    let parsed: Timestamp = text.parse().map_err(|_| cannot_parse(text, LAYOUT, text, "2006"))?;
    let after_seconds = text.get(19..).unwrap_or_default();
    let digits = after_seconds
        .strip_prefix('.')
        .map_or(0, |fraction| fraction.bytes().take_while(u8::is_ascii_digit).count());
    if digits != 6 {
        return Err(cannot_parse(text, LAYOUT, after_seconds, ".000000"));
    }
    Ok(clock::microseconds(parsed).into())
}

fn cannot_parse(text: &str, layout: &str, rest: &str, element: &str) -> DecodeError {
    DecodeError(format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{rest}\" as \"{element}\""))
}

fn mismatch(value: &Value, path: &str, wanted: &str) -> DecodeError {
    let given = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    DecodeError(format!("json: cannot unmarshal {given} into Go struct field {path} of type {wanted}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::schema::parse;

    fn read(schema: &str, value: &Value) -> (Result<Value, DecodeError>, Vec<String>) {
        let mut unknown = Vec::new();
        let decoded = decode(&parse(schema).unwrap(), value, 28, &mut unknown);
        (decoded, unknown)
    }

    #[test]
    fn empty_values_vanish_and_required_ones_appear() {
        let (decoded, unknown) =
            read("a b* list[] must! when!:time in!{x y!:int}", &json!({"a": "", "b": "", "list": []}));
        assert_eq!(decoded.unwrap(), json!({"b": "", "must": "", "when": null, "in": {"y": 0}}));
        assert!(unknown.is_empty());
    }

    #[test]
    fn fields_of_later_releases_and_unheard_of_ones_are_dropped_and_named() {
        let (decoded, unknown) =
            read("list[]{ip mode*@29}", &json!({"list": [{"ip": "x", "mode": "y", "other": 1}], "z": 1}));
        assert_eq!(decoded.unwrap(), json!({"list": [{"ip": "x"}]}));
        assert_eq!(unknown, ["list[0].mode", "list[0].other", "z"]);
    }

    /// Any JSON of a few fields that the kinds below know, and some that they do not.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3_i64).prop_map(Value::from),
            "[a-z]{0,2}".prop_map(Value::from),
        ];
        let name =
            prop_oneof!["metadata", "spec", "status", "ports", "port", "ingress", "loadBalancer", "ip", "x"];
        leaf.prop_recursive(5, 64, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map(name.clone(), inner, 0..5)
                    .prop_map(|fields| fields.into_iter().collect::<Map<String, Value>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_was_decoded_decodes_to_itself(value in any_json()) {
            for resource in crate::kinds::all() {
                let Ok(once) = decode(&resource.schema, &value, 36, &mut Vec::new()) else { continue };
                let mut unknown = Vec::new();
                let twice = decode(&resource.schema, &once, 36, &mut unknown).unwrap();
                prop_assert_eq!(&twice, &once);
                prop_assert!(unknown.is_empty());
            }
        }
    }

    #[test]
    fn a_micro_time_needs_its_six_digits() {
        let (decoded, _) = read("t*:microtime", &json!({"t": "2026-01-01T00:00:00Z"}));
        assert_eq!(
            decoded.unwrap_err().0,
            "parsing time \"2026-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": \
             cannot parse \"Z\" as \".000000\""
        );
        let (decoded, _) = read("t*:microtime", &json!({"t": "2026-01-01T01:00:00.000001+01:00"}));
        assert_eq!(decoded.unwrap(), json!({"t": "2026-01-01T00:00:00.000001Z"}));
    }
}
