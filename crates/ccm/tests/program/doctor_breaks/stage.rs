//! A world that the real program has served, and what an operator looks at it with.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use openstack_ccm_kube_sim::{
    ApiVersion, ClusterBackup, Destination, Server as KubeServer, Stop, Transport as InCluster,
};
use openstack_ccm_manager::leadership::LeaderRecord;
use openstack_ccm_openstack_sim::{Server as CloudServer, Sim as Cloud, World as CloudState};
use openstack_ccm_overlay::cloud::CLOUDS;
use openstack_ccm_overlay::controller::{Overlay, OverlayOptions};
use openstack_ccm_overlay::rules::Rules;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::breaks::Part;
use super::cluster;
use crate::support::{ANNOTATION, LB_ID, PROXY, World, service};

/// The address of a load balancer of another cloud.
pub(super) const FOREIGN: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 10));
/// The annotation of that cloud.
pub(super) const FOREIGN_PROXY: &str = "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol";
/// The Lease of the controller.
pub(super) const LEASE: &str = "cloud-controller-manager";
const SUFFIX: &str = "lb.example.org";

/// What kind of Service a world serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// With the PROXY protocol.
    Proxy,
    Plain,
    /// One port for TCP and for UDP.
    Udp,
    /// `externalTrafficPolicy: Local`, with the PROXY protocol and a health monitor.
    Local,
    /// With the PROXY protocol and a health monitor.
    Monitored,
    /// With the PROXY protocol and source ranges that hold the cluster.
    Ranges,
    /// The program manages the security groups.
    Managed,
    /// Another Service is on the same load balancer.
    Shared,
    /// No floating IP.
    Internal,
    /// A cluster that does not know `ipMode`.
    Hostname,
    DualStack,
    /// The load balancer of another cloud, and ip-mode-overlay.
    Overlay,
    /// With the PROXY protocol, and Traefik in the place of ingress-nginx.
    Traefik,
    /// With the PROXY protocol, and HAProxy Ingress.
    Haproxy,
    /// With the PROXY protocol, and Envoy Gateway.
    Envoy,
    /// Envoy Gateway without the PROXY protocol.
    PlainEnvoy,
}

impl Kind {
    pub(super) const ALL: [Self; 16] = [
        Self::Proxy,
        Self::Plain,
        Self::Udp,
        Self::Local,
        Self::Monitored,
        Self::Ranges,
        Self::Managed,
        Self::Shared,
        Self::Internal,
        Self::Hostname,
        Self::DualStack,
        Self::Overlay,
        Self::Traefik,
        Self::Haproxy,
        Self::Envoy,
        Self::PlainEnvoy,
    ];

    /// Whether breaks of this part may do anything else here than in the worlds with and without the PROXY protocol.
    pub(super) fn differs_in(self, part: Part) -> bool {
        match self {
            Self::Monitored => {
                matches!(part, Part::Balancer | Part::Security | Part::Cluster | Part::Policies)
            }
            Self::Ranges => {
                matches!(part, Part::Balancer | Part::Floating | Part::Published | Part::Application)
            }
            Self::Managed => matches!(part, Part::Security | Part::Cluster),
            // Others are on the load balancer, and not behind it.
            Self::Shared => !matches!(part, Part::Security | Part::Cluster | Part::Policies),
            Self::Internal => !matches!(part, Part::Security | Part::Cluster | Part::Application),
            Self::Hostname => !matches!(part, Part::Security | Part::Cluster),
            Self::Traefik | Self::Haproxy | Self::Envoy | Self::PlainEnvoy => {
                matches!(part, Part::Published | Part::ServiceProxy | Part::Programs)
            }
            _ => true,
        }
    }

