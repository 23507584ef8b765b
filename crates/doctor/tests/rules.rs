//! What nodes do, by dumps of their rules.
//!
//! `iptables.txt`, `iptables.nft.json` and `nftables.nft.json` were dumped beside a real kube-proxy 1.36.3, with iptables 1.8.9 and
//! nft 1.0.6; `iptables-flushed.txt` after `iptables -F` in both tables. All of them are of the same Services, which are distinguished
//! here by their addresses.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use openstack_ccm_doctor::code::Code;
use openstack_ccm_doctor::rules::{Fate, Format, RulesError, Target, Walk, walk};
use rstest::rstest;

const IPTABLES: &str = include_str!("dumps/iptables.txt");
const FLUSHED: &str = include_str!("dumps/iptables-flushed.txt");
const IPTABLES_BY_NFT: &str = include_str!("dumps/iptables.nft.json");
const NFTABLES: &str = include_str!("dumps/nftables.nft.json");
const NOTHING: &str = include_str!("dumps/nothing.nft.json");

/// A Service with `ipMode: VIP`, two pods, TCP 80 and 443 and UDP 53.
const VIP: &str = "203.0.113.10:443";
/// One with `ipMode: Proxy`.
const PROXY: &str = "203.0.113.20:443";
/// One with source ranges.
const RANGES: &str = "203.0.113.30:443";
/// One without endpoints.
const EMPTY: &str = "203.0.113.40:80";
/// One with `externalTrafficPolicy: Local`, and with an endpoint on this node.
const LOCAL: &str = "203.0.113.50:80";
/// The same without an endpoint on this node.
const FAR_AWAY: &str = "203.0.113.60:80";

fn walked(dump: &str, target: &str) -> Walk {
    let target: Target = target.parse().unwrap();
    walk(dump, &target, None).unwrap_or_else(|error| panic!("{error}"))
}

fn fate(dump: &str, target: &str) -> String {
    match walked(dump, target).fate {
        Fate::Through => "through".to_owned(),
        Fate::ToPod { pods, only_from } => format!("{} from {}", pods.join("+"), only_from.join("+")),
        Fate::Rejected => "rejected".to_owned(),
        Fate::Dropped { .. } => "dropped".to_owned(),
        Fate::NoRules => "no rules".to_owned(),
    }
}

const PODS: &str = "10.244.1.7:8080+10.244.2.8:8080 from ";

#[rstest]
#[case::vip(VIP, PODS)]
#[case::udp("203.0.113.10:53/udp", PODS)]
#[case::other_port("203.0.113.10:8443", "through")]
#[case::tcp_of_a_udp_port("203.0.113.10:53", "through")]
#[case::proxy(PROXY, "through")]
#[case::source_ranges(RANGES, "10.244.1.7:8080+10.244.2.8:8080 from 192.0.2.7/32+198.51.100.0/24")]
#[case::no_endpoint(EMPTY, "rejected")]
#[case::local(LOCAL, PODS)]
// Packets of pods are led to the pods of other nodes, in spite of the policy.
#[case::local_elsewhere(FAR_AWAY, "10.244.2.8:8080 from ")]
#[case::another_address("203.0.113.99:443", "through")]
fn both_modes_of_kube_proxy_say_the_same(#[case] target: &str, #[case] expected: &str) {
    assert_eq!(fate(IPTABLES, target), expected, "iptables");
    assert_eq!(fate(NFTABLES, target), expected, "nftables");
}

/// nft shows the rules of iptables too, but not the pods that they lead to.
#[rstest]
#[case::vip(VIP, true)]
#[case::proxy(PROXY, false)]
fn rules_of_iptables_are_read_from_nft_too(#[case] target: &str, #[case] to_pod: bool) {
    let walk = walked(IPTABLES_BY_NFT, target);
    assert_eq!(matches!(walk.fate, Fate::ToPod { .. }), to_pod, "{walk:?}");
    assert_eq!(walk.format, Format::Nftables);
}

#[test]
fn the_chains_are_listed_one_after_the_other() {
    let steps = walked(IPTABLES, VIP).steps;
    let expected = [
        "nat PREROUTING -> KUBE-SERVICES",
        "KUBE-SERVICES -> KUBE-EXT-54WW65JLHZHRV7HC (default/web:https loadbalancer IP)",
    ];
    assert_eq!(steps[..2], expected, "{steps:#?}");
    assert!(steps.last().unwrap().ends_with("to 10.244.2.8:8080"), "{steps:#?}");
}

