//! What holds for every input.

use openstack_ccm_provider_openstack::load_balancer::annotations::ALL;
use openstack_ccm_provider_openstack::load_balancer::settings::floating_subnet::{NamePattern, TagCondition};
use openstack_ccm_provider_openstack::load_balancer::settings::{NodeSelector, ReleaseSettings};
use proptest::prelude::*;
use proptest::sample::select;

use super::fixture::Case;

/// Arbitrary texts, and such as come near to what is read.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,40}",
        "[-+]?[0-9]{0,25}",
        "[!~&]{0,3}[\\[\\]{}()*?/,|^$\\\\a-c-]{0,20}",
        "[0-9a-fA-F-]{32,36}",
        "[0-9./:a-f, ]{0,40}",
        "[a-z=, ]{0,20}",
    ]
}

proptest! {
    #[test]
    fn reading_never_panics_and_errors_name_their_key(
        annotations in prop::collection::btree_map(select(ALL.to_vec()).prop_map(|annotation| annotation.key), value(), 0..6),
        address in prop::option::of(value()),
        ranges in prop::collection::vec(value(), 0..3),
    ) {
        let mut case = Case::new();
        for (key, value) in annotations {
            case = case.annotate(key, value);
        }
        case.service.load_balancer_ip = address;
        case.service.source_ranges = ranges;
        let _ = ReleaseSettings::read(&case.service, &case.config);
        match case.read().0 {
            Ok(settings) => {
                for port in &case.service.ports {
                    let _ = (settings.listener_protocol(port), settings.pool_protocol(port));
                }
                prop_assert!(!settings.source_ranges.networks.is_empty());
                prop_assert!(settings.proxy_protocol.is_none() || settings.headers.iter().all(|one| one.goes_with_proxy()));
                prop_assert!(settings.unreadable.is_empty());
            }
            Err(faults) => {
                for message in faults.messages() {
                    prop_assert!(message.starts_with("annotation ") || message.starts_with("spec.") || message.contains("cloud.conf"));
                }
            }
        }
    }

    #[test]
    fn patterns_never_panic(pattern in value(), name in ".{0,20}") {
        if let Ok(pattern) = NamePattern::parse(&pattern) {
            pattern.matches(&name);
        }
        if let Ok(condition) = TagCondition::parse(&pattern) {
            condition.matches(&[name]);
        }
        let _ = NodeSelector::parse(&pattern);
    }

    #[test]
    fn a_name_without_special_letters_matches_itself_only(name in "[a-zA-Z0-9._ +()|^$=\\\\-]{1,20}", other in "[a-zA-Z0-9._ -]{0,20}") {
        prop_assume!(!name.starts_with(['!', '~']));
        let pattern = NamePattern::parse(&name).unwrap();
        prop_assert!(pattern.matches(&name));
        prop_assert_eq!(pattern.matches(&other), name == other);
        let negated = NamePattern::parse(&format!("!{name}")).unwrap();
        prop_assert!(!negated.matches(&name));
    }
}
