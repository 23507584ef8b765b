//! The annotations that OCCM does not have, and those that only this controller writes. Without them everything is as in OCCM.

use super::aspect::{Aspect, InsertedHeader, Kind};
use super::kind::{Annotation, AnnotationSource, Change, Form, HEADER_CHANGE, TAGS_CHANGE, annotation};

const fn added(key: &'static str, aspects: &'static [Aspect]) -> Annotation {
    annotation(key, AnnotationSource::Version("0.1.0"), aspects)
}

const fn added_in_0_2(key: &'static str, aspects: &'static [Aspect]) -> Annotation {
    annotation(key, AnnotationSource::Version("0.2.0"), aspects)
}

const fn added_in_0_3(key: &'static str, aspects: &'static [Aspect]) -> Annotation {
    annotation(key, AnnotationSource::Version("0.3.0"), aspects)
}

/// Tags of all objects.
pub const TAGS: Annotation = added_in_0_3("loadbalancer.openstack.org/tags", &[Aspect::Tags])
    .form(Form::Text("tags separated by commas, of at most 60 characters each, such as `cost-centre=42,team=web`"))
    .default("none in addition to `tags` of cloud.conf")
    .effect("Tags of the user on the load balancer and its listeners, pools and health monitors, on the floating IP and on the security group that openstack-ccm manages, beside those of `tags` in cloud.conf. They are not put on a load balancer or a floating IP that was made for somebody else. Tags that begin with `openstack-ccm-`, `kube_service_` or `kube_cluster_id_` are refused.")
    .change(Change::How(TAGS_CHANGE));

/// The floating IP of an external Service.
pub const FLOATING_IP: Annotation = added_in_0_3("loadbalancer.openstack.org/floating-ip", &[Aspect::FloatingIp])
    .form(Form::Text("an IPv4 address"))
    .default("`spec.loadBalancerIP`, else any address of the floating network")
    .effect("The floating IP of an external Service, in place of `spec.loadBalancerIP`, which Kubernetes has deprecated; with both, they have to agree. `allowed-addresses` in cloud.conf applies.")
    .change(Change::How("If the annotation changes while openstack-ccm runs, a floating IP that was created for the Service is replaced. An annotation that was set before openstack-ccm started, and that names another address, changes nothing and is reported by an Event."));

/// The address of the load balancer itself.
pub const VIP_ADDRESS: Annotation = added_in_0_3("loadbalancer.openstack.org/vip-address", &[Aspect::Creation])
    .form(Form::Text("an IPv4 or IPv6 address of the subnet of the load balancer; where the Service has two families, one of each, separated by a comma"))
    .default("`spec.loadBalancerIP` of an internal Service, or if it is an IPv6 address; else any address of the subnet")
    .effect("The address of the load balancer itself, in place of `spec.loadBalancerIP`, which Kubernetes has deprecated; with both on an internal Service, they have to agree. `allowed-addresses` in cloud.conf applies.")
    .change(Change::Creation);

/// The Octavia provider of one Service.
pub const LB_PROVIDER: Annotation = added_in_0_3("loadbalancer.openstack.org/lb-provider", &[Aspect::Creation])
    .form(Form::Text("an Octavia provider that `lb-providers` in cloud.conf lists"))
    .default("`lb-provider`")
    .effect("Octavia provider of the load balancer. All other settings are checked against what this provider can do.")
    .change(Change::Creation);

/// Permission to share the load balancer of the Service that has the address.
pub const SHARE_BY_ADDRESS: Annotation = added_in_0_3("loadbalancer.openstack.org/share-by-address", &[Aspect::LoadBalancer])
    .default("`false`")
    .effect("If another Service has the address that this one asks for (`floating-ip`, `vip-address` or `spec.loadBalancerIP`), and both have `true` here, this one joins the load balancer of the other, as if `load-balancer-id` named it. The [rules](../guides/share-a-load-balancer.md#rules) of sharing apply.")
    .change(Change::How("Read when the Service gets its load balancer. A Service that already shares a load balancer continues to \
                         share it."));

/// The address type with which a node becomes a member.
pub const NODE_ADDRESS_TYPE: Annotation = added_in_0_3("loadbalancer.openstack.org/node-address-type", &[Aspect::NodeAddress])
    .form(Form::Word(&["InternalIP", "ExternalIP"]))
    .default("the address in the subnet of the members, see below")
    .effect("The address with which a node becomes a member: its first address of this kind, or of several the one in the subnet of the members (`member-subnet-id`); if it has none of this kind, an address of the other kind. Without the annotation: the address in the subnet of the members if that subnet is configured, else the first InternalIP, else the first ExternalIP; a node that is a member already keeps its address.")
    .change(Change::How("Members whose address changes are replaced."));

/// Whether the load balancer serves its own metrics.
pub const METRICS_ENABLE: Annotation = added_in_0_3("loadbalancer.openstack.org/metrics-enable", &[Aspect::Metrics])
    .default("`false`")
    .effect("The load balancer shows its own metrics for Prometheus at `http://<address>:<metrics-port>/metrics` to those in `metrics-allow-cidrs`, which is then required. Only on a load balancer that was made for the Service: they show the listeners and members of all that use it. Needs Octavia API 2.25 and a provider other than `ovn`.");