    /// The hops of which nobody sees everything here.
    pub(super) fn unseen(self) -> &'static [u64] {
        match self {
            // Without a cloud nobody knows its load balancer.
            Self::Overlay => &[2, 4, 5, 6, 7, 8],
            _ => &[],
        }
    }

    /// Whether OpenStack has its load balancer.
    pub(super) fn is_in_cloud(self) -> bool {
        self != Self::Overlay
    }

    /// Whether its load balancer has a floating IP.
    pub(super) fn is_floating(self) -> bool {
        self.is_in_cloud() && self != Self::Internal
    }

    /// Whether it asks for the PROXY protocol.
    pub(super) fn has_header(self) -> bool {
        !matches!(self, Self::Plain | Self::Udp | Self::Managed | Self::PlainEnvoy)
    }

    /// Whether its pools have health monitors.
    pub(super) fn is_monitored(self) -> bool {
        matches!(self, Self::Local | Self::Monitored)
    }

    /// Which program is behind the Service.
    pub(super) fn program(self) -> Program {
        match self {
            Self::Udp => Program::CoreDns,
            Self::Traefik => Program::Traefik,
            Self::Haproxy => Program::Haproxy,
            Self::Envoy | Self::PlainEnvoy => Program::EnvoyGateway,
            _ => Program::Nginx,
        }
    }

    /// The ports of its Service.
    pub(super) fn ports(self) -> Vec<Port> {
        let tcp = |name, number, node_port, target, at| Port {
            name,
            number,
            node_port,
            protocol: "TCP",
            target,
            at,
        };
        match self.program() {
            Program::CoreDns => vec![
                Port { protocol: "UDP", ..tcp("dns", 53, 30053, json!("dns"), 5353) },
                tcp("dns-tcp", 53, 30054, json!("dns-tcp"), 5353),
            ],
            Program::Traefik => vec![
                tcp("web", 80, 30080, json!("web"), 8000),
                tcp("websecure", 443, 30443, json!("websecure"), 8443),
            ],
            Program::EnvoyGateway => vec![
                tcp("http-80", 80, 30080, json!(10080), 10080),
                tcp("https-443", 443, 30443, json!(10443), 10443),
            ],
            Program::Nginx | Program::Haproxy => vec![
                tcp("http", 80, 30080, json!("http"), 8080),
                tcp("https", 443, 30443, json!("https"), 8443),
            ],
        }
    }

    fn annotations(self) -> Value {
        let mut annotations = json!({});
        if self.has_header() && self.is_in_cloud() {
            annotations[PROXY] = json!("v2");
        }
        let mut set = |key: &str| annotations[format!("{ANNOTATION}{key}")] = json!("true");
        match self {
            Self::Local | Self::Monitored => set("enable-health-monitor"),
            Self::Ranges => set("allow-cluster-sources"),
            _ => {}
        }
        if self == Self::Internal {
            annotations["service.beta.kubernetes.io/openstack-internal-load-balancer"] = json!("true");
        }
        if self == Self::Overlay {
            annotations[FOREIGN_PROXY] = json!("true");
        }
        annotations
    }

    fn service(self) -> Value {
        let ports: Value = self
            .ports()
            .into_iter()
            .map(|Port { name, number, node_port, protocol, target, .. }| {
                json!({"name": name, "port": number, "protocol": protocol, "targetPort": target, "nodePort": node_port})
            })
            .collect();
        let mut web = service(
            "web",
            json!({
                "metadata": {"annotations": self.annotations()},
                "spec": {"selector": {"app": "web"}, "ports": ports},
            }),
        );
        match self {
            Self::Local => {
                web["spec"]["externalTrafficPolicy"] = json!("Local");
                web["spec"]["healthCheckNodePort"] = json!(31000);
            }
            Self::Ranges => web["spec"]["loadBalancerSourceRanges"] = json!(["203.0.113.0/24"]),
            Self::DualStack => {
                web["spec"]["ipFamilies"] = json!(["IPv4", "IPv6"]);
                web["spec"]["ipFamilyPolicy"] = json!("RequireDualStack");
            }
            _ => {}
        }
        web
    }

    fn cloud_conf(self) -> &'static str {
        match self {
            Self::Managed => "manage-security-groups = true\n",
            Self::Hostname => "ingress-hostname-suffix = lb.example.org\n",
            Self::DualStack => "network-id=\nsubnet-id=\n",
            _ => "",
        }
    }
}

/// The programs that are behind a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    CoreDns,
    Nginx,
    Traefik,
    /// HAProxy Ingress of haproxytech.
    Haproxy,
    EnvoyGateway,
}

/// A port of a Service.
pub(super) struct Port {
    pub(super) name: &'static str,
    pub(super) number: u16,
    pub(super) node_port: u16,
    pub(super) protocol: &'static str,
    pub(super) target: Value,
    /// The port of the pod.
    pub(super) at: u16,
}

/// A served world, to which every break is done anew.
pub(super) struct Stage {
    pub(super) kind: Kind,
    pub(super) world: World,
    healthy: (CloudState, ClusterBackup),
    files: TempDir,
    _servers: (KubeServer, CloudServer),
}

impl Stage {
    /// A world that the real program has served.
    pub(super) async fn of(kind: Kind) -> Self {
        Self::look_at(kind, served(kind).await).await
    }

