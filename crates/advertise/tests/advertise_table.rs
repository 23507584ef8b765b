//! Every combination of server, nodes, path, hostname and override has a stated result and reason.
//!
//! The snapshot states each cell; `expected` says the rule a second time, in the words of the documentation, so that
//! a changed snapshot alone cannot make a wrong decision pass.

use std::fmt::Write as _;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::LoadBalancerIngress;
use openstack_ccm_advertise::cluster::{Cluster, ServerSupport};
use openstack_ccm_advertise::entry::{of_address, of_hostname};
use openstack_ccm_advertise::node::{NodeVerdict, guess_by_kubelet, judge};
use openstack_ccm_advertise::{Advertisement, Mode, Publication, decide as decide_publication};
use openstack_ccm_core::advertise::{ClusterAccess, IpModeChoice, Needs, Path, Preference, SettingNames};
use rstest::rstest;

const ADDRESS: &str = "203.0.113.10";
const HOSTNAME: &str = "app.example.org";

const SETTINGS: SettingNames = SettingNames {
    ip_mode_annotation: "lb.example.org/ip-mode",
    hostname_annotation: "lb.example.org/hostname",
    cluster_sources_annotation: Some("lb.example.org/allow-cluster-sources"),
    ip_mode_setting: "ip-mode in lb.conf",
    hostname_suffix_setting: "hostname-suffix in lb.conf",
};

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

/// The decision for a Service that is not published yet, and has no source ranges.
fn decide(addresses: &[IpAddr], path: Path, preference: &Preference, cluster: &Cluster) -> Advertisement {
    let access = &ClusterAccess::Open;
    decide_publication(
        &Publication { addresses, path, preference, access, published: &[], settings: &SETTINGS },
        cluster,
    )
}

fn preference(hostname: Hostname, service_mode: Option<IpModeChoice>) -> Preference {
    Preference {
        service_mode,
        cluster_mode: IpModeChoice::Auto,
        hostname: (hostname == Hostname::Annotation).then(|| HOSTNAME.to_owned()),
        always_hostname: hostname == Hostname::EnabledSuffix,
        hostname_suffix: matches!(hostname, Hostname::Suffix | Hostname::EnabledSuffix)
            .then(|| "nip.example".to_owned()),
        keep_published: false,
    }
}

fn cluster(keeps: bool, kubelets: &[&str]) -> Cluster {
    let held: Vec<NodeVerdict> = kubelets.iter().map(|version| guess_by_kubelet(version)).collect();
    Cluster {
        gate: None,
        server: if keeps { ServerSupport::Keeps } else { ServerSupport::Drops },
        data_plane: judge(held.iter().map(|held| ("node", held))),
    }
}

