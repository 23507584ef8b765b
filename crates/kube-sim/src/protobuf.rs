//! Objects in Kubernetes' protobuf form, which `kubectl create` sends for Services and Namespaces: four bytes, then a
//! `runtime.Unknown` with the kind and the message
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding>). Numbers and types of the fields are
//! those of `generated.proto` in k8s.io/api/core/v1, k8s.io/apimachinery/pkg/apis/meta/v1 and pkg/util/intstr (v0.36).
//!
//! Only what clients fill in when they create is known: no managed fields, no conditions. Answers are JSON, which such
//! clients accept as well.

use serde_json::{Map, Value, json};

/// What a body in this form begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The messages whose kinds can be read.
const KINDS: [(&str, Message); 2] = [("Service", SERVICE), ("Namespace", NAMESPACE)];

/// Number, name in JSON, and form of each field.
type Message = &'static [(u64, &'static str, Form)];

/// How a field is written, and how it stands in JSON. What is empty is left out, except behind a pointer.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Integer,
    /// A pointer to a bool: false counts.
    Flag,
    /// A bool.
    Switch,
    Message(Message),
    /// A pointer to a text.
    Pointer,
    Texts,
    Messages(Message),
    /// A map of texts.
    Texted,
    /// An integer, or a text.
    IntOrString,
}

const SERVICE: Message =
    &[(1, "metadata", Form::Message(METADATA)), (2, "spec", Form::Message(SERVICE_SPEC))];
const NAMESPACE: Message =
    &[(1, "metadata", Form::Message(METADATA)), (2, "spec", Form::Message(NAMESPACE_SPEC))];
const NAMESPACE_SPEC: Message = &[(1, "finalizers", Form::Texts)];
const METADATA: Message = &[
    (1, "name", Form::Text),
    (2, "generateName", Form::Text),
    (3, "namespace", Form::Text),
    (5, "uid", Form::Text),
    (6, "resourceVersion", Form::Text),
    (11, "labels", Form::Texted),
    (12, "annotations", Form::Texted),
    (14, "finalizers", Form::Texts),
];
const SERVICE_SPEC: Message = &[
    (1, "ports", Form::Messages(PORT)),
    (2, "selector", Form::Texted),
    (3, "clusterIP", Form::Text),
    (4, "type", Form::Text),
    (5, "externalIPs", Form::Texts),
    (7, "sessionAffinity", Form::Text),
    (8, "loadBalancerIP", Form::Text),
    (9, "loadBalancerSourceRanges", Form::Texts),
    (10, "externalName", Form::Text),
    (11, "externalTrafficPolicy", Form::Text),
    (12, "healthCheckNodePort", Form::Integer),
    (13, "publishNotReadyAddresses", Form::Switch),
    (14, "sessionAffinityConfig", Form::Message(&[(1, "clientIP", Form::Message(CLIENT_IP))])),
    (17, "ipFamilyPolicy", Form::Pointer),
    (18, "clusterIPs", Form::Texts),
    (19, "ipFamilies", Form::Texts),
    (20, "allocateLoadBalancerNodePorts", Form::Flag),
    (21, "loadBalancerClass", Form::Pointer),
    (22, "internalTrafficPolicy", Form::Pointer),
    (23, "trafficDistribution", Form::Pointer),
];
const CLIENT_IP: Message = &[(1, "timeoutSeconds", Form::Integer)];
const PORT: Message = &[
    (1, "name", Form::Text),
    (2, "protocol", Form::Text),
    (3, "port", Form::Integer),
    (4, "targetPort", Form::IntOrString),
    (5, "nodePort", Form::Integer),
    (6, "appProtocol", Form::Pointer),
];

