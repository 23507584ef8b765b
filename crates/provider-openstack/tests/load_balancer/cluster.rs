//! A cluster with a provider: what the service controller does around it, and no more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::node::{AddressKind, Node, NodeAddress};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{LoadBalancers, Outcome, Ready, Reconciliation, Wake};
use openstack_ccm_core::service::{Goal, Intent, IpFamily, Protocol, Service, ServiceKey, ServicePort};
use openstack_ccm_provider_openstack::config::Config;
use openstack_ccm_provider_openstack::load_balancer::OpenStackLoadBalancers;
use openstack_ccm_provider_openstack::load_balancer::names::ClusterIdentity;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;

use crate::cloud::{Cloud, NODE_1, NODE_2};

pub(crate) const NAME: &str = "kube_service_c1_default_web";
pub(crate) const UID: &str = "11111111-2222-3333-4444-555555555555";
pub(crate) const CLUSTER_UID: &str = "c1c1c1c1-0000-4000-8000-000000000001";

/// Passes until a test gives up.
const MOST_PASSES: usize = 60;

struct Bell(mpsc::UnboundedSender<ServiceKey>);

impl Wake for Bell {
    fn wake(&self, key: &ServiceKey) {
        let _ = self.0.send(key.clone());
    }
}

/// The running program: a provider, its poller, and who is woken. Dropped, it is gone like a killed process.
pub(crate) struct Program {
    pub(crate) provider: Arc<OpenStackLoadBalancers>,
    woken: mpsc::UnboundedReceiver<ServiceKey>,
    _poller: DropGuard,
}

impl Program {
    pub(crate) fn start(cloud: &Cloud, config: &Config, identity: &ClusterIdentity) -> Self {
        let (bell, woken) = mpsc::unbounded_channel();
        let config = Arc::new(config.clone());
        let (provider, poller) =
            OpenStackLoadBalancers::new(cloud.openstack(), config, identity.clone(), Arc::new(Bell(bell)));
        let shutdown = CancellationToken::new();
        tokio::spawn(poller.run(shutdown.clone()));
        Self { provider: Arc::new(provider), woken, _poller: shutdown.drop_guard() }
    }
}

/// A cluster. Services are changed in place, and brought in line with [`Cluster::settle`].
pub(crate) struct Cluster {
    pub(crate) cloud: Cloud,
    pub(crate) config: Config,
    pub(crate) identity: ClusterIdentity,
    pub(crate) nodes: Vec<Node>,
    pub(crate) program: Program,
    /// Notices of all passes, each once.
    pub(crate) notices: Vec<Notice>,
}

/// How a Service came out.
pub(crate) type Settled = Result<Ready, Failure>;

impl Cluster {
    /// The base of all scenarios: cluster `c1` with nodes `n1` and `n2`.
    pub(crate) fn new(cloud: &Cloud) -> Self {
        Self::with_config(cloud, cloud.config())
    }

    pub(crate) fn with_config(cloud: &Cloud, config: Config) -> Self {
        let identity = ClusterIdentity { name: "c1".into(), uid: CLUSTER_UID.into() };
        let nodes = vec![node("n1", NODE_1, cloud.server("n1")), node("n2", NODE_2, cloud.server("n2"))];
        let program = Program::start(cloud, &config, &identity);
        Self { cloud: cloud.clone(), config, identity, nodes, program, notices: Vec::new() }
    }

    /// The program is killed and starts over: everything in its memory is gone.
    pub(crate) fn restart(&mut self) {
        self.program = Program::start(&self.cloud, &self.config, &self.identity);
    }

    pub(crate) fn serve(&self, service: &Service) -> Goal {
        let nodes: Vec<Arc<Node>> = self.nodes.iter().cloned().map(Arc::new).collect();
        Goal::Serve(Intent { service: service.clone(), nodes: nodes.into() })
    }

    /// One pass for a Service; its annotations are written back.
    pub(crate) async fn pass(&mut self, service: &mut Service) -> Result<Outcome, Failure> {
        let goal = self.serve(service);
        self.run(goal, service).await
    }

    async fn run(&mut self, goal: Goal, service: &mut Service) -> Result<Outcome, Failure> {
        let Reconciliation { result, notices, annotations } = self.program.provider.reconcile(&goal).await;
        for (key, value) in annotations {
            match value {
                Some(value) => service.annotations.insert(key, value),
                None => service.annotations.remove(&key),
            };
        }
        for notice in notices {
            if !self.notices.contains(&notice) {
                self.notices.push(notice);
            }
        }
        result
    }

