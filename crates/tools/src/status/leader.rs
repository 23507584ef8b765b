//! The leader, by the Lease.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;
use openstack_ccm_canary::observed_pod::ObservedPod;
use openstack_ccm_manager::leadership::LeaderRecord;
use serde_json::{Value, json};

use openstack_ccm_doctor::facts::ControllerFact;

/// The field manager of openstack-ccm.
const FIELD_MANAGER: &str = "openstack-ccm";

/// The holder of a Lease at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseHolder {
    /// The identity; absent where the Lease was released.
    identity: Option<String>,
    acquired: Option<Timestamp>,
    renewed: Option<Timestamp>,
    /// Seconds since the last renewal.
    age: i64,
    /// Seconds for which a renewal is valid.
    duration: i64,
    record: Option<LeaderRecord>,
}

impl LeaseHolder {
    /// Reads the holder of a Lease at `now`.
    pub(super) fn of(lease: &Lease, now: Timestamp) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let identity = spec.holder_identity.filter(|identity| !identity.is_empty());
        let annotations = lease.metadata.annotations.clone().unwrap_or_default();
        let renewed = spec.renew_time.map(|time| time.0);
        Self {
            record: identity.as_deref().and_then(|holder| LeaderRecord::of_holder(&annotations, holder)),
            identity,
            acquired: spec.acquire_time.map(|time| time.0),
            renewed,
            age: renewed.map_or(i64::MAX, |renewed| now.duration_since(renewed).as_secs()),
            duration: spec.lease_duration_seconds.unwrap_or(0).into(),
        }
    }

    /// Returns whether a holder exists and has renewed the Lease in time, by this machine's clock.
    pub(super) fn works(&self) -> bool {
        self.identity.is_some() && self.age <= self.duration
    }

    /// Returns the facts for doctor.
    pub(super) fn fact(
        &self,
        lease: String,
        given_cluster: &str,
        others: Result<Vec<String>, String>,
    ) -> ControllerFact {
        ControllerFact {
            lease,
            holder: self.identity.clone(),
            works: self.works(),
            since: self.acquired,
            text: match self.missing() {
                [] => self.to_string(),
                missing => {
                    format!(
                        "{self}; the cloud does not have these optional parts of the API: {}",
                        missing.join(", ")
                    )
                }
            },
            program: self.record.as_ref().map(|_| self.version()),
            manager: self.record.as_ref().map(|_| FIELD_MANAGER.to_owned()),
            cluster: self.cluster().map(str::to_owned),
            given_cluster: given_cluster.to_owned(),
            others,
        }
    }

    /// Returns whether the same holder has renewed the Lease since.
    pub(super) fn is_renewed_since(&self, before: &Self) -> bool {
        self.identity == before.identity && self.renewed > before.renewed
    }

    /// Describes the holder of another Lease, if it is this program, at work.
    pub(super) fn as_other(&self, lease: &Lease) -> Option<String> {
        self.record.as_ref().filter(|_| self.works())?;
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        let cluster = self.cluster().unwrap_or("not known");
        let (version, controllers) = (self.version(), self.controllers());
        Some(format!("Lease {name}: {self}; {version}, --cluster-name={cluster}, controllers: {controllers}"))
    }

    /// Returns the leader's hostname, with which its identity begins: the name of the pod, or of the node where the pod uses the
    /// host network.
    pub(super) fn host(&self) -> Option<&str> {
        self.identity.as_deref().map(|identity| identity.split_once('_').map_or(identity, |(host, _)| host))
    }

    /// Returns the version of the program, if the leader publishes it.
    pub(super) fn version(&self) -> String {
        self.record.as_ref().map_or_else(
            || "not known: the leader does not publish this".to_owned(),
            |record| format!("openstack-ccm {}", record.version),
        )
    }

    pub(super) fn into_record(self) -> Option<LeaderRecord> {
        self.record
    }

    /// Returns the `--cluster-name` of the leader.
    pub(super) fn cluster(&self) -> Option<&str> {
        self.record.as_ref().and_then(|record| record.cluster.as_deref())
    }

    /// Returns the region of the leader's cloud.conf, if it names one.
    pub(super) fn region(&self) -> Option<&str> {
        self.record.as_ref().and_then(|record| record.region.as_deref())
    }

    /// Returns optional parts of the cloud's API that the leader found missing.
    pub(super) fn missing(&self) -> &[String] {
        self.record.as_ref().map(|record| record.missing.as_slice()).unwrap_or_default()
    }

    /// Returns the holder as JSON.
    pub(super) fn json(&self) -> Value {
        let record = self.record.as_ref();
        json!({
            "identity": self.identity,
            "at_work": self.works(),
            "acquired": self.acquired.map(|time| time.to_string()),
            "renewed": self.renewed.map(|time| time.to_string()),
            "version": record.map(|record| &record.version),
            "controllers": record.map(|record| &record.controllers),
            "cluster_name": self.cluster(),
            "load_balancer_class": record.map(|record| &record.class),
            "region": self.region(),
            "missing_parts": record.map(|record| &record.missing),
        })
    }

    /// Returns the controllers that the leader runs.
    pub(super) fn controllers(&self) -> String {
        match &self.record {
            None => "not known".to_owned(),
            Some(record) if record.controllers.is_empty() => "none".to_owned(),
            Some(record) => record.controllers.join(", "),
        }
    }
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(identity) = &self.identity else { return f.write_str("none: the Lease was released") };
        match self.acquired {
            Some(acquired) => write!(f, "{identity} since {acquired:.0}")?,
            None => f.write_str(identity)?,
        }
        match self.renewed {
            None => f.write_str(", never renewed"),
            Some(_) if self.works() => write!(f, ", renewed {} s ago", self.age.max(0)),
            Some(_) => write!(f, ", NOT RENEWED for {} s (it is valid for {} s)", self.age, self.duration),
        }
    }
}

