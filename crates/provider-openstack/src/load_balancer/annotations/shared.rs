//! Annotations that the Go openstack-cloud-controller-manager has too, and those of Kubernetes.

use super::aspect::{Aspect, InsertedHeader, Kind};
use super::kind::{Annotation, AnnotationSource, Change, Form, HEADER_CHANGE, TAGS_CHANGE, annotation};

const fn occm(key: &'static str, aspects: &'static [Aspect]) -> Annotation {
    annotation(key, AnnotationSource::Occm, aspects)
}

/// 24 days, in milliseconds: the limit of HAProxy's timers, and of Octavia's database column for timeouts.
pub const MAX_TIMEOUT: i64 = 24 * 24 * 60 * 60 * 1000;

/// The largest integer that Octavia can store.
const MAX_INTEGER: i64 = i32::MAX as i64;

const TIMEOUT: Form = Form::Integer { min: 0, max: MAX_TIMEOUT, unit: "milliseconds" };
const SECONDS: Form = Form::Integer { min: 1, max: MAX_INTEGER, unit: "seconds" };
const TRIES: Form = Form::Integer { min: 1, max: 10, unit: "" };

/// Whether the load balancer is internal.
pub const INTERNAL: Annotation = occm("service.beta.kubernetes.io/openstack-internal-load-balancer", &[Aspect::Exposure])
    .default("`false`. `internal-lb = true` wins over the annotation.")
    .effect("No floating IP: the address is that of the VIP, and `spec.loadBalancerIP` asks for the VIP's address.")
    .change(Change::How("The address changes. To internal: the floating IP is detached, and deleted if it was created for the Service and `keep-floatingip` is not set. To external: as for a new Service."));

/// Class of the load balancer.
pub const CLASS: Annotation = occm("loadbalancer.openstack.org/class", &[Aspect::Creation, Aspect::FloatingIp, Aspect::MemberSubnet])
    .form(Form::Text("name of a `[LoadBalancerClass \"name\"]`, case sensitive"))
    .effect("Takes networks and subnets from that section of cloud.conf. The class overrides annotations for the floating IP; for VIP network and subnet it overrides them only for external Services.")
    .change(Change::How("As for the annotations that it replaces."));

/// The load balancer to use.
pub const LOAD_BALANCER_ID: Annotation = occm("loadbalancer.openstack.org/load-balancer-id", &[Aspect::LoadBalancer])
    .form(Form::Uuid("a load balancer"))
    .effect("Uses this load balancer, which may serve other Services too. If the annotation is absent, openstack-ccm writes the id of the load balancer that it found or created here.")
    .change(Change::How("The Service moves to the other load balancer."));

/// Octavia flavor.
pub const FLAVOR_ID: Annotation = occm("loadbalancer.openstack.org/flavor-id", &[Aspect::Creation])
    .form(Form::Uuid("an Octavia flavor"))
    .default("`flavor-id`")
    .effect("Flavor of the load balancer. Not with the provider `ovn`.")
    .change(Change::Creation)
    .empty("No flavor.");

/// Octavia availability zone.
pub const AVAILABILITY_ZONE: Annotation =
    occm("loadbalancer.openstack.org/availability-zone", &[Aspect::Creation])
        .form(Form::Text("name of an Octavia availability zone"))
        .default("`availability-zone`")
        .effect("Availability zone of the load balancer. Not with the provider `ovn`.")
        .change(Change::Creation)
        .empty("No zone.");

const OCTAVIA_TAGS: Form = Form::Text("tags separated by commas, of at most 255 characters each");

/// Tags of the load balancer.
pub const LOAD_BALANCER_TAGS: Annotation =
    occm("loadbalancer.openstack.org/load-balancer-tags", &[Aspect::Tags])
        .form(OCTAVIA_TAGS)
        .default("none")
        .effect("Tags of the load balancer alone, in addition to `tags`.")
        .change(Change::How(TAGS_CHANGE));

