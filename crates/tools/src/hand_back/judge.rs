//! What OCCM will change for one Service. Pure.
//!
//! OCCM publishes one entry: the annotation `hostname` if there is one; else, with `proxy-protocol` and
//! `enable-ingress-hostname`, the address with the suffix; else the address, with `ipMode: Proxy` where `proxy-protocol`
//! is on and `VIP` elsewhere.

use std::fmt;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use openstack_ccm_core::text::printable;
use openstack_ccm_provider_openstack::config::{DEFAULT_INGRESS_HOSTNAME_SUFFIX, LoadBalancer};
use openstack_ccm_provider_openstack::load_balancer::annotations::{self, AnnotationSource, Form};
use serde::Serialize;

const PROXY_PROTOCOL: &str = "loadbalancer.openstack.org/proxy-protocol";
const HOSTNAME: &str = "loadbalancer.openstack.org/hostname";
const ADDRESS: &str = "loadbalancer.openstack.org/load-balancer-address";
const RECLAIM_POLICY: &str = "loadbalancer.openstack.org/reclaim-policy";

/// The severity of a change for a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The Service will be different.
    Changes,
    /// OCCM will report an error for the Service, and not follow its nodes and ports.
    Fails,
}

/// The return of one Service to OCCM.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Return {
    /// Namespace and name of the Service.
    pub service: String,
    /// The entry that OCCM will publish, if it differs from the published ones.
    pub entry: Option<LoadBalancerIngress>,
    /// The published entries.
    published: Vec<LoadBalancerIngress>,
    /// Other changes and failures.
    findings: Vec<Finding>,
}

/// A change or a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    severity: Severity,
    text: String,
}

impl Return {
    /// Judges a Service; absent for a Service that OCCM does not serve: of another type, or with a class. `is_own` returns whether
    /// the cloud has an address for this Service: other addresses must not be published, because service proxies would capture them.
    pub fn of(service: &Service, section: &LoadBalancer, is_own: impl Fn(&str) -> bool) -> Option<Self> {
        let spec = service.spec.as_ref()?;
        if spec.type_.as_deref() != Some("LoadBalancer") || spec.load_balancer_class.is_some() {
            return None;
        }
        let annotation = |key: &str| service.metadata.annotations.as_ref()?.get(key).map(String::as_str);
        let published: Vec<LoadBalancerIngress> = service
            .status
            .as_ref()
            .and_then(|status| status.load_balancer.as_ref()?.ingress.clone())
            .unwrap_or_default();
        let proxy = matches!(annotation(PROXY_PROTOCOL), Some("true" | "v1" | "v2"));
        let address = published.iter().find_map(|entry| entry.ip.clone());
        let address = address.or_else(|| annotation(ADDRESS).map(str::to_owned));
        let entry = entry(annotation(HOSTNAME), address.as_deref(), proxy, section)
            .filter(|entry| !published.is_empty() && published.as_slice() != std::slice::from_ref(entry));
        let mut findings = Vec::new();
        let foreign = address
            .filter(|address| entry.as_ref().is_some_and(|one| names(one, address)) && !is_own(address));
        if let Some(address) = &foreign {
            let text = format!(
                "{address} is not the address of a load balancer of this Service in the cloud: the Service's status is not changed"
            );
            findings.push(Finding { severity: Severity::Changes, text });
        }
        let entry = entry.filter(|_| foreign.is_none());
        let protocols =
            spec.ports.iter().flatten().filter_map(|port| Some((port, port.protocol.as_deref()?)));
        let mut datagrams = protocols.filter(|(_, protocol)| proxy && *protocol != "TCP");
        if let Some((port, protocol)) = datagrams.next() {
            let text = format!(
                "OCCM deletes the pool of port {}/{protocol}, but Octavia refuses to create the PROXY \
                 pool that replaces it: datagrams are lost, and OCCM cannot update this Service any \
                 further",
                port.port
            );
            findings.push(Finding { severity: Severity::Fails, text });
        }
        findings.extend(
            own_annotations(service)
                .map(|(key, value)| Finding { severity: Severity::Changes, text: forgotten(key, value) }),
        );
        let metadata = &service.metadata;
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        let service = format!("{}/{}", part(&metadata.namespace), part(&metadata.name));
        Some(Self { service, entry, published, findings })
    }