/// Returns name and node of the pod with this hostname.
pub(super) async fn pod(pods: &Api<ObservedPod>, host: &str) -> kube::Result<Option<(String, String)>> {
    if let Some(pod) = pods.get_opt(host).await? {
        return Ok(Some(name_and_node(&pod)));
    }
    let on_node = pods.list(&ListParams::default().fields(&format!("spec.nodeName={host}"))).await?;
    Ok(on_node.items.iter().find(|pod| is_controller(pod)).map(name_and_node))
}

fn name_and_node(pod: &ObservedPod) -> (String, String) {
    (pod.metadata.name.clone().unwrap_or_default(), pod.node().to_owned())
}

/// Returns whether a pod on the host network runs a cloud-controller-manager for OpenStack.
fn is_controller(pod: &ObservedPod) -> bool {
    let containers = &pod.spec.containers;
    let texts = containers.iter().flat_map(|container| {
        container
            .image
            .iter()
            .chain(container.command.iter().flatten())
            .chain(container.args.iter().flatten())
    });
    let known = ["openstack-ccm", "openstack-cloud-controller-manager"];
    texts.into_iter().any(|text| known.iter().any(|name| text.contains(name)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-11-22T12:00:10Z";

    fn leader(holder: &str, renewed: &str) -> LeaseHolder {
        let record = json!({"identity": "cp-1_a", "version": "0.1.0", "controllers": ["service-lb-controller"],
                "cluster": "c1", "region": "RegionOne", "missing": ["Status tree"]});
        let lease: Value = json!({
            "metadata": {"annotations": {"cloud-controller-manager.openstack.org/leader": record.to_string()}},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": "2026-11-22T11:00:00.000000Z",
                "renewTime": renewed},
        });
        LeaseHolder::of(&serde_json::from_value(lease).unwrap(), NOW.parse().unwrap())
    }

    #[rstest]
    #[case::works(
        "cp-1_a",
        "2026-11-22T12:00:08.000000Z",
        true,
        "cp-1_a since 2026-11-22T11:00:00Z, renewed 2 s ago"
    )]
    #[case::lapsed(
        "cp-1_a",
        "2026-11-22T11:59:00.000000Z",
        false,
        "cp-1_a since 2026-11-22T11:00:00Z, NOT RENEWED for 70 s (it is valid for 15 s)"
    )]
    #[case::given_back("", "2026-11-22T12:00:08.000000Z", false, "none: the Lease was released")]
    fn a_leader_is_one_who_renews(
        #[case] holder: &str,
        #[case] renewed: &str,
        #[case] works: bool,
        #[case] shown: &str,
    ) {
        let leader = leader(holder, renewed);
        assert_eq!((leader.works(), leader.to_string().as_str()), (works, shown));
    }

    #[test]
    fn only_the_holder_itself_says_what_it_is() {
        let ours = leader("cp-1_a", "2026-11-22T12:00:08.000000Z");
        assert_eq!((ours.host(), ours.version().as_str()), (Some("cp-1"), "openstack-ccm 0.1.0"));
        assert_eq!(ours.controllers(), "service-lb-controller");
        assert_eq!((ours.cluster(), ours.region()), (Some("c1"), Some("RegionOne")));
        assert!(
            ours.fact(String::new(), "c1", Ok(Vec::new()))
                .text
                .ends_with("the cloud does not have these optional parts of the API: Status tree")
        );
        let other = leader("occm-7_b", "2026-11-22T12:00:08.000000Z");
        assert_eq!((other.host(), other.controllers().as_str()), (Some("occm-7"), "not known"));
    }
}
