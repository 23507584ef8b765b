//! Labels of a node that describe its machine.

use std::collections::BTreeMap;

use super::Instance;

/// Deprecated label keys, each with the key that replaced it.
const PAIRS: [(&str, &str); 3] = [
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// Domains whose labels only Kubernetes itself may set, with their sub-domains.
const RESERVED: [&str; 2] = ["kubernetes.io", "k8s.io"];

/// Longest value of a label.
pub const MAX_VALUE_LENGTH: usize = 63;

/// Labels to set, and labels of the provider that are not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Labels to set, overwriting.
    pub set: BTreeMap<String, String>,
    /// Labels that are not set and why, for the log.
    pub left_out: Vec<String>,
}

/// Returns the labels for a new node: instance type, zone and region under the old and the new key, overwriting present
/// values; the provider's other labels only if the key is free and not reserved for Kubernetes.
pub fn initial(instance: &Instance, present: &BTreeMap<String, String>) -> Labels {
    let mut labels = Labels::default();
    let values = [&instance.instance_type, &instance.zone, &instance.region];
    for ((beta, stable), value) in PAIRS.into_iter().zip(values) {
        let Some(value) = value.as_ref().filter(|value| !value.is_empty()) else { continue };
        if is_value(value) {
            labels.set.extend([beta, stable].map(|key| (key.to_owned(), value.clone())));
        } else {
            labels.left_out.push(format!("{stable}: {value:?} cannot be the value of a label"));
        }
    }
    for (key, value) in instance.labels.iter().filter(|(_, value)| !value.is_empty()) {
        match present.get(key) {
            _ if is_reserved(key) => {
                labels.left_out.push(format!("{key}: the domain is reserved for Kubernetes"));
            }
            Some(other) if other != value => {
                labels
                    .left_out
                    .push(format!("{key}: the node has {other:?}, but the provider reports {value:?}"));
            }
            Some(_) => {}
            None => {
                labels.set.insert(key.clone(), value.clone());
            }
        }
    }
    labels
}

/// Returns the labels that an initialised node lacks: each new key gets the value of its deprecated key.
pub fn reconcile(present: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    PAIRS
        .into_iter()
        .filter_map(|(beta, stable)| {
            let value = present.get(beta)?;
            (present.get(stable) != Some(value)).then(|| (stable.to_owned(), value.clone()))
        })
        .collect()
}

/// Returns the changes after which an initialised node has the further labels of its machine as they are now; `None` removes one.
pub fn followed(instance: &Instance, present: &BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
    let labels = instance.labels.iter().filter(|(key, value)| !is_reserved(key) && is_value(value));
    labels
        .map(|(key, value)| (key, Some(value).filter(|value| !value.is_empty())))
        .filter(|(key, value)| present.get(*key) != *value)
        .map(|(key, value)| (key.clone(), value.cloned()))
        .collect()
}

/// A zone or region that a label of a node names, and where its machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved<'a> {
    /// The label.
    pub key: &'static str,
    /// The label's value.
    pub before: &'a str,
    /// The zone or region of the machine.
    pub now: &'a str,
}

/// Returns where the machine of an initialised node is no longer. These labels are never changed: Kubernetes documents them as lasting,
/// and volumes are bound to them.
pub fn moved<'a>(instance: &'a Instance, present: &'a BTreeMap<String, String>) -> Vec<Moved<'a>> {
    let [_, (_, zone), (_, region)] = PAIRS;
    [(zone, &instance.zone), (region, &instance.region)]
        .into_iter()
        .filter_map(|(key, now)| {
            let (before, now) = (present.get(key)?.as_str(), now.as_deref().filter(|now| !now.is_empty())?);
            (before != now).then_some(Moved { key, before, now })
        })
        .collect()
}

