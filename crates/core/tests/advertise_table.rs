//! Every combination of server, nodes, path, hostname and override has a stated result and reason.
//!
//! The snapshot states each cell; `expected` says the rule a second time, in the words of the documentation, so that
//! a changed snapshot alone cannot make a wrong decision pass.

use std::fmt::Write as _;
use std::net::IpAddr;

use openstack_ccm_core::advertise::capability::{Cluster, ServerSupport};
use openstack_ccm_core::advertise::data_plane::{Evidence, judge};
use openstack_ccm_core::advertise::{Advertisement, IpModeChoice, Needs, Path, Preference, decide};

const ADDRESS: &str = "203.0.113.10";
const HOSTNAME: &str = "app.example.org";

/// API servers and whether each keeps `ipMode`: unknown before 1.29, a gate that is off in 1.29 and on from 1.30,
/// locked on from 1.32.
const SERVERS: [(&str, bool); 11] = [
    ("1.24", false),
    ("1.25", false),
    ("1.26", false),
    ("1.27", false),
    ("1.28", false),
    ("1.29 off", false),
    ("1.29 on", true),
    ("1.30", true),
    ("1.31 off", false),
    ("1.32", true),
    ("1.36", true),
];

const NODES: [(&str, &[&str]); 3] =
    [("old", &["v1.29.4", "v1.28.9"]), ("mixed", &["v1.36.3", "v1.29.4"]), ("new", &["v1.36.3", "v1.30.0"])];

const PATHS: [(&str, Path); 4] = [
    ("plain", Path::Direct),
    ("PROXY", Path::ThroughLoadBalancer(Needs::ProxyProtocol)),
    ("TLS", Path::ThroughLoadBalancer(Needs::TlsTermination)),
    ("XFF", Path::ThroughLoadBalancer(Needs::HeaderInsertion)),
];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Hostname {
    None,
    Annotation,
    Suffix,
    EnabledSuffix,
}

const HOSTNAMES: [(&str, Hostname); 4] = [
    ("no hostname", Hostname::None),
    ("annotation", Hostname::Annotation),
    ("suffix", Hostname::Suffix),
    ("enabled suffix", Hostname::EnabledSuffix),
];

const OVERRIDES: [(&str, Option<IpModeChoice>); 4] = [
    ("-", None),
    ("auto", Some(IpModeChoice::Auto)),
    ("proxy", Some(IpModeChoice::Proxy)),
    ("vip", Some(IpModeChoice::Vip)),
];

fn preference(hostname: Hostname, service_mode: Option<IpModeChoice>) -> Preference {
    Preference {
        service_mode,
        cluster_mode: IpModeChoice::Auto,
        hostname: (hostname == Hostname::Annotation).then(|| HOSTNAME.to_owned()),
        always_hostname: hostname == Hostname::EnabledSuffix,
        hostname_suffix: matches!(hostname, Hostname::Suffix | Hostname::EnabledSuffix)
            .then(|| "nip.example".to_owned()),
    }
}

fn cluster(keeps: bool, kubelets: &[&str]) -> Cluster {
    let evidence: Vec<Evidence> = kubelets.iter().map(|version| Evidence::kubelet(version)).collect();
    Cluster {
        gate: None,
        server: if keeps { ServerSupport::Keeps } else { ServerSupport::Drops },
        data_plane: judge(evidence.iter().map(|evidence| ("node", evidence))),
    }
}

fn published(advertisement: &Advertisement) -> String {
    let [entry] = advertisement.entries.as_slice() else { return "not one entry".to_owned() };
    match (&entry.ip, &entry.hostname, &entry.ip_mode) {
        (Some(_), None, Some(mode)) => format!("ip {}", mode.as_str()),
        (Some(_), None, None) => "ip".to_owned(),
        (None, Some(hostname), None) => hostname.clone(),
        other => format!("invalid entry {other:?}"),
    }
}

/// The rule in words.
fn expected(
    keeps: bool,
    nodes: &str,
    path: Path,
    hostname: Hostname,
    service_mode: Option<IpModeChoice>,
) -> String {
    let vip = if keeps { "ip VIP" } else { "ip" };
    let through = path != Path::Direct;
    // OCCM's meaning of both hostname options, unless the Service says how it wants its address published.
    if service_mode.is_none() {
        if hostname == Hostname::Annotation {
            return HOSTNAME.to_owned();
        }
        if hostname == Hostname::EnabledSuffix && path == Path::ThroughLoadBalancer(Needs::ProxyProtocol) {
            return format!("{ADDRESS}.nip.example");
        }
    }
    let wants_proxy =
        service_mode == Some(IpModeChoice::Proxy) || (through && service_mode != Some(IpModeChoice::Vip));
    let insists = service_mode == Some(IpModeChoice::Proxy);
    match (wants_proxy, keeps && (nodes == "new" || insists), through, hostname) {
        (true, true, _, _) => "ip Proxy".to_owned(),
        (true, false, true, Hostname::Annotation) => HOSTNAME.to_owned(),
        (true, false, true, Hostname::Suffix | Hostname::EnabledSuffix) => format!("{ADDRESS}.nip.example"),
        _ => vip.to_owned(),
    }
}

