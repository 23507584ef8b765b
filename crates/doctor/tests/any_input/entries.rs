//! What is fed with any input. The fuzz target `rules` in `fuzz/` calls the same function.

use openstack_ccm_doctor::facts::DnsText;
use openstack_ccm_doctor::leftovers::dns;
use openstack_ccm_doctor::output::table::{Style, checks};
use openstack_ccm_doctor::rules::{Fate, Format, Target, walk};

/// A dump of rules, read as each of the formats; and a Corefile.
pub fn rules(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let targets = ["203.0.113.10:443", "203.0.113.10:53/udp", "[2001:db8::10]:443"];
    let formats =
        [None, Some(Format::Iptables), Some(Format::Nftables), Some(Format::Ipvs), Some(Format::Cilium)];
    for target in targets {
        let target: Target = target.parse().unwrap_or_else(|error| panic!("{error}"));
        for format in formats {
            let Ok(walk) = walk(&text, &target, format) else { continue };
            assert!(!walk.steps.is_empty(), "every walk has steps");
            assert!(walk.fate != Fate::NoRules || !walk.findings.is_empty(), "missing rules are a finding");
            let style = Style { short: false, colours: false, width: Some(80) };
            let found: Vec<_> = walk.findings.into_iter().map(Into::into).collect();
            let page = checks("rules", &found, style);
            assert!(page.chars().all(|character| !character.is_control() || character == '\n'));
        }
    }
    let config_map = "kube-system/coredns".to_owned();
    let _ = dns::lines(&[DnsText { config_map, key: "Corefile".to_owned(), text: text.into_owned() }]);
    if let Ok(text) = std::str::from_utf8(input) {
        let _ = text.parse::<Target>();
    }
}