/// Port of the metrics.
pub const METRICS_PORT: Annotation =
    added_in_0_3("loadbalancer.openstack.org/metrics-port", &[Aspect::Metrics])
        .form(Form::Integer { min: 1, max: 65_535, unit: "" })
        .default("`9100`")
        .effect("TCP port of the metrics. Not a port of the Service. Only with `metrics-enable`.")
        .change(Change::How("The listener of the metrics is replaced."));

/// Networks that may read the metrics.
pub const METRICS_ALLOW_CIDRS: Annotation = added_in_0_3("loadbalancer.openstack.org/metrics-allow-cidrs", &[Aspect::Metrics])
    .form(Form::Text("networks such as `10.0.0.0/8`, separated by commas or blanks"))
    .default("none")
    .effect("Who may read the metrics, independent of the source ranges. Networks of another IP family than the load balancer's have no effect. Only with `metrics-enable`.");

/// Permission to share a load balancer with another cluster's identity.
pub const ALLOW_FOREIGN_CLUSTER: Annotation = added("loadbalancer.openstack.org/allow-foreign-cluster", &[Aspect::LoadBalancer])
    .default("`false`")
    .effect("`true` allows sharing the load balancer that `load-balancer-id` names although it carries another cluster's identity, within `allowed-load-balancers` of cloud.conf. It never takes the load balancer over: only the operator can allow that, with `adopt-foreign-cluster`.");

/// The port that a client connected to, inserted as a header.
pub const X_FORWARDED_PORT: Annotation = added_in_0_2("loadbalancer.openstack.org/x-forwarded-port", &[Aspect::Header(InsertedHeader::ForwardedPort)])
    .default("`false`")
    .effect("Listeners speak HTTP and insert the header `X-Forwarded-Port`, the port that the client connected to. TCP ports only. If `proxy-protocol` lists ports, this applies to the other ports.")
    .change(Change::How(HEADER_CHANGE));

/// The protocol of the client, inserted as a header.
pub const X_FORWARDED_PROTO: Annotation = added_in_0_2("loadbalancer.openstack.org/x-forwarded-proto", &[Aspect::Header(InsertedHeader::ForwardedProto)])
    .default("`false`")
    .effect("Listeners speak HTTP and insert the header `X-Forwarded-Proto`, `https` if the load balancer terminates TLS, otherwise `http`. TCP ports only. Can be combined with `proxy-protocol`.")
    .change(Change::How(HEADER_CHANGE));

/// What happens to the load balancer when the Service is deleted.
pub const RECLAIM_POLICY: Annotation = added("loadbalancer.openstack.org/reclaim-policy", &[Aspect::Release])
    .form(Form::Word(&["delete", "retain"]))
    .default("`delete`")
    .effect("`retain` keeps a load balancer that was created for the Service, with its floating IP and without its members, when the Service is deleted, changes its type or moves to another load balancer, if `allow-retain` in cloud.conf does not forbid it; an Event names it, and its description begins with `Retained: `. A new Service with the same name takes it over again; until then nothing deletes it. On a load balancer that other Services use, the listeners of the Service are deleted in any case.")
    .change(Change::How("Read when the Service is deleted or moves. Any other value means `retain`."));

pub const HEALTH_MONITOR_TYPE: Annotation = added("loadbalancer.openstack.org/health-monitor-type", &[Aspect::MonitorCheck])
    .form(Form::Word(&["TCP", "HTTP", "HTTPS", "PING", "TLS-HELLO"]))
    .default("`TCP`; the health check node port over HTTP with `externalTrafficPolicy: Local`")
    .effect("How members of TCP ports are checked, on the node port instead of the health check node port. UDP and SCTP ports keep their own types. Needs a health monitor, see `enable-health-monitor`.")
    .change(Change::How("The health monitor is replaced; until then members count as healthy."));

/// Path of the health monitor's request.
pub const HEALTH_MONITOR_PATH: Annotation =
    added("loadbalancer.openstack.org/health-monitor-path", &[Aspect::MonitorCheck])
        .form(Form::Text("path that begins with `/`"))
        .default("`/`")
        .effect("Path that the health monitor requests. Only with `health-monitor-type` `HTTP` or `HTTPS`.");

/// Method of the health monitor's request.
pub const HEALTH_MONITOR_METHOD: Annotation =
    added("loadbalancer.openstack.org/health-monitor-method", &[Aspect::MonitorCheck])
        .form(Form::Word(&["GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PATCH"]))
        .default("`GET`")
        .effect("Method of the health monitor's request. Only with `health-monitor-type` `HTTP` or `HTTPS`.");

/// Status codes of a healthy member.
pub const HEALTH_MONITOR_EXPECTED_CODES: Annotation =
    added("loadbalancer.openstack.org/health-monitor-expected-codes", &[Aspect::MonitorCheck])
        .form(Form::Text(
            "one status, such as `200`; several, such as `200,204`; or a range, such as `200-299`",
        ))
        .default("`200`")
        .effect("Status codes of a healthy member. Only with `health-monitor-type` `HTTP` or `HTTPS`.");

