//! Bodies of requests.

use serde_json::Value;

use crate::failure::Failure;
use crate::go_text;
use crate::protobuf;

/// Content type of Kubernetes' protobuf form.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// A whole object. Protobuf is read where it is one of the kinds that `kubectl create` sends so, and refused else.
pub(crate) fn parse(content_type: &str, body: &[u8]) -> Result<Value, Failure> {
    match media_type(content_type) {
        "" | "application/json" => json_of(body, "error when decoding the body"),
        PROTOBUF => protobuf::parse(body).ok_or_else(Failure::unsupported_media_type),
        _ => Err(Failure::unsupported_media_type()),
    }
}

pub(crate) fn parse_patch(body: &[u8]) -> Result<Value, Failure> {
    json_of(body, "error decoding patch")
}

fn json_of(body: &[u8], refusal: &str) -> Result<Value, Failure> {
    let text = String::from_utf8_lossy(body);
    serde_json::from_str(&text).map_err(|_| {
        let complaint = go_text::json_complaint(text.as_bytes()).unwrap_or_default();
        Failure::bad_request(format!("{refusal}: {complaint}"))
    })
}