fn published(advertisement: &Advertisement) -> String {
    let [entry] = advertisement.entries.as_slice() else { return "not one entry".to_owned() };
    match (&entry.ip, &entry.hostname, &entry.ip_mode) {
        (Some(_), None, Some(mode)) => format!("ip {mode}"),
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
    if wants_proxy && keeps && (nodes == "new" || insists) {
        return "ip Proxy".to_owned();
    }
    match (wants_proxy && through, hostname) {
        (true, Hostname::Annotation) => HOSTNAME.to_owned(),
        (true, Hostname::Suffix | Hostname::EnabledSuffix) => format!("{ADDRESS}.nip.example"),
        // Nodes that ignore the mode lose nothing by it.
        (true, Hostname::None) if keeps => "ip Proxy".to_owned(),
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
fn who_asks_for_proxy_is_believed_over_the_judgement_of_the_nodes() {
    let address: IpAddr = ADDRESS.parse().unwrap();
    let proxy = Path::ThroughLoadBalancer(Needs::ProxyProtocol);
    let operator = Preference { cluster_mode: IpModeChoice::Proxy, ..preference(Hostname::None, None) };
    for path in [proxy, Path::Direct] {
        let decision = decide(&[address], path, &operator, &cluster(true, &["v1.28.1"]));
        assert_eq!(published(&decision), "ip Proxy");
        assert!(decision.warning.unwrap().contains("v1.28.1"));
    }
    let suffix = Preference { cluster_mode: IpModeChoice::Proxy, ..preference(Hostname::Suffix, None) };
    let decision = decide(&[address], proxy, &suffix, &cluster(true, &["v1.28.1"]));
    assert_eq!(published(&decision), "ip Proxy");

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

/// Who asks for `vip` against what the traffic needs reads what pods get, and how to undo what was asked.
#[rstest]
#[case::plain(Path::Direct, None)]
#[case::proxy(Path::ThroughLoadBalancer(Needs::ProxyProtocol), Some("`broken header`"))]
#[case::tls(Path::ThroughLoadBalancer(Needs::TlsTermination), Some("requests over TLS fail"))]
#[case::header(Path::ThroughLoadBalancer(Needs::HeaderInsertion), Some("without the HTTP headers"))]
#[case::cluster(
    Path::ThroughLoadBalancer(Needs::ClusterSources),
    Some("the nodes drop the pods' connections")
)]
#[case::shared(Path::ThroughLoadBalancer(Needs::SharedAddress), None)]
fn who_asks_for_vip_reads_what_pods_get(#[case] path: Path, #[case] effect: Option<&str>) {
    let address: IpAddr = ADDRESS.parse().unwrap();
    let service = preference(Hostname::None, Some(IpModeChoice::Vip));
    let operator = Preference { cluster_mode: IpModeChoice::Vip, ..preference(Hostname::None, None) };
    let both =
        [(service, "Remove the annotation lb.example.org/ip-mode"), (operator, "remove ip-mode in lb.conf")];
    for (preference, remedy) in both {
        for keeps in [true, false] {
            let decision = decide(&[address], path, &preference, &cluster(keeps, &["v1.36.3"]));
            assert_eq!(decision.mode, Mode::Vip);
            let warning = decision.bypassed.as_deref();
            assert_eq!(warning.is_some(), effect.is_some(), "{warning:?}");
            let warning = warning.unwrap_or_default();
            assert!(
                effect.is_none_or(|effect| warning.contains(effect) && warning.contains(remedy)),
                "{warning}"
            );
        }
    }
    let auto = decide(&[address], path, &preference(Hostname::None, None), &cluster(true, &["v1.36.3"]));
    assert_eq!(auto.bypassed, None);
}

#[test]
fn the_mode_of_a_status_is_known_where_all_entries_have_the_same() {
    let entry = |mode: Option<&str>| of_address(ADDRESS.parse().unwrap(), mode);
    assert_eq!(Mode::of(&[]), None);
    assert_eq!(Mode::of(&[entry(None), entry(Some("VIP"))]), Some(Mode::Vip));
    assert_eq!(Mode::of(&[entry(Some("Proxy"))]), Some(Mode::Proxy));
    assert_eq!(Mode::of(&[of_hostname(HOSTNAME)]), Some(Mode::Hostname));
    assert_eq!(Mode::of(&[entry(Some("Proxy")), entry(None)]), None);
    assert_eq!(Mode::of(&[entry(Some("Router"))]), None);
    assert_eq!(Mode::of(&[LoadBalancerIngress::default()]), None);
}

/// A node that ignores the mode loses nothing by it, and all others lose everything by `VIP`.
#[rstest]
#[case::proxy(Needs::ProxyProtocol, true)]
#[case::tls(Needs::TlsTermination, true)]
#[case::header(Needs::HeaderInsertion, true)]
#[case::shared(Needs::SharedAddress, false)]
fn one_old_node_turns_no_service_from_proxy_to_vip(#[case] needs: Needs, #[case] warns: bool) {
    let address: IpAddr = ADDRESS.parse().unwrap();
    let none = preference(Hostname::None, None);
    let mixed = cluster(true, &["v1.36.3", "v1.29.4"]);
    let decision = decide(&[address], Path::ThroughLoadBalancer(needs), &none, &mixed);
    assert_eq!(published(&decision), "ip Proxy");
    assert_eq!(decision.warning.is_some_and(|warning| warning.contains("v1.29.4")), warns);
}

const RANGES: [(&str, bool); 2] = [("ranges hold the cluster", false), ("ranges lack the cluster", true)];

/// What the status says at the switch, and what it says after it.
#[rstest]
#[case::plain(Path::Direct, "VIP", ["ip VIP", "ip VIP"])]
#[case::tls(Path::ThroughLoadBalancer(Needs::TlsTermination), "VIP", ["ip Proxy", "ip VIP"])]
#[case::header(Path::ThroughLoadBalancer(Needs::HeaderInsertion), "VIP", ["ip Proxy", "ip VIP"])]
#[case::shared(Path::ThroughLoadBalancer(Needs::SharedAddress), "VIP", ["ip Proxy", "ip VIP"])]
#[case::proxy(Path::ThroughLoadBalancer(Needs::ProxyProtocol), "VIP", ["ip Proxy", "ip Proxy"])]
#[case::proxy_published(Path::ThroughLoadBalancer(Needs::ProxyProtocol), "Proxy", ["ip Proxy", "ip Proxy"])]
#[case::tls_published_with_proxy(Path::ThroughLoadBalancer(Needs::TlsTermination), "Proxy", ["ip Proxy", "ip Proxy"])]
#[case::tls_new(Path::ThroughLoadBalancer(Needs::TlsTermination), "", ["ip Proxy", "ip Proxy"])]
fn pods_that_reach_the_application_are_not_led_to_a_load_balancer_that_turns_them_away(
    #[case] path: Path,
    #[case] mode: &str,
    #[case] expected: [&str; 2],
) {
    let address: IpAddr = ADDRESS.parse().unwrap();
    let before = of_address(address, Some(mode));
    let before = if mode.is_empty() { vec![] } else { vec![before] };
    for ((name, lacks), expected) in RANGES.into_iter().zip(expected) {
        let access =
            if lacks { ClusterAccess::Without(vec!["10.0.0.0/24".into()]) } else { ClusterAccess::Open };
        let preference = preference(Hostname::None, None);
        let publication = Publication {
            addresses: &[address],
            path,
            preference: &preference,
            access: &access,
            published: &before,
            settings: &SETTINGS,
        };
        let decision = decide_publication(&publication, &cluster(true, &["v1.36.3"]));
        assert_eq!(published(&decision), expected, "{name}");
        let warning = decision.shut_out.unwrap_or_default();
        let warns = warning.contains("10.0.0.0/24") && warning.contains("allow-cluster-sources");
        assert_eq!(warns, lacks && path != Path::Direct, "{name}: {warning}");
    }
}

#[rstest]
#[case::unknown_sources(ClusterAccess::Unknown("the cloud answered 500".into()), Hostname::None, None, Mode::Vip)]
#[case::no_hostname_either(ClusterAccess::Without(vec!["10.0.0.0/24".into()]), Hostname::Suffix, None, Mode::Vip)]
#[case::the_service_asks(
    ClusterAccess::Without(vec!["10.0.0.0/24".into()]),
    Hostname::None,
    Some(IpModeChoice::Proxy),
    Mode::Proxy
)]
fn an_address_that_pods_use_keeps_its_mode_unless_somebody_asks(
    #[case] access: ClusterAccess,
    #[case] hostname: Hostname,
    #[case] mode: Option<IpModeChoice>,
    #[case] expected: Mode,
) {
    let address: IpAddr = ADDRESS.parse().unwrap();
    let preference = preference(hostname, mode);
    let publication = Publication {
        addresses: &[address],
        path: Path::ThroughLoadBalancer(Needs::TlsTermination),
        preference: &preference,
        access: &access,
        published: &[of_address(address, None)],
        settings: &SETTINGS,
    };
    let decision = decide_publication(&publication, &cluster(true, &["v1.29.4"]));
    assert_eq!(decision.mode, expected);
    assert!(decision.shut_out.is_some());
}
