//! The clouds whose controllers publish addresses without `ipMode`, and how their users switch the PROXY protocol on.
//!
//! Each entry was read in the sources or the documentation that it names; [`Cloud::seen`] is when.

#[derive(Clone, Copy, Debug)]
pub struct Cloud {
    /// The value of `--cloud`.
    pub name: &'static str,
    /// The name as shown to users.
    pub title: &'static str,
    /// Annotations by which a Service asks for the PROXY protocol; one that applies is enough.
    pub annotations: &'static [AnnotationRule],
    /// The entries that its controller writes into a status.
    pub status: &'static str,
    /// What its controller does with `ipMode`.
    pub ip_mode: &'static str,
    /// The source or documentation that this entry was read in.
    pub source: &'static str,
    /// When the source was read: year and month.
    pub seen: &'static str,
}

/// An annotation that asks for the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnotationRule {
    pub key: Key,
    pub value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Exactly(&'static str),
    /// All keys with this prefix.
    Prefix(&'static str),
}

/// The annotation values that a rule accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Any but these.
    NoneOf(&'static [&'static str]),
    /// Any value that, without blanks, contains one of these.
    Contains(&'static [&'static str]),
}

impl AnnotationRule {
    /// Returns whether an annotation asks for the PROXY protocol.
    pub fn applies(&self, key: &str, value: &str) -> bool {
        let key_applies = match self.key {
            Key::Exactly(wanted) => key == wanted,
            Key::Prefix(prefix) => key.starts_with(prefix),
        };
        key_applies
            && match self.value {
                Value::OneOf(values) => values.contains(&value),
                Value::NoneOf(values) => !values.contains(&value),
                Value::Contains(parts) => {
                    let value = value.replace(' ', "");
                    parts.iter().any(|part| value.contains(part))
                }
            }
    }
}

const fn exactly(key: &'static str, values: &'static [&'static str]) -> AnnotationRule {
    AnnotationRule { key: Key::Exactly(key), value: Value::OneOf(values) }
}

/// Values that Go's `strconv.ParseBool` reads as true.
const GO_TRUE: &[&str] = &["true", "1", "t", "T", "TRUE", "True"];

/// All clouds of the table, by name.
pub const CLOUDS: &[Cloud] = &[
    Cloud {
        name: "alibaba",
        title: "Alibaba Cloud",
        annotations: &[exactly(
            "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-proxy-protocol",
            &["on"],
        )],
        status: "`{ip}`, or a hostname by annotation",
        ip_mode: "not written",
        source: "kubernetes/cloud-provider-alibaba-cloud eeb0ddc6 (k8s.io/cloud-provider 0.28.15); documentation of the annotation",
        seen: "2026-08",
    },
    Cloud {
        name: "civo",
        title: "Civo",
        annotations: &[exactly(
            "kubernetes.civo.com/loadbalancer-enable-proxy-protocol",
            &["send-proxy", "send-proxy-v2"],
        )],
        status: "`{ip}`",
        ip_mode: "not written",
        source: "civo/civo-cloud-controller-manager 0c98dc9 (k8s.io/cloud-provider 0.27.2)",
        seen: "2026-08",
    },
    Cloud {
        name: "cloudstack",
        title: "Apache CloudStack",
        // CloudStack releases differ: some need only the annotation, others read its value.
        annotations: &[AnnotationRule {
            key: Key::Exactly("service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol"),
            value: Value::NoneOf(&["", "false"]),
        }],
        status: "`{ip}`, or a hostname by annotation",
        ip_mode: "not written",
        source: "apache/cloudstack-kubernetes-provider 4740dbca (k8s.io/cloud-provider 0.24.17)",
        seen: "2026-08",
    },
    Cloud {
        name: "digitalocean",
        title: "DigitalOcean",
        annotations: &[exactly("service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol", GO_TRUE)],
        status: "`{ip}`, or a hostname by annotation",
        ip_mode: "not written",
        source: "digitalocean/digitalocean-cloud-controller-manager 70d527e3 (k8s.io/cloud-provider 0.36.2), issue 811",
        seen: "2026-08",
    },
    Cloud {
        name: "linode",
        title: "Akamai (Linode)",
        annotations: &[
            exactly("service.beta.kubernetes.io/linode-loadbalancer-default-proxy-protocol", &["v1", "v2"]),
            AnnotationRule {
                key: Key::Prefix("service.beta.kubernetes.io/linode-loadbalancer-port-"),
                value: Value::Contains(&[r#""proxy-protocol":"v1""#, r#""proxy-protocol":"v2""#]),
            },
        ],
        status: "`{hostname, ip}` in one entry, which nodes short-circuit all the same",
        ip_mode: "not written",
        source: "linode/linode-cloud-controller-manager b9aa9012 (k8s.io/cloud-provider 0.35.4), issue 74",
        seen: "2026-08",
    },
    Cloud {
        name: "vultr",
        title: "Vultr",
        annotations: &[exactly("service.beta.kubernetes.io/vultr-loadbalancer-proxy-protocol", GO_TRUE)],
        status: "`{hostname, ip}` in one entry, where the hostname is a label",
        ip_mode: "not written",
        source: "vultr/vultr-cloud-controller-manager d5f3ab03 (k8s.io/cloud-provider 0.35.2), pull request 268",
        seen: "2026-08",
    },
];

pub fn named(name: &str) -> Option<&'static Cloud> {
    CLOUDS.iter().find(|cloud| cloud.name == name)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("digitalocean", "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol", "true", true)]
    #[case(
        "digitalocean",
        "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol",
        "false",
        false
    )]
    #[case("linode", "service.beta.kubernetes.io/linode-loadbalancer-default-proxy-protocol", "v2", true)]
    #[case("linode", "service.beta.kubernetes.io/linode-loadbalancer-default-proxy-protocol", "none", false)]
    #[case(
        "linode",
        "service.beta.kubernetes.io/linode-loadbalancer-port-443",
        r#"{"proxy-protocol": "v2"}"#,
        true
    )]
    #[case(
        "linode",
        "service.beta.kubernetes.io/linode-loadbalancer-port-443",
        r#"{"proxy-protocol":"none"}"#,
        false
    )]
    #[case("civo", "kubernetes.civo.com/loadbalancer-enable-proxy-protocol", "send-proxy-v2", true)]
    #[case("alibaba", "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-proxy-protocol", "off", false)]
    #[case(
        "cloudstack",
        "service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol",
        "enabled",
        true
    )]
    #[case(
        "cloudstack",
        "service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol",
        "false",
        false
    )]
    #[case("vultr", "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol", "true", false)]
    fn a_service_asks_for_the_proxy_protocol_in_the_words_of_its_cloud(
        #[case] cloud: &str,
        #[case] key: &str,
        #[case] value: &str,
        #[case] expected: bool,
    ) {
        let rules = named(cloud).unwrap().annotations;
        assert_eq!(rules.iter().any(|rule| rule.applies(key, value)), expected);
    }

    #[test]
    fn the_table_is_sorted_and_says_where_each_entry_comes_from() {
        assert!(CLOUDS.is_sorted_by_key(|cloud| cloud.name));
        assert!(CLOUDS.iter().all(|cloud| !cloud.source.is_empty() && cloud.seen.len() == 7));
    }
}
