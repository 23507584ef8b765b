//! Accessors for the fields of a Service that this program reads. Pure.

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service, ServiceSpec};
use kube::api::ObjectMeta;
use openstack_ccm_core::service::ServiceKey;
use serde_json::Value;

use crate::names::PROGRAM;

/// Returns the published entries, unchanged.
pub(crate) fn ingress(service: &Service) -> &[LoadBalancerIngress] {
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    status.and_then(|status| status.ingress.as_deref()).unwrap_or_default()
}

/// Returns the namespace and name of a Service.
pub(crate) fn key(service: &Service) -> ServiceKey {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    ServiceKey::new(part(&service.metadata.namespace), part(&service.metadata.name))
}

/// Returns whether the Service is of type LoadBalancer and not being deleted.
pub(crate) fn is_load_balancer(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
        && service.metadata.deletion_timestamp.is_none()
}

/// Returns whether this program wrote the published entries last: the list is atomic, so its last writer is noted as its manager.
pub(crate) fn is_ours(service: &Service) -> bool {
    let owns = |fields: &Value| fields.pointer("/f:status/f:loadBalancer/f:ingress").is_some();
    service.metadata.managed_fields.iter().flatten().any(|entry| {
        entry.manager.as_deref() == Some(PROGRAM)
            && entry.fields_v1.as_ref().is_some_and(|fields| owns(&fields.0))
    })
}

/// Drops the fields of a listed Service that are not read again: most Services of a cluster have no load balancer.
pub(crate) fn trim(service: &mut Service) {
    let metadata = std::mem::take(&mut service.metadata);
    let spec = service.spec.take().unwrap_or_default();
    let is_load_balancer = spec.type_.as_deref() == Some("LoadBalancer");
    service.metadata = ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        deletion_timestamp: metadata.deletion_timestamp,
        ..ObjectMeta::default()
    };
    service.spec = Some(ServiceSpec {
        type_: spec.type_,
        load_balancer_class: spec.load_balancer_class,
        load_balancer_source_ranges: spec.load_balancer_source_ranges,
        ..ServiceSpec::default()
    });
    if !is_load_balancer {
        service.status = None;
        return;
    }
    service.metadata.labels = metadata.labels;
    service.metadata.annotations = metadata.annotations;
    service.metadata.managed_fields = metadata.managed_fields;
}

#[cfg(test)]
mod tests {
    use openstack_ccm_runtime::listed;
    use rstest::rstest;
    use serde_json::{from_value, json};

    use super::*;
    use crate::rules::Rules;

    #[rstest]
    #[case::ours(PROGRAM, json!({"f:status": {"f:loadBalancer": {"f:ingress": {}}}}), true)]
    #[case::anothers("cloud-controller-manager", json!({"f:status": {"f:loadBalancer": {"f:ingress": {}}}}), false)]
    #[case::another_field(PROGRAM, json!({"f:status": {"f:conditions": {}}}), false)]
    fn a_list_is_ours_when_the_server_notes_us_as_its_writer(
        #[case] manager: &str,
        #[case] fields: Value,
        #[case] expected: bool,
    ) {
        let entry =
            json!({"manager": manager, "operation": "Update", "subresource": "status", "fieldsV1": fields});
        let service = json!({
            "metadata": {"name": "a", "managedFields": [entry]}, "spec": {"type": "LoadBalancer"},
        });
        assert_eq!(is_ours(&from_value(service.clone()).unwrap()), expected);
        let reading = Rules::default().reading();
        let listed: listed::Service = reading.interest.within(|| from_value(service)).unwrap();
        let mut service = listed.into();
        trim(&mut service);
        assert_eq!(is_ours(&service), expected, "as it is listed too");
    }
}
