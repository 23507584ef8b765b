//! A provider of a cloud of its own that the tests can look into: load balancers by uid of their Service.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use openstack_ccm_core::advertise::{ClusterAccess, Path, Preference, SettingNames};
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{
    LoadBalancers, OrphanCandidate, Outcome, ProviderNames, Ready, Reconciliation,
};
use openstack_ccm_core::service::{Goal, Service, ServiceKey};

use crate::wire::Wire;

pub(crate) const ID: &str = "lb.example.org/load-balancer-id";
pub(crate) const ADDRESS: &str = "lb.example.org/load-balancer-address";

const NAMES: ProviderNames = ProviderNames {
    event_source: "cloud-provider-example",
    metric_prefix: "cloudprovider_example",
    delete_command: "examplectl lb rm",
    settings: SettingNames {
        ip_mode_annotation: "lb.example.org/ip-mode",
        hostname_annotation: "lb.example.org/hostname",
        cluster_sources_annotation: Some("lb.example.org/allow-cluster-sources"),
        ip_mode_setting: "ip-mode in example.toml",
        hostname_suffix_setting: "hostname-suffix in example.toml",
    },
};

/// One load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadBalancer {
    pub(crate) address: IpAddr,
    pub(crate) ports: Vec<u16>,
    pub(crate) nodes: Vec<String>,
}

#[derive(Default)]
struct State {
    load_balancers: BTreeMap<String, LoadBalancer>,
    scripted: VecDeque<Reconciliation>,
    path: Option<Path>,
    preference: Preference,
    cluster_access: ClusterAccess,
    notices: Vec<Notice>,
    requeue_after: Option<Duration>,
    orphan_candidates: Vec<OrphanCandidate>,
    panics: usize,
    hangs: bool,
}

pub(crate) struct Cloud {
    wire: Arc<Wire>,
    state: Mutex<State>,
}

impl Cloud {
    pub(crate) fn new(wire: Arc<Wire>) -> Arc<Self> {
        Arc::new(Self { wire, state: Mutex::default() })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The next reconciliation ends so, whatever its goal; the cloud does not change.
    pub(crate) fn script(&self, end: Reconciliation) {
        self.state().scripted.push_back(end);
    }

    pub(crate) fn publish_by(&self, path: Path, preference: Preference) {
        let mut state = self.state();
        state.path = Some(path);
        state.preference = preference;
    }

    /// Whether the source ranges let the cluster in.
    pub(crate) fn let_in(&self, access: ClusterAccess) {
        self.state().cluster_access = access;
    }

    /// Load balancers that are there, and were made for Services of this cluster.
    pub(crate) fn has_made(&self, orphan: OrphanCandidate) {
        self.state().orphan_candidates.push(orphan);
    }

    pub(crate) fn say(&self, notices: Vec<Notice>) {
        self.state().notices = notices;
    }

    /// The next reconciliation that serves wants another one after so long.
    pub(crate) fn requeue_after(&self, delay: Duration) {
        self.state().requeue_after = Some(delay);
    }

    pub(crate) fn panic_next(&self) {
        self.state().panics += 1;
    }

    /// Reconciliations end again.
    pub(crate) fn work(&self) {
        self.state().hangs = false;
    }

    /// Every reconciliation from now on takes for ever.
    pub(crate) fn hang(&self) {
        self.state().hangs = true;
    }

    pub(crate) fn load_balancers(&self) -> Vec<LoadBalancer> {
        self.state().load_balancers.values().cloned().collect()
    }

    fn serve(&self, service: &Service, nodes: Vec<String>) -> Reconciliation {
        let mut state = self.state();
        let number = u8::try_from(state.load_balancers.len()).unwrap();
        let known = state.load_balancers.get(&service.uid).cloned();
        let address =
            known.as_ref().map_or(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 10 + number)), |known| known.address);
        let ports = service.ports.iter().map(|port| port.port).collect();
        let wanted = LoadBalancer { address, ports, nodes };
        let changed = known.as_ref() != Some(&wanted);
        state.load_balancers.insert(service.uid.clone(), wanted);
        let ready = Ready {
            addresses: vec![address],
            path: state.path.unwrap_or(Path::Direct),
            preference: state.preference.clone(),
            cluster_access: state.cluster_access.clone(),
            changed,
            done: Vec::new(),
            unfinished: None,
            requeue_after: state.requeue_after.take(),
        };
        Reconciliation {
            result: Ok(Outcome::Ready(ready)),
            notices: state.notices.clone(),
            annotations: annotations(Some((format!("lb-{}", service.key.name), address.to_string()))),
            foreign_addresses: Vec::new(),
        }
    }

    fn release(&self, service: &Service) -> Reconciliation {
        self.state().load_balancers.remove(&service.uid);
        Reconciliation {
            result: Ok(Outcome::Released),
            notices: Vec::new(),
            annotations: annotations(None),
            foreign_addresses: Vec::new(),
        }
    }
}

fn annotations(values: Option<(String, String)>) -> BTreeMap<String, Option<String>> {
    let (id, address) = values.unzip();
    BTreeMap::from([(ID.to_owned(), id), (ADDRESS.to_owned(), address)])
}

#[async_trait]
impl LoadBalancers for Cloud {
    fn names(&self) -> ProviderNames {
        NAMES
    }

    async fn reconcile(&self, goal: &Goal) -> Reconciliation {
        let key = &goal.service().key;
        let nodes = |goal: &Goal| match goal {
            Goal::Serve(intent) => intent.nodes.iter().map(|node| node.name.clone()).collect(),
            Goal::Release(_) => Vec::new(),
        };
        self.wire.note(match goal {
            Goal::Serve(_) => format!("cloud serves {} on {}", key.name, nodes(goal).join(",")),
            Goal::Release(_) => format!("cloud releases {}", key.name),
        });
        if self.state().panics > 0 {
            self.state().panics -= 1;
            panic!("a defect in the provider");
        }
        if self.state().hangs {
            std::future::pending::<()>().await;
        }
        let scripted = self.state().scripted.pop_front();
        scripted.unwrap_or_else(|| match goal {
            Goal::Serve(intent) => self.serve(&intent.service, nodes(goal)),
            Goal::Release(service) => self.release(service),
        })
    }

    fn expect_drift(&self, service: &ServiceKey) {
        self.wire.note(format!("cloud is to be asked about {}", service.name));
    }

    async fn orphan_candidates(&self) -> Result<Vec<OrphanCandidate>, Failure> {
        Ok(self.state().orphan_candidates.clone())
    }
}
