//! Kinds with few rules of their own: ConfigMap, Lease, Pod, ServiceAccount, and those that are only kept.

use serde_json::Value;

use super::{Rules, Write};
use crate::failure::FieldError;
use crate::object::{integer, text};
use crate::version::ApiVersion;

pub(super) const CONFIG_MAP: &str = "immutable*:flag data:map binaryData:map";
pub(super) const SECRET: &str = "immutable*:flag type data:map";
pub(super) const SERVICE_ACCOUNT: &str = "secrets[name]{kind namespace name uid apiVersion resourceVersion \
    fieldPath} imagePullSecrets[]{name} automountServiceAccountToken*:flag";
pub(super) const LEASE: &str = "spec!{holderIdentity* leaseDurationSeconds*:int acquireTime:microtime \
    renewTime:microtime leaseTransitions*:int strategy*@31 preferredHolder*@31}";
/// Pods are kept as they are given: nothing here runs them.
pub(super) const POD: &str = "spec:any status:any";

/// Kinds that nothing here acts on are kept as they are given.
pub(super) const KEPT: &str = "spec:any status:any";
pub(super) const ENDPOINT_SLICE: &str = "addressType! endpoints:any ports:any";

/// No rules: what is written is what is read.
pub(super) struct Kept;

impl Rules for Kept {}

pub(super) struct ConfigMap;

impl Rules for ConfigMap {
    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        write.old.map(|old| immutable_problems(write.new, old, &["data", "binaryData"])).unwrap_or_default()
    }
}

/// Problems of an update to an object that declares itself immutable.
fn immutable_problems(new: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    if old["immutable"] != true {
        return Vec::new();
    }
    let rule = "field is immutable when `immutable` is set";
    let mut problems = Vec::new();
    if new["immutable"] != true {
        problems.push(FieldError::forbidden("immutable", rule));
    }
    let changed = fields.iter().filter(|field| new.get(**field) != old.get(**field));
    problems.extend(changed.map(|field| FieldError::forbidden(*field, rule)));
    problems
}

pub(super) struct ServiceAccount;

impl Rules for ServiceAccount {
    fn returns_deleted_object(&self) -> bool {
        true
    }
}

pub(super) struct Pod;

impl Rules for Pod {
    fn set_defaults(&self, object: &mut Value, _version: ApiVersion) {
        if text(object, "/status/phase").is_empty() {
            crate::object::section(object, "status").insert("phase".to_owned(), "Pending".into());
        }
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn selectable_fields(&self, _version: ApiVersion) -> &'static [(&'static str, &'static str)] {
        &[
            ("spec.nodeName", "/spec/nodeName"),
            ("status.phase", "/status/phase"),
            ("status.podIP", "/status/podIP"),
        ]
    }
}

pub(super) struct Lease;

impl Rules for Lease {
    fn creates_on_update(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let new = write.new;
        let mut problems = Vec::new();
        let duration = &new["spec"]["leaseDurationSeconds"];
        if !duration.is_null() && integer(new, "/spec/leaseDurationSeconds") <= 0 {
            problems.push(FieldError::invalid(
                "spec.leaseDurationSeconds",
                duration,
                "must be greater than 0",
            ));
        }
        let transitions = &new["spec"]["leaseTransitions"];
        if integer(new, "/spec/leaseTransitions") < 0 {
            let rule = "must be greater than or equal to 0";
            problems.push(FieldError::invalid("spec.leaseTransitions", transitions, rule));
        }
        problems
    }
}