/// Tags of listeners.
pub const LISTENER_TAGS: Annotation = occm("loadbalancer.openstack.org/listener-tags", &[Aspect::Tags])
    .form(OCTAVIA_TAGS)
    .default("none")
    .effect("Tags of the listeners alone, in addition to `tags`.")
    .change(Change::How(TAGS_CHANGE));

/// Tags of pools.
pub const POOL_TAGS: Annotation = occm("loadbalancer.openstack.org/pool-tags", &[Aspect::Tags])
    .form(OCTAVIA_TAGS)
    .default("none")
    .effect("Tags of the pools alone, in addition to `tags`.")
    .change(Change::How(TAGS_CHANGE));

/// Port of the VIP.
pub const PORT_ID: Annotation = occm("loadbalancer.openstack.org/port-id", &[Aspect::Creation])
    .form(Form::Uuid("a Neutron port"))
    .effect("Uses this port for the VIP, instead of VIP network and subnet.")
    .change(Change::Creation);

/// Subnet of the VIP.
pub const SUBNET_ID: Annotation = occm("loadbalancer.openstack.org/subnet-id", &[Aspect::Creation])
    .form(Form::Uuid("a subnet"))
    .default("the class, then `subnet-id`, then the subnet of the nodes")
    .effect("Subnet of the VIP, and of the members unless another setting names theirs.")
    .change(Change::Creation);

/// Network of the VIP.
pub const NETWORK_ID: Annotation = occm("loadbalancer.openstack.org/network-id", &[Aspect::Creation])
    .form(Form::Uuid("a network"))
    .default("the class, then `network-id`")
    .effect("Network of the VIP.")
    .change(Change::Creation);

/// Network of the floating IP.
pub const FLOATING_NETWORK_ID: Annotation =
    occm("loadbalancer.openstack.org/floating-network-id", &[Aspect::FloatingIp])
        .form(Form::Uuid("an external network"))
        .default(
            "`floating-network-id`, then the cloud's external network. The class wins over the annotation.",
        )
        .effect("Network of a new floating IP.")
        .change(Change::FloatingIpCreation)
        .empty("The cloud's external network is looked up.");

/// Subnet of the floating IP.
pub const FLOATING_SUBNET_ID: Annotation = occm("loadbalancer.openstack.org/floating-subnet-id", &[Aspect::FloatingIp])
    .form(Form::Uuid("a subnet of the floating network"))
    .default("`floating-subnet-id`, unless another `floating-subnet` annotation is set. A class with any of its three `floating-subnet` keys overrides the annotations.")
    .effect("Subnet of a new floating IP. Overrides `floating-subnet` and `floating-subnet-tags`.")
    .change(Change::FloatingIpCreation);

/// Pattern for the name of the floating IP's subnet.
pub const FLOATING_SUBNET: Annotation = occm(
    "loadbalancer.openstack.org/floating-subnet",
    &[Aspect::FloatingIp],
)
.form(Form::Text("name, glob, or `~` and a regular expression; `!` in front negates"))
.default("`floating-subnet`, as above")
.effect("A new floating IP comes from the first subnet whose whole name matches and that has a free address.")
.change(Change::FloatingIpCreation);

/// Tags of the floating IP's subnet.
pub const FLOATING_SUBNET_TAGS: Annotation = occm(
    "loadbalancer.openstack.org/floating-subnet-tags",
    &[Aspect::FloatingIp],
)
.form(Form::Text(
    "tags, separated by commas or blanks: `a,b` one of them, `&a,b` all, `!a,b` none, `!&a,b` not all",
))
.default("`floating-subnet-tags`, as above")
.effect("Like `floating-subnet`, by tags. With both, both must match.")
.change(Change::FloatingIpCreation);

/// Whether the floating IP is kept.
pub const KEEP_FLOATING_IP: Annotation =
    occm("loadbalancer.openstack.org/keep-floatingip", &[Aspect::Release])
        .default("`false`")
        .effect("The floating IP is kept when the Service is deleted or becomes internal.");

