//! What the controller found out about the API server, against what the server really does.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::steps::{Reach, clients_inside, green, published_through};
use crate::kubernetes::api::{Kubernetes, NAMESPACE};
use crate::machine::wait::soon;
use crate::stage::Stage;

/// A Service that no controller serves, to ask the server with.
const QUESTION: &str = "question";

/// Whether the server keeps `ipMode`, found out on a Service that the controller does not touch: one real write, where the
/// controller uses a dry run.
pub(crate) fn server_keeps(api: &Kubernetes) -> Result<bool> {
    let object = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": QUESTION},
        "spec": {"type": "LoadBalancer", "loadBalancerClass": "e2e.test/none", "ports": [{"port": 80}]},
    });
    api.create(&format!("/api/v1/namespaces/{NAMESPACE}/services"), &object)?;
    let kept = api.write_ingress(QUESTION, &json!([{"ip": "192.0.2.1", "ipMode": "Proxy"}]));
    api.delete(&Kubernetes::service_path(QUESTION))?;
    Ok(kept?[0]["ipMode"] == "Proxy")
}

/// The verdict of the controller is the truth.
pub(crate) fn verdict_is_right(stage: &Stage, service: &str) -> Result<String> {
    let truth = if server_keeps(&stage.api()?)? { "keeps" } else { "drops" };
    let cluster = stage.cluster.as_ref().context("no cluster runs")?;
    let controller = cluster.controller.as_ref().context("no controller runs")?;
    soon(&format!("the controller knows that the server {truth} ipMode"), || {
        let lines = controller.metrics("openstack_ccm_ip_mode_server_support")?;
        let wanted = format!("support=\"{truth}\"}} 1");
        ensure!(lines.iter().any(|line| line.ends_with(&wanted)), "it says {}", lines.join(", "));
        Ok(())
    })?;
    let published = controller.metrics("openstack_ccm_services_published")?;
    let published: Vec<&str> =
        published.iter().filter(|line| !line.ends_with(" 0")).map(String::as_str).collect();
    let events = stage.api()?.events(service)?;
    let (reason, note) = events.last().context("there is no event about the Service")?;
    Ok(format!(
        "the server {truth} ipMode and the controller knows; {}; event {reason}: {note}",
        published.join(", ")
    ))
}

/// The Service is published with `ipMode: Proxy`, everybody inside reaches it, and the verdict is right.
pub(crate) fn by_ip(stage: &Stage, service: &str, reach: Reach) -> Result<String> {
    let address = published_through(&stage.api()?, service)?;
    let seen = green(&address, &clients_inside(stage, reach))?;
    Ok(format!("{address} ipMode Proxy, {seen}; {}", verdict_is_right(stage, service)?))
}