    /// Returns it for a Service without a load balancer in the cloud: OCCM makes one, whatever is published.
    #[must_use]
    pub fn without_load_balancer(mut self) -> Self {
        let text =
            "the cloud has no load balancer of this Service: OCCM creates one, and publishes its address";
        self.findings.push(Finding { severity: Severity::Changes, text: text.to_owned() });
        self
    }

    /// Returns whether anything will change.
    pub fn is_news(&self) -> bool {
        self.entry.is_some() || !self.findings.is_empty()
    }

    /// Returns the worst severity.
    pub fn severity(&self) -> Severity {
        self.findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Changes)
    }
}

/// Returns the entry that OCCM publishes.
fn entry(
    hostname: Option<&str>,
    address: Option<&str>,
    proxy: bool,
    section: &LoadBalancer,
) -> Option<LoadBalancerIngress> {
    let by_name =
        |hostname: String| LoadBalancerIngress { hostname: Some(hostname), ..LoadBalancerIngress::default() };
    if let Some(hostname) = hostname.filter(|hostname| !hostname.is_empty()) {
        return Some(by_name(hostname.to_owned()));
    }
    let address = address?;
    if proxy && section.enable_ingress_hostname {
        let suffix = section.ingress_hostname_suffix.as_deref().unwrap_or(DEFAULT_INGRESS_HOSTNAME_SUFFIX);
        return Some(by_name(format!("{address}.{suffix}")));
    }
    let mode = if proxy { "Proxy" } else { "VIP" };
    Some(LoadBalancerIngress {
        ip: Some(address.to_owned()),
        ip_mode: Some(mode.to_owned()),
        ..LoadBalancerIngress::default()
    })
}

/// Returns whether an entry publishes the address, as it is or in a hostname.
fn names(entry: &LoadBalancerIngress, address: &str) -> bool {
    let place = entry.ip.as_ref().or(entry.hostname.as_ref());
    place.is_some_and(|place| {
        place.strip_prefix(address).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Lists the user's annotations that only this program knows.
fn own_annotations(service: &Service) -> impl Iterator<Item = (&str, &str)> {
    let written = service.metadata.annotations.iter().flatten();
    written.filter_map(|(key, value)| {
        let known = annotations::ALL.iter().find(|known| known.key == key)?;
        let own =
            matches!(known.since, AnnotationSource::Version(_)) && !matches!(known.form, Form::Output(_));
        own.then_some((key.as_str(), value.as_str()))
    })
}

fn forgotten(key: &str, value: &str) -> String {
    let end = if key == RECLAIM_POLICY { ": OCCM deletes the load balancer with the Service" } else { "" };
    format!("{key}: {value} no longer has any effect{end}")
}

impl fmt::Display for Return {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.service))?;
        if let Some(entry) = &self.entry {
            let before: Vec<String> = self.published.iter().map(shown).collect();
            write!(f, "\n  ~   status          {} -> {}", before.join(", "), shown(entry))?;
        }
        for Finding { severity, text } in &self.findings {
            let mark = match severity {
                Severity::Changes => "~   changes        ",
                Severity::Fails => "!   fails          ",
            };
            write!(f, "\n  {mark} {}", printable(text))?;
        }
        Ok(())
    }
}