fn codes(walk: &Walk) -> Vec<Code> {
    walk.findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn flushed_rules_are_found() {
    let flushed = walked(FLUSHED, VIP);
    assert_eq!((flushed.fate.clone(), codes(&flushed)), (Fate::NoRules, vec![Code::D303]));
    let nothing = walked(NOTHING, VIP);
    assert_eq!((nothing.fate.clone(), codes(&nothing)), (Fate::NoRules, vec![Code::D303]));
    // A reload may leave the chains and take only the jump.
    let jump = "-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n";
    assert!(IPTABLES.contains(jump));
    let without = walked(&IPTABLES.replace(jump, ""), VIP);
    assert_eq!(codes(&without), [Code::D303]);
}

#[test]
fn rules_of_two_modes_are_found() {
    let join =
        |dump: &str| dump.trim().trim_start_matches("{\"nftables\": [").trim_end_matches("]}").to_owned();
    let both = format!("{{\"nftables\": [{},{}]}}", join(IPTABLES_BY_NFT), join(NFTABLES));
    assert_eq!(codes(&walked(&both, VIP)), [Code::D304]);
    assert!(codes(&walked(NFTABLES, VIP)).is_empty());
}

const IPVS: &str = "\
-A -t 10.96.0.10:443 -s rr
-a -t 10.96.0.10:443 -r 10.244.1.7:8080 -m -w 1
-A -t 203.0.113.10:443 -s rr
-a -t 203.0.113.10:443 -r 10.244.1.7:8080 -m -w 1
-a -t 203.0.113.10:443 -r 10.244.2.8:8080 -m -w 1
-A -u 203.0.113.10:53 -s rr
-A -t [2001:db8::10]:443 -s rr
-a -t [2001:db8::10]:443 -r [fd00::7]:8080 -m -w 1
";

#[rstest]
#[case::tcp(VIP, PODS)]
#[case::without_a_server("203.0.113.10:53/udp", "rejected")]
#[case::proxy(PROXY, "through")]
#[case::ipv6("[2001:db8::10]:443", "[fd00::7]:8080 from ")]
fn ipvs_is_read(#[case] target: &str, #[case] expected: &str) {
    assert_eq!(fate(IPVS, target), expected);
}

const CILIUM: &str = "\
ID   Frontend                Service Type   Backend
1    10.96.0.1:443/TCP       ClusterIP      1 => 172.18.0.2:6443/TCP (active)
7    203.0.113.10:443/TCP    LoadBalancer   1 => 10.244.1.7:8080/TCP (active)
                                            2 => 10.244.2.8:8080/TCP (active)
8    203.0.113.40:80/TCP     LoadBalancer
9    203.0.113.50:80         LoadBalancer   1 => 10.244.1.7:8080 (active)
";

#[rstest]
#[case::tcp(VIP, PODS)]
#[case::proxy(PROXY, "through")]
#[case::without_a_backend(EMPTY, "rejected")]
#[case::of_an_old_version(LOCAL, "10.244.1.7:8080 from ")]
fn cilium_is_read(#[case] target: &str, #[case] expected: &str) {
    assert_eq!(fate(CILIUM, target), expected);
}

#[test]
fn what_is_none_of_these_is_refused_with_a_reason() {
    let target: Target = VIP.parse().unwrap();
    assert_eq!(walk("  \n", &target, None), Err(RulesError::Empty));
    assert_eq!(walk("hello", &target, None), Err(RulesError::Unknown));
    assert!(matches!(walk("{}", &target, None), Err(RulesError::Json(_))));
    let cut = "*nat\n-A KUBE-SERVICES -m comment --comment \"cut";
    assert!(matches!(walk(cut, &target, None), Err(RulesError::Line { line: 2, .. })));
    assert_eq!(walk("", &target, Some(Format::Iptables)).unwrap().fate, Fate::NoRules);
    for wrong in ["203.0.113.10", "shop:443", "203.0.113.10:443/icmp", ""] {
        assert!(wrong.parse::<Target>().is_err(), "{wrong}");
    }
}