pub const PROXY_PROTOCOL: Annotation = occm("loadbalancer.openstack.org/proxy-protocol", &[Aspect::ProxyProtocol])
    .form(Form::Text("`true`, `v1`, `v2` or `false` for all TCP ports; or versions for single ports, such as `v2:443,v1:80`"))
    .default("`false`")
    .effect("Members get the PROXY protocol header: version 1 with `true` and `v1`, version 2 with `v2`. TCP ports only; UDP and SCTP ports stay plain, as do TCP ports that a list does not name. Cannot be combined with `x-forwarded-for` on one port. Traffic of clients inside the cluster goes through the load balancer, see `ip-mode`.")
    .change(Change::How("Without interruption: a new pool takes the place of the old one."));

pub const X_FORWARDED_FOR: Annotation = occm("loadbalancer.openstack.org/x-forwarded-for", &[Aspect::Header(InsertedHeader::ForwardedFor)])
    .default("`false`")
    .effect("Listeners speak HTTP and insert the header `X-Forwarded-For`. TCP ports only. If `proxy-protocol` lists ports, this applies to the other ports.")
    .change(Change::How(HEADER_CHANGE));

/// The certificate for TLS termination.
pub const DEFAULT_TLS_CONTAINER_REF: Annotation = occm("loadbalancer.openstack.org/default-tls-container-ref", &[Aspect::Certificate])
    .form(Form::Text("Barbican URL, `.../v1/containers/<id>` or `.../v1/secrets/<id>`; any text where `container-store` is not `barbican`"))
    .default("`default-tls-container-ref`")
    .effect("The load balancer terminates TLS with this certificate. TCP ports only.")
    .change(Change::How("Another certificate takes effect at once. Switching TLS on or off replaces the listeners, with a short interruption."))
    .empty("The load balancer does not terminate TLS.");

/// Maximum number of connections of a listener.
pub const CONNECTION_LIMIT: Annotation =
    occm("loadbalancer.openstack.org/connection-limit", &[Aspect::Of(Kind::Limit, "connection_limit")])
        .form(Form::Integer { min: -1, max: MAX_INTEGER, unit: "" })
        .default("`-1`")
        .effect("Maximum number of concurrent connections of each listener; -1 is no limit.");

/// Idle timeout of clients.
pub const TIMEOUT_CLIENT_DATA: Annotation =
    occm("loadbalancer.openstack.org/timeout-client-data", &[Aspect::Of(Kind::Limit, "timeout_client_data")])
        .form(TIMEOUT)
        .default("`50000`")
        .effect("Idle timeout of clients. Not with the provider `ovn`.");

/// Timeout for connecting to members.
pub const TIMEOUT_MEMBER_CONNECT: Annotation = occm(
    "loadbalancer.openstack.org/timeout-member-connect",
    &[Aspect::Of(Kind::Limit, "timeout_member_connect")],
)
.form(TIMEOUT)
.default("`5000`")
.effect("Longest time to connect to a member. Not with the provider `ovn`.");

/// Idle timeout of members.
pub const TIMEOUT_MEMBER_DATA: Annotation =
    occm("loadbalancer.openstack.org/timeout-member-data", &[Aspect::Of(Kind::Limit, "timeout_member_data")])
        .form(TIMEOUT)
        .default("`50000`")
        .effect("Idle timeout of members. Not with the provider `ovn`.");

/// Timeout for data to inspect.
pub const TIMEOUT_TCP_INSPECT: Annotation =
    occm("loadbalancer.openstack.org/timeout-tcp-inspect", &[Aspect::Of(Kind::Limit, "timeout_tcp_inspect")])
        .form(TIMEOUT)
        .default("`0`")
        .effect("Longest time to wait for data to inspect. Not with the provider `ovn`.");

/// Networks that may connect.
pub const SOURCE_RANGES: Annotation = annotation(
    "service.beta.kubernetes.io/load-balancer-source-ranges",
    AnnotationSource::Kubernetes,
    &[Aspect::SourceRanges],
)
.form(Form::Text("CIDRs, separated by commas or blanks"))
.default("everybody. `spec.loadBalancerSourceRanges` wins over the annotation.")
.effect("Networks that may connect.");

