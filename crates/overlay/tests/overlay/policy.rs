//! What `policy` prints.

use openstack_ccm_overlay::policy::{ApiVersion, yaml};
use openstack_ccm_overlay::rules::{Rules, clouds};
use rstest::rstest;

fn rules(names: &[&str], annotations: &[&str]) -> Rules {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    Rules {
        clouds: if names.is_empty() { Vec::new() } else { clouds(&names).unwrap() },
        annotations: annotations.iter().map(|pair| pair.parse().unwrap()).collect(),
        ..Rules::default()
    }
}

#[rstest]
#[case::own_annotation_only("own", &[], &[], ApiVersion::V1)]
#[case::digitalocean("digitalocean", &["digitalocean"], &[], ApiVersion::V1)]
#[case::all_and_further("all", &["alibaba", "civo", "cloudstack", "digitalocean", "linode", "vultr"], &["lb.example.org/proxy=on", "lb.example.org/tls"], ApiVersion::V1Beta1)]
fn the_policy_is_as_it_was_looked_at(
    #[case] name: &str,
    #[case] clouds: &[&str],
    #[case] annotations: &[&str],
    #[case] version: ApiVersion,
) {
    insta::assert_snapshot!(format!("policy_{name}"), yaml(&rules(clouds, annotations), version));
}

#[test]
fn a_value_cannot_break_out_of_its_string() {
    let text = yaml(&rules(&[], &["k=it's"]), ApiVersion::V1);
    assert!(text.contains(r"== 'it\'s'"), "{text}");
}