#[test]
fn every_combination_has_a_stated_result_and_reason() {
    let address: IpAddr = ADDRESS.parse().unwrap();
    let mut table = String::from("server | nodes | path | hostname | ip-mode | published | reason | warns\n");
    for (server, keeps) in SERVERS {
        for (nodes, kubelets) in NODES {
            for (path_name, path) in PATHS {
                for (hostname_name, hostname) in HOSTNAMES {
                    for (mode_name, mode) in OVERRIDES {
                        let decision =
                            decide(&[address], path, &preference(hostname, mode), &cluster(keeps, kubelets));
                        let result = published(&decision);
                        let cell =
                            format!("{server} | {nodes} | {path_name} | {hostname_name} | {mode_name}");
                        assert_eq!(result, expected(keeps, nodes, path, hostname, mode), "{cell}");
                        let warns = if decision.warning.is_some() { "yes" } else { "no" };
                        writeln!(table, "{cell} | {result} | {} | {warns}", decision.reason.as_str())
                            .unwrap();
                    }
                }
            }
        }
    }
    insta::assert_snapshot!("advertise_table", table);
}

#[test]
fn the_flag_replaces_the_detection() {
    let address: IpAddr = ADDRESS.parse().unwrap();
    let proxy = Path::ThroughLoadBalancer(Needs::ProxyProtocol);
    let none = preference(Hostname::None, None);
    let old = ["v1.29.4"];
    let forced = |gate, server| Cluster { gate: Some(gate), server, ..cluster(true, &old) };
    let result = |cluster: &Cluster| published(&decide(&[address], proxy, &none, cluster));

    assert_eq!(result(&forced(true, ServerSupport::Unknown)), "ip Proxy");
    assert_eq!(result(&forced(true, ServerSupport::Keeps)), "ip Proxy");
    assert_eq!(result(&forced(false, ServerSupport::Keeps)), "ip VIP");
    assert_eq!(result(&forced(false, ServerSupport::Unknown)), "ip");
    // A server that was seen to drop the field is believed more than the flag.
    assert_eq!(result(&forced(true, ServerSupport::Drops)), "ip");
}

#[test]
fn a_server_that_was_not_asked_yet_gets_the_form_that_is_right_everywhere() {
    let address: IpAddr = ADDRESS.parse().unwrap();
    let unknown = Cluster { server: ServerSupport::Unknown, ..cluster(true, &["v1.36.3"]) };
    let proxy = Path::ThroughLoadBalancer(Needs::ProxyProtocol);
    let decision = decide(&[address], proxy, &preference(Hostname::Suffix, None), &unknown);
    assert_eq!(published(&decision), format!("{ADDRESS}.nip.example"));
    let decision = decide(&[address], Path::Direct, &preference(Hostname::Suffix, None), &unknown);
    assert_eq!(published(&decision), "ip");
}

#[test]
fn the_operators_wish_yields_to_the_nodes_but_the_services_does_not() {
    let address: IpAddr = ADDRESS.parse().unwrap();
    let proxy = Path::ThroughLoadBalancer(Needs::ProxyProtocol);
    let operator = Preference { cluster_mode: IpModeChoice::Proxy, ..preference(Hostname::None, None) };
    let decision = decide(&[address], proxy, &operator, &cluster(true, &["v1.28.1"]));
    assert_eq!(published(&decision), "ip VIP");
    assert!(decision.warning.unwrap().contains("loadbalancer.openstack.org/hostname"));

    let service = preference(Hostname::None, Some(IpModeChoice::Proxy));
    let decision = decide(&[address], proxy, &service, &cluster(true, &["v1.28.1"]));
    assert_eq!(published(&decision), "ip Proxy");
    assert!(decision.warning.unwrap().contains("v1.28.1"));
}

#[test]
fn each_address_of_a_dual_stack_service_has_an_entry_of_the_same_kind() {
    let addresses: Vec<IpAddr> = vec![ADDRESS.parse().unwrap(), "2001:db8::5".parse().unwrap()];
    let proxy = Path::ThroughLoadBalancer(Needs::ProxyProtocol);
    let modern = decide(&addresses, proxy, &preference(Hostname::None, None), &cluster(true, &["v1.36.3"]));
    assert_eq!(modern.entries.len(), 2);
    assert!(
        modern.entries.iter().all(|entry| entry.ip.is_some() && entry.ip_mode == modern.entries[0].ip_mode)
    );
    let old = decide(&addresses, proxy, &preference(Hostname::Suffix, None), &cluster(false, &["v1.28.3"]));
    let names: Vec<_> = old.entries.iter().filter_map(|entry| entry.hostname.as_deref()).collect();
    assert_eq!(names, ["203.0.113.10.nip.example", "2001-db8--5.nip.example"]);
}