fn shown(entry: &LoadBalancerIngress) -> String {
    let place = entry.hostname.as_ref().or(entry.ip.as_ref()).cloned().unwrap_or_default();
    let place = printable(&place);
    match entry.ip_mode.as_deref() {
        Some(mode) if mode != "VIP" => format!("{place} ({})", printable(mode)),
        _ => place,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn service(annotations: &Value, ports: &Value, ingress: &Value) -> Service {
        from_value(json!({
            "metadata": {"namespace": "shop", "name": "web", "annotations": annotations},
            "spec": {"type": "LoadBalancer", "ports": ports},
            "status": {"loadBalancer": {"ingress": ingress}},
        }))
        .unwrap()
    }

    /// The entry that OCCM publishes, for each published entry.
    #[rstest]
    #[case::proxy(json!({PROXY_PROTOCOL: "v2"}), json!([{"ip": "203.0.113.1", "ipMode": "Proxy"}]), false, None)]
    #[case::plain(json!({}), json!([{"ip": "203.0.113.1", "ipMode": "VIP"}]), false, None)]
    #[case::tls_was_proxy(json!({}), json!([{"ip": "203.0.113.1", "ipMode": "Proxy"}]), false, Some("203.0.113.1"))]
    #[case::fallback_becomes_an_address(
        json!({PROXY_PROTOCOL: "v1", ADDRESS: "203.0.113.1"}), json!([{"hostname": "203.0.113.1.lb.example.org"}]), false,
        Some("203.0.113.1 (Proxy)"))]
    #[case::hostname_of_the_operator(
        json!({PROXY_PROTOCOL: "v1"}), json!([{"ip": "203.0.113.1", "ipMode": "Proxy"}]), true, Some("203.0.113.1.nip.io"))]
    #[case::hostname_of_the_user(json!({HOSTNAME: "web.example.org"}), json!([{"hostname": "web.example.org"}]), true, None)]
    #[case::two_families(
        json!({}), json!([{"ip": "203.0.113.1", "ipMode": "VIP"}, {"ip": "2001:db8::1", "ipMode": "VIP"}]), false,
        Some("203.0.113.1"))]
    #[case::nothing_published(json!({}), json!([]), false, None)]
    fn the_status_becomes_occms(
        #[case] annotations: Value,
        #[case] ingress: Value,
        #[case] enable_ingress_hostname: bool,
        #[case] expected: Option<&str>,
    ) {
        let section = LoadBalancer { enable_ingress_hostname, ..LoadBalancer::default() };
        let back = Return::of(&service(&annotations, &json!([]), &ingress), &section, |_| true).unwrap();
        assert_eq!(back.entry.as_ref().map(shown).as_deref(), expected);
    }

    #[test]
    fn what_occm_refuses_and_what_it_forgets_is_named() {
        let annotations = json!({PROXY_PROTOCOL: "v2", RECLAIM_POLICY: "retain"});
        let ports = json!([{"port": 443, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]);
        let ingress = json!([{"ip": "203.0.113.1", "ipMode": "Proxy"}]);
        let back =
            Return::of(&service(&annotations, &ports, &ingress), &LoadBalancer::default(), |_| true).unwrap();
        assert_eq!(back.severity(), Severity::Fails);
        let text = back.to_string();
        assert!(text.contains("53/UDP") && text.contains("deletes the load balancer"), "{text}");
    }

    /// The service proxy of every node would capture an address that a tenant wrote.
    #[rstest]
    #[case::of_an_annotation(json!({PROXY_PROTOCOL: "v1", ADDRESS: "203.0.113.66"}), json!([{"hostname": "a.example.org"}]), false)]
    #[case::of_the_status(json!({}), json!([{"ip": "203.0.113.66", "ipMode": "Proxy"}]), false)]
    #[case::in_a_name(json!({PROXY_PROTOCOL: "v1", ADDRESS: "203.0.113.66"}), json!([{"hostname": "a.example.org"}]), true)]
    fn an_address_that_the_cloud_does_not_have_for_the_service_is_not_published(
        #[case] annotations: Value,
        #[case] ingress: Value,
        #[case] enable_ingress_hostname: bool,
    ) {
        let section = LoadBalancer { enable_ingress_hostname, ..LoadBalancer::default() };
        let back = Return::of(&service(&annotations, &json!([]), &ingress), &section, |_| false).unwrap();
        assert_eq!(back.entry, None);
        assert!(
            back.to_string().contains("203.0.113.66 is not the address of a load balancer of this Service"),
            "{back}"
        );
    }

    #[test]
    fn what_users_wrote_cannot_write_to_the_terminal() {
        let annotations = json!({RECLAIM_POLICY: "retain\u{1b}[2J\nshop/other"});
        let back =
            Return::of(&service(&annotations, &json!([]), &json!([])), &LoadBalancer::default(), |_| true)
                .unwrap();
        assert!(back.to_string().contains("retain\\u001b[2J\\u000ashop/other"), "{back}");
    }

    #[test]
    fn services_of_a_class_are_not_occms() {
        let mut service = service(&json!({}), &json!([]), &json!([]));
        service.spec.as_mut().unwrap().load_balancer_class = Some("example.org/lb".to_owned());
        assert_eq!(Return::of(&service, &LoadBalancer::default(), |_| true), None);
    }
}