    /// Opens a world that is served to those who look from outside; nothing waits from here on.
    pub(super) async fn look_at(kind: Kind, world: World) -> Self {
        // What is broken breaks long after the leader began: doctor holds other writers against it, and clocks may differ.
        tokio::time::advance(Duration::from_mins(2)).await;
        tokio::time::resume();
        let files = tempfile::tempdir().unwrap();
        let local = (Ipv4Addr::LOCALHOST, 0).into();
        let servers =
            (KubeServer::bind(&world.kube, local).await.unwrap(), world.cloud.serve(local).await.unwrap());
        // Nobody speaks TLS here, and who is named a CA need not read those of the machine.
        let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let ca = files.path().join("ca.pem");
        std::fs::write(&ca, certificate.cert.pem()).unwrap();
        let cloud_conf = world.cloud.cloud_conf();
        let cloud_conf = cloud_conf.replace("[Global]\n", &format!("[Global]\nca-file={}\n", ca.display()));
        let conf = format!("{cloud_conf}{}", kind.cloud_conf());
        std::fs::write(files.path().join("cloud.conf"), conf).unwrap();
        let authority = format!("certificate-authority: {}\n    server:", ca.display());
        let kubeconfig = servers.0.kubeconfig().replace("server:", &authority);
        std::fs::write(files.path().join("kubeconfig"), kubeconfig).unwrap();
        let healthy = (world.cloud.snapshot(), world.kube.backup());
        let stage = Self { kind, world, healthy, files, _servers: servers };
        stage.check_health();
        stage
    }

    /// Undoes everything since the world was served.
    pub(super) fn heal(&self) {
        self.world.cloud.restore(self.healthy.0.clone());
        self.world.kube.restore(&self.healthy.1);
        self.check_health();
    }

    /// What the health monitors find now: nodes answer where an endpoint is behind the node port, or on the node itself.
    pub(super) fn check_health(&self) {
        if !self.kind.is_monitored() {
            return;
        }
        let web = self.web();
        let local = web["spec"]["externalTrafficPolicy"] == "Local";
        let check = web["spec"]["healthCheckNodePort"].as_u64().filter(|_| local);
        let ports: Vec<u16> =
            (0..web["spec"]["ports"].as_array().unwrap().len()).map(|place| self.node_port(place)).collect();
        let data_path = self.world.kube.data_path();
        self.world.cloud.check_health(|address, port| {
            let answers = |port: u16| {
                let to = Destination { address, port, transport: InCluster::Tcp };
                data_path.arrive(to, address)
            };
            if check == Some(u64::from(port)) {
                // The service proxy counts its endpoints, whatever becomes of packets there.
                ports
                    .iter()
                    .flat_map(|port| answers(*port))
                    .any(|one| matches!(one, Ok(_) | Err(Stop::Policy | Stop::Port)))
            } else {
                answers(port).iter().any(Result::is_ok)
            }
        });
    }

    /// The words of the command line with which doctor looks.
    pub(super) fn command_line(&self) -> Vec<String> {
        let mut words = vec!["doctor".to_owned(), "default/web".to_owned()];
        words.extend(self.flags());
        words
    }

    /// The flags that lead a subcommand to this world.
    pub(super) fn flags(&self) -> [String; 3] {
        let file = |name: &str| self.file(name).display().to_string();
        let cloud = match self.kind.is_in_cloud() {
            true => format!("--cloud-config={}", file("cloud.conf")),
            false => "--no-cloud".to_owned(),
        };
        [format!("--kubeconfig={}", file("kubeconfig")), "--cluster-name=c1".to_owned(), cloud]
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// What names of the world resolve to, everywhere in it.
    pub(super) fn resolve(name: &str) -> Option<IpAddr> {
        [SUFFIX, "nip.io"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix)?.strip_suffix('.')?.parse().ok())
    }

    pub(super) fn web(&self) -> Value {
        self.world.service("web")
    }

    /// The node port of a port of the Service, by its place.
    pub(super) fn node_port(&self, place: usize) -> u16 {
        let port = self.web()["spec"]["ports"][place]["nodePort"].as_u64();
        port.and_then(|port| u16::try_from(port).ok()).unwrap_or_default()
    }

    /// The id of the load balancer.
    pub(super) fn load_balancer(&self) -> String {
        self.world.annotation("web", LB_ID).unwrap()
    }

    /// The first address that the load balancer is reached at, as the program published it.
    pub(super) fn address(&self) -> String {
        let web = self.web();
        let entry = &web["status"]["loadBalancer"]["ingress"][0];
        match entry["ip"].as_str() {
            Some(ip) => ip.to_owned(),
            None => self.world.annotation("web", "load-balancer-address").unwrap(),
        }
    }

    /// The listeners of the Service itself.
    pub(super) fn listeners(&self) -> Vec<Value> {
        let web = self.web();
        let ports: Vec<&Value> =
            web["spec"]["ports"].as_array().unwrap().iter().map(|port| &port["port"]).collect();
        let all = self.world.cloud.listeners().into_iter();
        let mut own: Vec<Value> =
            all.filter(|listener| ports.contains(&&listener["protocol_port"])).collect();
        own.sort_by_key(|listener| listener["protocol_port"].as_u64());
        own
    }

