//! Bodies of requests.

use serde_json::Value;

use crate::failure::Failure;
use crate::go_text;
use crate::patch::PatchKind;
use crate::protobuf;

/// Content type of Kubernetes' protobuf form.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// A whole object: JSON, or YAML where the content type says so. Protobuf is read where it is one of the kinds
/// that `kubectl create` sends so, and refused else.
pub(crate) fn parse(content_type: &str, body: &[u8]) -> Result<Value, Failure> {
    let text = String::from_utf8_lossy(body);
    match media_type(content_type) {
        "" | "application/json" => serde_json::from_str(&text).map_err(|_| {
            let complaint = go_text::json_complaint(text.as_bytes()).unwrap_or_default();
            Failure::bad_request(format!("error when decoding the body: {complaint}"))
        }),
        "application/yaml" => from_yaml(&text),
        PROTOBUF => protobuf::parse(body).ok_or_else(Failure::unsupported_media_type),
        _ => Err(Failure::unsupported_media_type()),
    }
}

/// A patch: JSON, or YAML for server-side apply.
pub(crate) fn parse_patch(kind: PatchKind, body: &[u8]) -> Result<Value, Failure> {
    let text = String::from_utf8_lossy(body);
    match kind {
        PatchKind::Json | PatchKind::Merge | PatchKind::Strategic => {
            serde_json::from_str(&text).map_err(|_| {
                let complaint = go_text::json_complaint(text.as_bytes()).unwrap_or_default();
                Failure::bad_request(format!("error decoding patch: {complaint}"))
            })
        }
        PatchKind::Apply => from_yaml(&text),
    }
}

/// JSON is YAML, and parsed as such when it is one.
fn from_yaml(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text)
        .ok()
        .or_else(|| serde_saphyr::from_str(text).ok())
        .ok_or_else(|| Failure::bad_request("error decoding YAML: the body is no YAML document"))
}