/// Algorithm of pools.
pub const LB_METHOD: Annotation = occm(
    "loadbalancer.openstack.org/lb-method",
    &[Aspect::Of(Kind::Pool, "lb_algorithm")],
)
.form(Form::Word(&["ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"]))
.default(
    "`lb-method`. The provider `ovn` only supports `SOURCE_IP_PORT`, which replaces `ROUND_ROBIN` there.",
)
.effect("How pools choose a member.");

pub const MEMBER_SUBNET_ID: Annotation =
    occm("loadbalancer.openstack.org/member-subnet-id", &[Aspect::MemberSubnet])
        .form(Form::Uuid("a subnet"))
        .default("the class, then `member-subnet-id`, then `subnet-id`, then the subnet of the VIP")
        .effect("Subnet through which the load balancer reaches the nodes.")
        .change(Change::How("Existing members keep theirs."));

/// Nodes that become members.
pub const NODE_SELECTOR: Annotation = occm("loadbalancer.openstack.org/node-selector", &[Aspect::NodeSelector])
    .form(Form::Text(
        "`key=value` or `key`, separated by commas; if a key appears several times, the last one counts",
    ))
    .default("`node-selector`")
    .effect(
        "Only nodes with all these labels become members. If the selector matches no node, or is invalid, the existing members are \
         kept.",
    )
    .empty("All nodes.");

/// Whether pools get a health monitor.
pub const ENABLE_HEALTH_MONITOR: Annotation = occm("loadbalancer.openstack.org/enable-health-monitor", &[Aspect::Monitor])
    .default("`create-monitor`")
    .effect("Each pool gets a health monitor. With `externalTrafficPolicy: Local` it checks the health check node port.");

/// Time between two checks.
pub const HEALTH_MONITOR_DELAY: Annotation =
    occm("loadbalancer.openstack.org/health-monitor-delay", &[Aspect::Of(Kind::Monitor, "delay")])
        .form(SECONDS)
        .default("`monitor-delay`")
        .effect("Time between two checks.");

/// Time for one check.
pub const HEALTH_MONITOR_TIMEOUT: Annotation = occm("loadbalancer.openstack.org/health-monitor-timeout", &[Aspect::Of(Kind::Monitor, "timeout")])
    .form(SECONDS)
    .default("`monitor-timeout`")
    .effect("Time for one check. If it is longer than `health-monitor-delay`, checks overlap, and the Service gets a Warning.");

/// Successful checks until a member is up.
pub const HEALTH_MONITOR_MAX_RETRIES: Annotation = occm(
    "loadbalancer.openstack.org/health-monitor-max-retries",
    &[Aspect::Of(Kind::Monitor, "max_retries")],
)
.form(TRIES)
.default("`monitor-max-retries`")
.effect("Successful checks until a member is up.");

/// Failed checks until a member is down.
pub const HEALTH_MONITOR_MAX_RETRIES_DOWN: Annotation = occm(
    "loadbalancer.openstack.org/health-monitor-max-retries-down",
    &[Aspect::Of(Kind::Monitor, "max_retries_down")],
)
.form(TRIES)
.default("`monitor-max-retries-down`")
.effect("Failed checks until a member is down.");

/// Hostname to publish.
pub const HOSTNAME: Annotation = occm("loadbalancer.openstack.org/hostname", &[Aspect::Publication])
    .form(Form::Text("DNS name in lower case"))
    .effect("Hostname that is published instead of the address; if the Service has `ip-mode`, only where the cluster cannot honour the mode.");

/// The load balancer's address, whatever is published.
pub const LOAD_BALANCER_ADDRESS: Annotation = occm("loadbalancer.openstack.org/load-balancer-address", &[])
    .form(Form::Output("IP address"))
    .effect("The address of the load balancer, whatever is published: the floating IP, or else the VIP.");
