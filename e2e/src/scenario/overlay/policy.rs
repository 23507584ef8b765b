//! The policy: the API server itself sets the mode in every write, so that there is no moment without it.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::SCENARIO;
use super::owned::{CLOUDS, DIGITAL_OCEAN, Dials, LINODE, NAMES, Owned, clean_up, green_with, red_alone};
use super::quiet::quiet;
use crate::artifacts::Framework;
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::audit::Audit;
use crate::kubernetes::manifests;
use crate::kubernetes::overlay::{policy, policy_objects, remove_policy};
use crate::kubernetes::owner::INGRESS;
use crate::machine::wait::soon;
use crate::stage::Stage;

/// Restarts of the owner under a stream of dials, of each version.
const RESTARTS: usize = 2;

/// All cases, on a cluster of 1.36.
pub(super) fn run(stage: &mut Stage, audit: &Audit) -> Result<()> {
    let mut owned = Owned::prepare(stage)?;
    stage.check(SCENARIO, "policy: v1beta1 of 1.34 and 1.35 is the same to the server", |stage| {
        of_both_versions(stage, &owned)
    });
    red_alone(stage, &owned);
    for object in policy(stage.program(), &[CLOUDS])? {
        manifests::apply(&owned.api, &object)?;
    }
    stage.check(SCENARIO, "policy: an empty write turns what is stored", |_| in_force(&owned));
    green_with(stage, &owned, "policy");
    let since = Instant::now();
    let before = audit.publications()?.len();
    for framework in Framework::ALL {
        let case = format!(
            "policy: {} restarts of an owner of {} under a stream of dials",
            RESTARTS,
            framework.text()
        );
        stage.check(SCENARIO, &case, |stage| restarted(stage, &mut owned, framework));
    }
    stage.check(SCENARIO, "policy: each status write of the owners arrives with Proxy", |stage| {
        written(stage, &mut owned, audit, before, since)
    });
    stage.check(SCENARIO, "policy: quiet beside owners of all versions", |stage| quiet(stage, &mut owned));
    stage.check(SCENARIO, "policy: the annotation goes, and VIP comes back", |stage| {
        owned.begin(stage, Framework::V0_36)?;
        owned.annotate(DIGITAL_OCEAN.name, DIGITAL_OCEAN.annotation.0, &json!(null))?;
        Ok(format!("RED as it is wanted: {}", owned.is_red(stage, DIGITAL_OCEAN.name)?))
    });
    clean_up(stage, &mut owned, &NAMES);
    remove_policy(&owned.api)
}

/// What is created as `v1beta1` reads as `v1` like what is created so: what holds for the one holds for the other.
fn of_both_versions(stage: &Stage, owned: &Owned) -> Result<String> {
    let mut specs = Vec::new();
    for api in ["v1beta1", "v1"] {
        for object in policy(stage.program(), &[CLOUDS, "--api", api])? {
            ensure!(object["apiVersion"] == format!("admissionregistration.k8s.io/{api}"), "{object}");
            manifests::apply(&owned.api, &object)?;
        }
        let spec = |path: &String| Ok(owned.api.get(path)?["spec"].clone());
        specs.push(policy_objects().iter().map(spec).collect::<Result<Vec<Value>>>()?);
        remove_policy(&owned.api)?;
    }
    ensure!(specs[0] == specs[1], "{specs:#?}");
    Ok("policy and binding, with strict validation".into())
}

/// The API server takes the policy into account some seconds after it was stored.
pub(super) fn in_force(owned: &Owned) -> Result<String> {
    for name in NAMES {
        soon(&format!("an empty write gives {name} the mode"), || {
            owned.api.patch(&format!("{}/status", Kubernetes::service_path(name)), &json!({}))?;
            let ingress = owned.api.ingress(name)?;
            ensure!(ingress[0]["ipMode"] == "Proxy", "{ingress}");
            Ok(())
        })?;
    }
    Ok("by empty patches of the status, without knowing an address".into())
}

/// Pods dial all the time, and none of them is short-circuited.
fn restarted(stage: &mut Stage, owned: &mut Owned, framework: Framework) -> Result<String> {
    let since = Instant::now();
    let Dials { answered, failed, broken } = owned.dialled_during_restarts(stage, framework, RESTARTS)?;
    ensure!(
        failed == 0 && broken == 0 && answered > 0,
        "{answered} answered, {failed} failed, {broken} without a header"
    );
    owned.never_short_circuited_since(since)?;
    Ok(format!("{answered} dials of a pod, all answered through the load balancer"))
}

/// What owners send has no mode, what is stored has: by the audit log, also for an owner that publishes something new.
fn written(
    stage: &mut Stage,
    owned: &mut Owned,
    audit: &Audit,
    before: usize,
    since: Instant,
) -> Result<String> {
    for (framework, name) in Framework::ALL.into_iter().zip(["one", "two", "three"]) {
        owned.begin(stage, framework)?;
        let ingress = format!(r#"[{{"hostname": "{name}.linode.test", "ip": "{{address}}"}}]"#);
        owned.annotate(LINODE.name, INGRESS, &json!(ingress))?;
        soon(&format!("{name} is published"), || {
            let ingress = owned.api.ingress(LINODE.name)?;
            ensure!(ingress[0]["hostname"] == json!(format!("{name}.linode.test")), "{ingress}");
            Ok(())
        })?;
    }
    let writes = audit.publications()?.split_off(before);
    for write in &writes {
        let (sent, stored) = (&write.sent[0], &write.stored[0]);
        ensure!(
            sent["ip"].is_string() && sent["ipMode"].is_null() && stored["ipMode"] == "Proxy",
            "{} sent {sent} and the server stored {stored}",
            write.service
        );
    }
    let versions = owned.never_short_circuited_since(since)?;
    ensure!(writes.len() >= Framework::ALL.len(), "{} writes", writes.len());
    Ok(format!(
        "{} writes of addresses without a mode, each stored with Proxy; {versions} versions of the Services seen, none with VIP",
        writes.len()
    ))
}
