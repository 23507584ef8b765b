//! What users and operators say about `ipMode` themselves: the annotation and the feature gate.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::steps::{self, Reach, clients_inside, green, red};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::machine::wait::soon;
use crate::network::NODES;
use crate::stage::Stage;

const SERVICE: &str = "chosen";
const SCENARIO: &str = "5 choice";
const ANNOTATION: &str = "loadbalancer.openstack.org/ip-mode";

/// The whole scenario on a cluster that honours `ipMode`.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let networks = stage.cloud.networks.clone();
    stage.stop_controller()?;
    stage.cluster()?.launch.load_balancer_settings(&networks, "")?;
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, "v1", true).create(&api, &[NODES[0], NODES[1]])?;
    stage.start_controller()?;
    stage.check(SCENARIO, "annotation ip-mode: vip", |stage| {
        annotate(&api, json!("vip"))?;
        let address = published_as(&api, Some("VIP"))?;
        Ok(format!(
            "VIP published, pods take the short circuit as asked: {}",
            red(stage, &address, &clients(stage))?
        ))
    });
    stage.check(SCENARIO, "annotation ip-mode: auto", |stage| {
        annotate(&api, json!("auto"))?;
        proxied(stage, &api)
    });
    stage.check(SCENARIO, "annotation ip-mode: proxy", |stage| {
        annotate(&api, json!("vip"))?;
        published_as(&api, Some("VIP"))?;
        annotate(&api, json!("proxy"))?;
        proxied(stage, &api)
    });
    restart(stage, &["--feature-gates=LoadBalancerIPMode=false"])?;
    stage.check(SCENARIO, "gate flag false, no hostname to be had", |stage| {
        annotate(&api, Value::Null)?;
        let address = soon("a plain address is published", || {
            let ingress = api.ingress(SERVICE)?;
            // The server adds its default to an entry without a mode.
            ensure!(ingress[0]["ipMode"] == "VIP" && ingress[0]["hostname"].is_null(), "{ingress}");
            Ok(ingress[0]["ip"].as_str().context("no ip")?.to_owned())
        })?;
        let note = warning(&api)?;
        Ok(format!("plain address, RED as it must be: {}; {note}", red(stage, &address, &clients(stage))?))
    });
    restart(stage, &["--feature-gates=LoadBalancerIPMode=true"])?;
    stage.check(SCENARIO, "gate flag true", |stage| {
        annotate(&api, Value::Null)?;
        proxied(stage, &api)
    });
    restart(stage, &[])?;
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE]));
    Ok(())
}

fn clients(stage: &Stage) -> Vec<steps::Client> {
    clients_inside(stage, Reach::Internal)
}

fn restart(stage: &mut Stage, flags: &[&str]) -> Result<()> {
    stage.stop_controller()?;
    stage.cluster()?.launch.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    stage.start_controller()
}

fn annotate(api: &Kubernetes, value: Value) -> Result<()> {
    let mut annotations = serde_json::Map::new();
    annotations.insert(ANNOTATION.to_owned(), value);
    api.patch(&Kubernetes::service_path(SERVICE), &json!({"metadata": {"annotations": annotations}}))
        .map(drop)
}

fn published_as(api: &Kubernetes, mode: Option<&str>) -> Result<String> {
    soon(&format!("{mode:?} is published"), || {
        let ingress = api.ingress(SERVICE)?;
        ensure!(ingress[0]["ipMode"].as_str() == mode, "{ingress}");
        Ok(ingress[0]["ip"].as_str().context("no ip")?.to_owned())
    })
}

fn proxied(stage: &Stage, api: &Kubernetes) -> Result<String> {
    let address = published_as(api, Some("Proxy"))?;
    Ok(format!("GREEN: ip and ipMode Proxy, {}", green(&address, &clients(stage))?))
}

fn warning(api: &Kubernetes) -> Result<String> {
    soon("an event names the ways out", || {
        let events = api.events(SERVICE)?;
        let found = events
            .iter()
            .rev()
            .find(|(reason, note)| reason == "LoadBalancerIPModeNotHonoured" && note.contains("hostname"));
        found.map(|(reason, note)| format!("event {reason}: {note}")).with_context(|| format!("{events:?}"))
    })
}
