//! What is wrong with the status, or about to be.

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Fault;
use super::patient::{Ends, Patient, SERVICE};
use crate::kubernetes::api::Kubernetes;
use crate::machine::wait::soon;
use crate::stage::Stage;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cloud-controller-manager";
/// Another Service, of a class that nobody serves here.
const NEIGHBOUR: &str = "neighbour";
/// In a network for documentation.
const ADDRESS_OF_NOBODY: &str = "192.0.2.77";

pub(super) const ALL: &[Fault] = &[
    Fault {
        name: "a hostname that nobody outside can know",
        codes: &["D103"],
        ends: Ends::NotAsked("clients know the address here, and no name"),
        provoke: |stage, _| publish(stage, &json!([{"hostname": "web"}])),
        mend: publish_right,
    },
    Fault {
        name: "an address without ipMode beside its hostname",
        codes: &["D203"],
        ends: Ends::EndInside,
        provoke: |stage, patient| {
            publish(stage, &json!([{"ip": patient.address, "hostname": "web.example.com"}]))
        },
        mend: publish_right,
    },
    Fault {
        name: "another program writes the status while openstack-ccm leads",
        codes: &["D204"],
        ends: Ends::Arrive,
        provoke: |stage, patient| written_by_another(stage, &patient.address),
        mend: |stage, patient| {
            stage.api()?.delete(LEASE)?;
            publish_right(stage, patient)
        },
    },
    Fault {
        name: "another Service publishes the address without ipMode",
        codes: &["D205"],
        ends: Ends::ArriveHere("service proxies in IPVS mode would short-circuit it"),
        provoke: |stage, patient| share(&stage.api()?, &patient.address),
        mend: |stage, _| stage.api()?.delete(&Kubernetes::service_path(NEIGHBOUR)),
    },
    Fault {
        name: "no address is published",
        codes: &["D206"],
        ends: Ends::Nowhere,
        provoke: |stage, _| publish(stage, &json!([])),
        mend: publish_right,
    },
];

/// As another writer does it, or somebody by hand.
pub(super) const NOBODY: Fault = Fault {
    name: "an address of nobody is published",
    codes: &["D207"],
    ends: Ends::End,
    provoke: |stage, patient| {
        publish(stage, &json!([{"ip": ADDRESS_OF_NOBODY, "ipMode": "Proxy"}]))?;
        lead_to(patient, ADDRESS_OF_NOBODY);
        Ok(())
    },
    mend: |stage, patient| {
        let load_balancer = stage.cloud.user.load_balancer(SERVICE)?;
        lead_to(patient, load_balancer["vip_address"].as_str().unwrap_or_default());
        publish_right(stage, patient)
    },
};

fn publish(stage: &Stage, entries: &Value) -> Result<()> {
    stage.api()?.write_ingress(SERVICE, entries).map(drop)
}

fn publish_right(stage: &mut Stage, patient: &mut Patient) -> Result<()> {
    publish(stage, &json!([{"ip": patient.address, "ipMode": "Proxy"}]))
}

fn lead_to(patient: &mut Patient, address: &str) {
    address.clone_into(&mut patient.address);
    address.clone_into(&mut patient.host);
}

/// The leader is away and its Lease is renewed for it, so that it does not mend what is examined.
fn written_by_another(stage: &mut Stage, address: &str) -> Result<()> {
    stage.start_controller()?;
    let api = stage.api()?;
    // The one before has given its Lease back.
    soon("it leads", || {
        let holder = api.get(LEASE)?["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        ensure!(!holder.is_empty(), "nobody holds the Lease");
        Ok(())
    })?;
    if let Some(controller) = stage.cluster()?.controller.take() {
        controller.kill()?;
    }
    // It has led for long: a status from before would be that of its predecessor.
    let micro = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    let hour = SignedDuration::from_hours(1);
    let (acquired, renewed) = (micro(Timestamp::now() - hour), micro(Timestamp::now() + hour));
    api.patch(LEASE, &json!({"spec": {"acquireTime": acquired, "renewTime": renewed}}))?;
    let entry = json!([{"ip": address, "ipMode": "Proxy", "ports": [{"port": 80, "protocol": "TCP"}]}]);
    let path = format!("{}/status?fieldManager=speaker", Kubernetes::service_path(SERVICE));
    api.patch(&path, &json!({"status": {"loadBalancer": {"ingress": entry}}})).map(drop)
}

fn share(api: &Kubernetes, address: &str) -> Result<()> {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": NEIGHBOUR},
        "spec": {
            "type": "LoadBalancer", "loadBalancerClass": "example.com/other",
            "ports": [{"port": 81, "protocol": "TCP"}],
        },
    });
    api.ensure("/api/v1/namespaces/default/services", &service)?;
    api.write_ingress(NEIGHBOUR, &json!([{"ip": address}])).map(drop)
}