    /// The ids of the pools of the Service itself.
    pub(super) fn pools(&self) -> Vec<String> {
        self.listeners().iter().filter_map(|one| Some(one["default_pool_id"].as_str()?.to_owned())).collect()
    }

    /// A change of the load balancer by somebody with the rights of the project, and all that Octavia does for it.
    pub(super) fn octavia(&self, method: &http::Method, path: &str, body: &Value) -> Value {
        let path = format!("/v2.0/lbaas{path}");
        let (status, answer) = self.world.cloud.user().send(method, "load-balancer", &path, body);
        assert!((200..300).contains(&status), "{method} {path} {body}: {status} {answer}");
        self.world.cloud.settle();
        answer
    }

    /// A change of the network by an administrator.
    pub(super) fn neutron(&self, method: &http::Method, path: &str, body: &Value) -> Value {
        let path = format!("/v2.0{path}");
        let (status, answer) = self.world.cloud.admin().send(method, "network", &path, body);
        assert!((200..300).contains(&status), "{method} {path} {body}: {status} {answer}");
        answer
    }

    /// Publishes the Service so, as another writer would.
    pub(super) fn publish(&self, entries: &Value) {
        let status = json!({"status": {"loadBalancer": {"ingress": entries}}});
        self.world.kube.patch_status("services", "default", "web", &status).unwrap();
    }

    pub(super) fn patch(&self, resource: &str, name: &str, patch: &Value) {
        self.world.kube.patch(resource, "default", name, patch).unwrap();
    }
}

/// Has the real program serve a world of this kind, and ends the program.
pub(super) async fn served(kind: Kind) -> World {
    let mut world = unserved(kind);
    world.create(&kind.service());
    if kind.is_in_cloud() {
        world.start().await;
        world.until_published("web").await;
        if kind == Kind::Shared {
            world.create(&neighbour(&world));
            world.until_published("web2").await;
        }
        world.quiet().await;
        world.stop().await;
    } else {
        world.publish("web", &FOREIGN.to_string());
        overlay(&world).await;
    }
    world.cloud.settle();
    world
}

/// A cluster in which everything is there but the load balancer.
pub(super) fn unserved(kind: Kind) -> World {
    let (version, kubelet) = match kind {
        Kind::Hostname => (ApiVersion::V1_28, "v1.28.0"),
        _ => (ApiVersion::V1_36, "v1.36.0"),
    };
    let lifetime = Duration::from_secs(1 << 30);
    let cloud = Cloud::builder().nodes(2).ipv6(kind == Kind::DualStack).token_lifetime(lifetime).build();
    let mut world = World::in_cloud(version, cloud);
    world.settings.plans = false;
    world.settings.cloud_conf = kind.cloud_conf().to_owned();
    world.set_kubelets(kubelet);
    cluster::furnish(&world, kind, kubelet);
    lease(&world);
    world
}

/// Has this program lead from now on; nobody takes the Lease away while the test goes on.
pub(super) fn lease(world: &World) {
    let record = LeaderRecord::of_this_process(vec!["service-lb-controller".to_owned()], "c1", None, None);
    let _earlier = world.kube.delete("leases", "kube-system", LEASE);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": "kube-system", "annotations": record.annotations()},
        "spec": {"holderIdentity": record.identity, "leaseDurationSeconds": 86_400,
            "acquireTime": format!("{:.6}", world.kube.now()), "renewTime": format!("{:.6}", Timestamp::now())},
    });
    world.kube.create(&lease).unwrap();
}

/// A Service on the load balancer of `web`, on another port.
fn neighbour(world: &World) -> Value {
    let load_balancer = world.annotation("web", LB_ID).unwrap();
    let ports = json!([{"name": "other", "port": 8443, "protocol": "TCP", "nodePort": 30843}]);
    service(
        "web2",
        json!({"metadata": {"annotations": {LB_ID: load_balancer, PROXY: "v2"}}, "spec": {"ports": ports}}),
    )
}

/// Has ip-mode-overlay do its work.
async fn overlay(world: &World) {
    let client = kube::Client::new(world.kube.service(), "default");
    let rules = Rules { clouds: CLOUDS.iter().collect(), ..Rules::default() };
    let options = OverlayOptions { rules, ..OverlayOptions::default() };
    let overlay = Overlay::new(client, options, &mut Registry::default());
    let stop = CancellationToken::new();
    let running = tokio::spawn(overlay.run(stop.clone()));
    world.until_ingress("web", &format!("{FOREIGN}(Proxy)")).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}