/// Reads an object; absent where the body is not one, or is of a kind that is not known here.
pub(crate) fn parse(body: &[u8]) -> Option<Value> {
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), [].as_slice());
    for field in fields(body.strip_prefix(MAGIC)?)? {
        match field {
            (1, Wire::Bytes(meta)) => {
                for field in fields(meta)? {
                    match field {
                        (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
                        (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (_, message) = KINDS.into_iter().find(|(known, _)| *known == kind)?;
    let mut object = read(raw, message)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Some(object.into())
}

/// A value on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message with their numbers; absent where it is cut, or has fixed-size numbers, which no known one has.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Wire::Bytes(value)
            }
            _ => return None,
        };
        fields.push((tag >> 3, value));
    }
    Some(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// A message as JSON. Fields that are not known are passed over, as a server of another version does.
fn read(bytes: &[u8], message: Message) -> Option<Map<String, Value>> {
    let mut object = Map::new();
    for (number, wire) in fields(bytes)? {
        let Some((_, name, form)) = message.iter().find(|(known, ..)| *known == number) else { continue };
        set(&mut object, name, *form, &wire)?;
    }
    Some(object)
}

fn set(object: &mut Map<String, Value>, name: &str, form: Form, wire: &Wire<'_>) -> Option<()> {
    let value = match (form, wire) {
        (Form::Text, Wire::Bytes(bytes)) => {
            Some(text(bytes)?).filter(|text| !text.is_empty()).map(Value::from)
        }
        (Form::Pointer, Wire::Bytes(bytes)) => Some(text(bytes)?.into()),
        (Form::Integer, Wire::Number(number)) => {
            Some(signed(*number)).filter(|number| *number != 0).map(Value::from)
        }
        (Form::Flag, Wire::Number(number)) => Some((*number != 0).into()),
        (Form::Switch, Wire::Number(number)) => (*number != 0).then(|| true.into()),
        (Form::Message(message), Wire::Bytes(bytes)) => Some(read(bytes, message)?.into()),
        (Form::Texts, Wire::Bytes(bytes)) => return push(object, name, text(bytes)?.into()),
        (Form::Messages(message), Wire::Bytes(bytes)) => {
            return push(object, name, read(bytes, message)?.into());
        }
        (Form::Texted, Wire::Bytes(bytes)) => {
            let entry = read(bytes, &[(1, "key", Form::Pointer), (2, "value", Form::Pointer)])?;
            let part = |part: &str| entry.get(part).and_then(Value::as_str).unwrap_or_default();
            let map = object.entry(name).or_insert_with(|| json!({})).as_object_mut()?;
            map.insert(part("key").to_owned(), part("value").into());
            None
        }
        (Form::IntOrString, Wire::Bytes(bytes)) => {
            let parts = read(
                bytes,
                &[(1, "type", Form::Integer), (2, "int", Form::Integer), (3, "text", Form::Text)],
            )?;
            let is_text = parts.contains_key("type");
            let part = |part: &str| parts.get(part).cloned();
            Some(if is_text {
                part("text").unwrap_or_default()
            } else {
                part("int").unwrap_or_else(|| 0.into())
            })
        }
        _ => return None,
    };
    if let Some(value) = value {
        object.insert(name.to_owned(), value);
    }
    Some(())
}

fn push(object: &mut Map<String, Value>, name: &str, value: Value) -> Option<()> {
    object.entry(name).or_insert_with(|| json!([])).as_array_mut()?.push(value);
    Some(())
}

/// Negative numbers stand as their two's complement.
fn signed(number: u64) -> i64 {
    i64::from_ne_bytes(number.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What kubectl 1.32.4 sends for `kubectl create service loadbalancer web2 --tcp=80:8080`, as its log shows it.
    const CREATE_SERVICE: &str = "6b3873000a0d0a0276311207536572766963 65126f0a210a04776562321200 1a002200 2a003200380042005a0b0a03617070120477656232\
        12460a1b0a0738302d383038301203544350185022070800 10903f1a002800120b0a0361707012047765 62321a00220c4c6f616442616c616e6365723a0042005200\
        5a00600068001a020a001a002200";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn what_kubectl_sends_is_read() {
        assert_eq!(
            parse(&bytes(CREATE_SERVICE)),
            Some(json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "web2", "labels": {"app": "web2"}},
                "spec": {
                    "ports": [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}],
                    "selector": {"app": "web2"},
                    "type": "LoadBalancer",
                },
            }))
        );
    }

    #[test]
    fn what_is_cut_or_of_another_kind_is_not_read() {
        let whole = bytes(CREATE_SERVICE);
        assert!(
            (0..whole.len())
                .filter_map(|length| parse(&whole[..length]))
                .all(|object| object["kind"] == "Service")
        );
        assert_eq!(parse(&whole[..whole.len() - 9]), None);
        assert_eq!(parse(b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x00"), None);
        assert_eq!(parse(b"{}"), None);
    }
}