    /// Looks at the cloud and passes until the Service is served or fails.
    pub(crate) async fn settle(&mut self, service: &mut Service) -> Settled {
        self.program.provider.expect_drift(&service.key);
        let settled = self.follow(service).await;
        // Octavia counts time in seconds: what a test does next has another time.
        tokio::time::sleep(Duration::from_secs(2)).await;
        settled
    }

    /// Passes until the Service is served or fails, trusting what earlier passes saw.
    pub(crate) async fn follow(&mut self, service: &mut Service) -> Settled {
        for _ in 0..MOST_PASSES {
            match self.pass(service).await? {
                Outcome::Ready(ready) => return Ok(ready),
                Outcome::Waiting(waiting) => self.wait(waiting.at_most).await,
                Outcome::Released => panic!("released what was to be served"),
            }
        }
        panic!("no end after {MOST_PASSES} passes: {:#?}", self.cloud.line.take_log())
    }

    /// Like [`Cluster::follow`], and passes again for what was taken for done, when it is time for that.
    pub(crate) async fn follow_to_the_end(&mut self, service: &mut Service) -> Settled {
        let mut ready = self.follow(service).await?;
        while let Some(delay) = ready.requeue_after {
            tokio::time::sleep(delay).await;
            ready = self.follow(service).await?;
        }
        Ok(ready)
    }

    /// Like [`Cluster::settle`], and repeats failed passes after their delay, so many times.
    pub(crate) async fn settle_through_failures(&mut self, service: &mut Service, failures: u32) -> Settled {
        for attempt in 0..=failures {
            match self.settle(service).await {
                Err(failure) if attempt < failures => tokio::time::sleep(failure.delay(attempt)).await,
                settled => return settled,
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Passes until the Service is gone.
    pub(crate) async fn release(&mut self, service: &mut Service) -> Result<(), Failure> {
        for _ in 0..MOST_PASSES {
            match self.run(Goal::Release(service.clone()), service).await? {
                Outcome::Released => return Ok(()),
                Outcome::Waiting(waiting) => self.wait(waiting.at_most).await,
                Outcome::Ready(ready) => panic!("served what was to go: {ready:?}"),
            }
        }
        panic!("no end after {MOST_PASSES} passes")
    }

    /// Waits to be woken. What was rung for before counts.
    async fn wait(&mut self, at_most: Duration) {
        let start = Instant::now();
        let rung = timeout(at_most, self.program.woken.recv()).await;
        assert!(rung.is_ok(), "nobody woke the Service in {:?}", start.elapsed());
        while self.program.woken.try_recv().is_ok() {}
    }

    /// Reasons of the notices so far, in order; forgets them.
    pub(crate) fn take_reasons(&mut self) -> Vec<&'static str> {
        self.notices.drain(..).map(|notice| notice.reason).collect()
    }
}

/// A Service that is served, and nothing logged.
pub(crate) async fn served() -> (Cloud, Cluster, Service) {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    cluster.settle(&mut service).await.expect("served");
    cloud.line.take_log();
    (cloud, cluster, service)
}

/// A node whose server is in the cloud.
pub(crate) fn node(name: &str, address: &str, server: Option<String>) -> Node {
    Node {
        name: name.into(),
        provider_id: server.map(|id| format!("openstack:///{id}")),
        addresses: vec![NodeAddress { kind: AddressKind::InternalIp, address: address.into() }],
        labels: BTreeMap::new(),
        backend: true,
    }
}

/// The Service of all scenarios: `default/web` with TCP port 80 on node port 30080.
pub(crate) fn web() -> Service {
    service("web", UID, vec![port(Protocol::Tcp, 80, 30080)])
}

pub(crate) fn service(name: &str, uid: &str, ports: Vec<ServicePort>) -> Service {
    Service { ports, ip_families: vec![IpFamily::V4], ..Service::new(ServiceKey::new("default", name), uid) }
}

pub(crate) fn port(protocol: Protocol, port: u16, node_port: u16) -> ServicePort {
    let node_port = (node_port != 0).then_some(node_port);
    ServicePort {
        name: Some(format!("p{port}-{protocol}").to_lowercase()),
        protocol,
        port,
        node_port,
        app_protocol: None,
    }
}

/// The Service with an annotation of the usual prefix, or with a whole key.
pub(crate) fn annotate(service: &mut Service, key: &str, value: &str) {
    let key = if key.contains('/') { key.to_owned() } else { format!("loadbalancer.openstack.org/{key}") };
    service.annotations.insert(key, value.to_owned());
}

pub(crate) fn annotation<'a>(service: &'a Service, key: &str) -> Option<&'a str> {
    service.annotations.get(&format!("loadbalancer.openstack.org/{key}")).map(String::as_str)
}