/// Additional certificates.
pub const SNI_CONTAINER_REFS: Annotation = added("loadbalancer.openstack.org/sni-container-refs", &[Aspect::FurtherCertificates])
    .form(Form::Text("references such as those of `default-tls-container-ref`, separated by commas or blanks"))
    .default("none")
    .effect("Further certificates, selected by the name that the client asks for (SNI). Only if the load balancer terminates TLS.");

pub const TLS_VERSIONS: Annotation = added("loadbalancer.openstack.org/tls-versions", &[Aspect::Of(Kind::Tls, "tls_versions")])
    .form(Form::Text("`SSLv3`, `TLSv1`, `TLSv1.1`, `TLSv1.2`, `TLSv1.3`, separated by commas or blanks"))
    .default("Octavia's")
    .effect("Versions of TLS that clients may use. Only if the load balancer terminates TLS; needs Octavia API 2.17. An operator of Octavia may forbid old versions.");

pub const TLS_CIPHERS: Annotation =
    added("loadbalancer.openstack.org/tls-ciphers", &[Aspect::Of(Kind::Tls, "tls_ciphers")])
        .form(Form::Text("ciphers as OpenSSL writes them, separated by `:`"))
        .default("Octavia's")
        .effect(
            "Ciphers that clients may use. Only if the load balancer terminates TLS; needs Octavia API 2.15.",
        );

pub const ALPN_PROTOCOLS: Annotation = added("loadbalancer.openstack.org/alpn-protocols", &[Aspect::Of(Kind::Tls, "alpn_protocols")])
    .form(Form::Text("`h2`, `http/1.1`, `http/1.0`, separated by commas or blanks"))
    .default("Octavia's")
    .effect("Protocols that are offered to clients by ALPN. Only if the load balancer terminates TLS; needs Octavia API 2.20.");

/// Revision of the certificates behind the references.
pub const TLS_REVISION: Annotation = added("loadbalancer.openstack.org/tls-revision", &[Aspect::TlsRevision])
    .form(Form::Text("a text of your choice: letters, digits, `.`, `_`, `-` and `:`, at most 64"))
    .default("none")
    .effect("A new value makes openstack-ccm send the references to the certificates again, so that Octavia reads the current certificates. For stores in which a renewed certificate keeps its reference (`container-store = external`); what Barbican stores never changes. Only if the load balancer terminates TLS.");

/// Whether the cluster itself may connect.
pub const ALLOW_CLUSTER_SOURCES: Annotation = added("loadbalancer.openstack.org/allow-cluster-sources", &[Aspect::ClusterSources])
    .default("`false`")
    .effect("With source ranges, the cluster itself may connect too: the subnets of the nodes, and the addresses from which their traffic comes back through the cloud's routers (router gateways and floating IPs of nodes). An Event lists them. Other machines behind the same router may share its gateway address. If the ranges lack a node, the address is published with `ipMode: Proxy`, because nodes that short-circuit it would drop the cluster's own connections.");

/// The mode in which the address is published.
pub const IP_MODE: Annotation = added("loadbalancer.openstack.org/ip-mode", &[Aspect::Publication])
    .form(Form::Word(&["auto", "proxy", "vip"]))
    .default("`ip-mode`")
    .effect("`proxy` and `vip` force the `ipMode` of the published address; `auto` uses `Proxy` if the load balancer changes the traffic (PROXY protocol, TLS, HTTP headers), or lets in nodes that the source ranges lack (`allow-cluster-sources`). With this annotation a hostname is published only where the cluster cannot honour the mode.");

/// Whether a Service with the PROXY protocol is published with a hostname, whatever cloud.conf says.
pub const ENABLE_INGRESS_HOSTNAME: Annotation = added_in_0_3("loadbalancer.openstack.org/enable-ingress-hostname", &[Aspect::Publication])
    .default("`enable-ingress-hostname`")
    .effect("With `proxy-protocol`: `true` publishes the name ADDRESS.SUFFIX, with `ingress-hostname-suffix` or `nip.io`; `false` publishes the address with `ipMode: Proxy`, and a name only where the cluster cannot honour that. `ip-mode` and `hostname` come first.");

/// Whether the load balancer was made for the Service.
pub const OWNED_LOAD_BALANCER_ID: Annotation = added("loadbalancer.openstack.org/owned-load-balancer-id", &[])
    .form(Form::Output("UUID of a load balancer, or `none`"))
    .effect("The load balancer that was created for the Service, or adopted; `none` if the Service uses one that was created for somebody else. If the load balancer in `load-balancer-id` is gone, this says whether a new one may be created.");

/// Digest of the last converged state, from earlier versions.
pub const CONVERGED_DIGEST: Annotation = added("loadbalancer.openstack.org/settled", &[])
    .form(Form::Output("16 hexadecimal digits"))
    .effect("Written by versions before 0.2.0, and not used any more. It is removed with the next write that the Service needs anyway.");