fn is_reserved(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    RESERVED.into_iter().any(|reserved| {
        domain.strip_suffix(reserved).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// Whether a text can be the value of a label: empty, or up to 63 letters, digits, `-`, `_` and `.` between a letter or
/// digit at each end.
pub fn is_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= MAX_VALUE_LENGTH
        && bytes.iter().copied().all(inner)
        && edge(bytes.first())
        && edge(bytes.last())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn with(further: &[(&str, &str)]) -> Instance {
        Instance { labels: labels(further), ..Instance::default() }
    }

    /// Zone, region and instance type become labels under their old and their new names.
    ///
    /// Framework: N6, same.
    #[test]
    fn framework_n6_zone_region_and_type_are_labels() {
        let instance = Instance {
            instance_type: Some("m1.small".into()),
            zone: Some("zone-1".into()),
            region: Some("R1".into()),
            ..Instance::default()
        };
        let before = labels(&[("topology.kubernetes.io/zone", "old")]);
        let expected = labels(&[
            ("beta.kubernetes.io/instance-type", "m1.small"),
            ("node.kubernetes.io/instance-type", "m1.small"),
            ("failure-domain.beta.kubernetes.io/zone", "zone-1"),
            ("topology.kubernetes.io/zone", "zone-1"),
            ("failure-domain.beta.kubernetes.io/region", "R1"),
            ("topology.kubernetes.io/region", "R1"),
        ]);
        assert_eq!(initial(&instance, &before), Labels { set: expected, left_out: Vec::new() });
    }

    #[test]
    fn a_region_that_cannot_be_a_label_is_left_out_and_the_rest_is_set() {
        let instance =
            Instance { zone: Some("zone-1".into()), region: Some("my region".into()), ..Instance::default() };
        let labels = initial(&instance, &BTreeMap::new());
        assert_eq!(labels.set.len(), 2);
        assert_eq!(
            labels.left_out,
            ["topology.kubernetes.io/region: \"my region\" cannot be the value of a label"]
        );
    }

    /// Labels of the provider are taken where they are not reserved for Kubernetes.
    ///
    /// Framework: N13, same.
    /// Framework: N14, same.
    /// Framework: N16, same.
    #[rstest]
    #[case::n13_zone_id("topology.k8s.cp/zone-id", true)]
    #[case::n13_custom("my.custom.label/foo", true)]
    #[case::n13_without_domain("foo", true)]
    #[case::n14_kubernetes("kubernetes.io/foo", false)]
    #[case::n14_k8s("k8s.io/foo", false)]
    #[case::n14_topology("topology.kubernetes.io/foo", false)]
    #[case::n14_topology_k8s("topology.k8s.io/foo", false)]
    #[case::n16_no_dot("k8snio/bar", true)]
    #[case::n16_sub_domain_no_dot("app.k8snio/bar", true)]
    #[case::n16_other_domain("myk8s.io/bar", true)]
    fn framework_n13_n14_n16_reserved_domains_are_refused(#[case] key: &str, #[case] taken: bool) {
        let labels = initial(&with(&[(key, "x")]), &BTreeMap::new());
        assert_eq!((labels.set.contains_key(key), labels.left_out.is_empty()), (taken, taken));
    }

    /// A label that the node has already is kept.
    ///
    /// Framework: N15, same.
    #[rstest]
    #[case::other_value("theirs", 1)]
    #[case::same_value("ours", 0)]
    fn framework_n15_a_label_of_the_node_is_kept(#[case] present: &str, #[case] left_out: usize) {
        let labels = initial(&with(&[("a/b", "ours")]), &labels(&[("a/b", present)]));
        assert!(labels.set.is_empty());
        assert_eq!(labels.left_out.len(), left_out);
    }

    #[rstest]
    #[case::new(&[], "b", Some(Some("b")))]
    #[case::another(&[("a/host", "a")], "b", Some(Some("b")))]
    #[case::the_same(&[("a/host", "b")], "b", None)]
    #[case::no_more(&[("a/host", "b")], "", Some(None))]
    #[case::never_one(&[], "", None)]
    #[case::no_label(&[("a/host", "b")], "not a label", None)]
    fn a_label_of_the_provider_follows_the_machine(
        #[case] present: &[(&str, &str)],
        #[case] now: &str,
        #[case] change: Option<Option<&str>>,
    ) {
        let changes = followed(&with(&[("a/host", now), ("kubernetes.io/host", now)]), &labels(present));
        assert_eq!(changes.values().next().map(Option::as_deref), change);
        assert!(changes.len() < 2 && !changes.contains_key("kubernetes.io/host"));
    }

    #[rstest]
    #[case::another(&[("topology.kubernetes.io/zone", "a")], Some("b"), 1)]
    #[case::the_same(&[("topology.kubernetes.io/zone", "b")], Some("b"), 0)]
    #[case::no_label(&[], Some("b"), 0)]
    #[case::no_host_now(&[("topology.kubernetes.io/zone", "a")], None, 0)]
    fn a_machine_moved_where_the_label_names_another_zone(
        #[case] present: &[(&str, &str)],
        #[case] zone: Option<&str>,
        #[case] expected: usize,
    ) {
        let instance = Instance { zone: zone.map(str::to_owned), ..Instance::default() };
        assert_eq!(moved(&instance, &labels(present)).len(), expected);
    }

    /// Labels that have only their old names get the new ones, and nothing is written when they agree.
    ///
    /// Framework: N17, same.
    /// Framework: N18, same.
    #[rstest]
    #[case::n17_missing(
        &[("beta.kubernetes.io/instance-type", "a"), ("failure-domain.beta.kubernetes.io/zone", "b"),
          ("failure-domain.beta.kubernetes.io/region", "c")],
        &[("node.kubernetes.io/instance-type", "a"), ("topology.kubernetes.io/zone", "b"),
          ("topology.kubernetes.io/region", "c")]
    )]
    #[case::n18_equal(
        &[("beta.kubernetes.io/instance-type", "a"), ("node.kubernetes.io/instance-type", "a")],
        &[]
    )]
    #[case::only_stable(&[("topology.kubernetes.io/zone", "b")], &[])]
    fn framework_n17_n18_old_and_new_names_agree(
        #[case] present: &[(&str, &str)],
        #[case] expected: &[(&str, &str)],
    ) {
        assert_eq!(reconcile(&labels(present)), labels(expected));
    }

    #[rstest]
    #[case("", true)]
    #[case("m1.small", true)]
    #[case("my flavor", false)]
    #[case("-a", false)]
    #[case("a.", false)]
    fn values_of_labels(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_value(text), expected);
        assert!(!is_value(&"a".repeat(64)) && is_value(&"a".repeat(63)));
    }
}
