//! Tokens of service accounts.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::access::{Token, User};
use crate::clock::{later, seconds};
use crate::object::{list, name, namespace, text};
use crate::version::ApiVersion;

/// Seconds that a token is good for when the request names none.
const DEFAULT_LIFE: u64 = 3600;
/// The API server's own audience.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";

/// Where a user's `extra` says which token it was.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// Answers a `TokenRequest` for a service account: the answer, the token in it, and what is known about it.
pub(crate) fn issue(
    account: &Value,
    sent: &Value,
    now: Timestamp,
    version: ApiVersion,
) -> (Value, String, Token) {
    let life = sent.pointer("/spec/expirationSeconds").and_then(Value::as_u64).unwrap_or(DEFAULT_LIFE);
    let expires = seconds(later(now, Duration::from_secs(life)));
    let audiences = match list(sent, "/spec/audiences") {
        [] => vec![AUDIENCE.into()],
        given => given.to_vec(),
    };
    let (account_namespace, account_name) = (namespace(account), name(account));
    let identity = text(account, "/metadata/uid");
    let token = format!("simulated.{account_namespace}.{account_name}.{identity}.{expires}");
    let mut answer = json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": account_name, "namespace": account_namespace, "uid": identity,
            "creationTimestamp": seconds(now)},
        "spec": {"audiences": audiences, "expirationSeconds": life,
            "boundObjectRef": sent.pointer("/spec/boundObjectRef")},
        "status": {"token": token, "expirationTimestamp": expires},
    });
    if !version.omits_empty_times()
        && let Some(metadata) = answer["metadata"].as_object_mut()
    {
        metadata.remove("uid");
    }
    let mut user = User::service_account(account_namespace, account_name);
    user.uid = Some(identity.to_owned());
    if version.names_tokens() {
        let name = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, token.as_bytes());
        user.extra.insert(CREDENTIAL.to_owned(), vec![format!("JTI={name}")]);
    }
    let audiences = audiences.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    (answer, token, Token { user, audiences })
}
