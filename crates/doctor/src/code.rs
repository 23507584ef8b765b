//! The table of codes of findings. The page `docs/reference/findings.md` is generated from it.
//!
//! A code is permanent: it is never reused, and its meaning never changes.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::hop::{Hop, Origin};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For information only.
    Info,
    /// Connections work now, but only for some clients or by luck.
    Warning,
    /// Connections fail.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Which clients' packets a finding stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stops {
    /// No packets.
    Nobody,
    /// Packets of pods.
    Pods,
    /// Packets of processes on the network of a node.
    Nodes,
    /// Packets of pods and nodes.
    Inside,
    /// Packets of pods and nodes that nodes send around the load balancer, where the application needs it.
    Bypassing,
    /// Packets of pods and nodes that come through the load balancer.
    InsideThrough,
    /// Packets of clients outside the cluster.
    Outside,
    /// Packets that come through the load balancer.
    Through,
    All,
}

impl Stops {
    /// Returns whether packets of this origin are stopped; `through`: they come through the load balancer.
    pub fn concerns(self, origin: Origin, through: bool) -> bool {
        match self {
            Self::Nobody => false,
            Self::Pods => origin == Origin::Pod,
            Self::Nodes => origin == Origin::Node,
            Self::Inside | Self::Bypassing => origin != Origin::Outside,
            Self::InsideThrough => through && origin != Origin::Outside,
            Self::Outside => origin == Origin::Outside,
            Self::Through => through,
            Self::All => true,
        }
    }
}

/// One row of the table of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub code: Code,
    /// How severe the finding is.
    pub severity: Severity,
    /// The hop of the finding; absent for leftovers in a cluster, which no packet has to meet.
    pub hop: Option<Hop>,
    /// Which packets the finding stops.
    pub stops: Stops,
    /// Whether it certainly stops them.
    pub surely: bool,
    /// The finding in a few words.
    pub title: &'static str,
    /// What the finding means, in whole sentences.
    pub meaning: &'static str,
    /// What the user should do, in whole sentences.
    pub remedy: &'static str,
}

macro_rules! codes {
    ($($hop:expr => { $($code:ident $severity:ident, $stops:ident $surely:literal, $title:literal, $meaning:literal, $remedy:literal;)* })*) => {
        /// A stable code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $title] $code,)*)*
        }

        pub const TABLE: &[Entry] = &[
            $($(Entry {
                code: Code::$code,
                severity: Severity::$severity,
                hop: $hop,
                stops: Stops::$stops,
                surely: $surely,
                title: $title,
                meaning: $meaning,
                remedy: $remedy,
            },)*)*
        ];

        impl Code {
            /// Returns the code as text.
            pub fn as_str(self) -> &'static str {
                match self { $($(Self::$code => stringify!($code),)*)* }
            }
        }
    };
}

codes! {
    Some(Hop::Controller) => {
        D001 Error, Nobody false, "no controller is at work, and the Service is waiting for one",
            "Nobody holds the Lease of the controllers, or its holder has stopped renewing it, while the Service waits for its address, its deletion, or a change.",
            "Start the controller; its log and `/readyz?verbose` say why it does not lead. `openstack-ccm status` shows the Lease.";
        D002 Warning, Nobody false, "no controller is at work",
            "Nobody holds the Lease of the controllers, or its holder has stopped renewing it. Existing load balancers go on serving, but changes to nodes and Services have no effect on them.",
            "Start the controller; its log and `/readyz?verbose` say why it does not lead.";
        D003 Warning, Nobody false, "doctor and the controllers have different flags",
            "The leader publishes its `--cluster-name` on the Lease, and doctor was given a different one. Doctor then predicts wrongly what the controllers would do.",
            "Give doctor the flags that the controllers have.";
        D004 Warning, Nobody false, "the Service is being deleted",
            "Somebody deleted the Service, and the controller is removing its load balancer. Packets arrive until that is done.",
            "Nothing has to be done.";
        D005 Warning, Nobody false, "the controller reported a failure",
            "The last Events of the Service are Warnings, and no success followed them. Doctor shows each message with its cause first.",
            "Do what the message says. `kubectl describe service` shows all Events.";
        D006 Error, Nobody false, "the deletion of the Service does not end",
            "The Service was deleted more than five minutes ago, and a finalizer still blocks its deletion, because the load balancer is not removed yet.",
            "Doctor shows the Warning Events of the Service, which give the cause.";
        D007 Warning, Nobody false, "another instance of openstack-ccm is at work",
            "Another Lease in the same namespace is held by openstack-ccm, too. Two instances that serve the same Services undo each other's changes, where their settings differ.",
            "Run one instance for each `--load-balancer-class`, and no controller in both. Doctor shows the other Lease, its holder and its settings.";
    }
    Some(Hop::Name) => {
        D101 Warning, Pods false, "a name leads pods elsewhere",
            "Something in the cluster (CoreDNS, `hostAliases`) answers a name of this Service with a destination other than the load balancer. Pods connect to it, whatever the status says.",
            "Remove the workaround once the other hops have no findings: `--leftovers` lists the exact lines.";
        D102 Error, Pods true, "the published hostname does not resolve",
            "The status publishes a hostname that could not be resolved by a pod, or on the machine that runs doctor.",
            "Create the DNS record, or correct the published hostname.";
        D103 Warning, Outside false, "the published hostname is not a public DNS name",
            "The status publishes a hostname that public DNS cannot resolve: it has no dot, or a suffix for local use. Service proxies do not short-circuit it, but clients cannot use it, and external-dns creates a record that leads nowhere.",
            "Publish a hostname that resolves to the load balancer.";
        D104 Error, Pods true, "a name leads pods to a Service that does not exist",
            "CoreDNS answers a name of this Service with the name of a Service that no longer exists, so pods get no address. The line is left over from a workaround.",
            "Remove the line that doctor shows.";
        D105 Error, All true, "the published hostname resolves to another address",
            "The hostname in the status resolves to an address that is not the load balancer's, or to its VIP although clients outside need its floating IP.",
            "Correct the DNS record, or the published hostname.";
    }
    Some(Hop::Status) => {
        D201 Error, Bypassing true, "nodes may short-circuit a path that needs the load balancer",
            "The load balancer adds the PROXY protocol header, terminates TLS or inserts headers, but its address is published without `ipMode: Proxy`. Service proxies then send packets from pods and nodes straight to the application, without what the load balancer adds. Typical effects: nginx logs `broken header`, and cert-manager gets no certificates.",
            "Let openstack-ccm serve the Service, or run ip-mode-overlay beside another controller. Until then, publish a hostname instead of the address.";
        D202 Error, Bypassing true, "the API server drops ipMode",
            "The API server is older than 1.29, or its feature gate LoadBalancerIPMode is off: it silently drops `ipMode`, so every node short-circuits the address.",
            "Upgrade the API server to 1.30 or newer, or publish a hostname (annotation `loadbalancer.openstack.org/hostname`).";
        D203 Error, Bypassing true, "an entry has both a hostname and an address that nodes short-circuit",
            "An entry of the status has both an address and a hostname. Service proxies take the address, so the hostname does not protect the path.",
            "Publish the hostname alone.";
        D204 Warning, Nobody false, "two programs write the status",
            "The status was last written by a program other than the controller that serves the Service. Each of the two undoes what the other writes.",
            "Run one controller for load balancers, or give the Service a `loadBalancerClass`.";
        D205 Warning, Inside false, "Services share an address and publish it in different modes",
            "A service proxy in IPVS mode treats an address alike for all Services: if one of them publishes it without `ipMode: Proxy`, nodes short-circuit it for all.",
            "Let one controller serve all Services on the address.";
        D206 Error, All true, "no address is published",
            "The Service has no entry in `status.loadBalancer.ingress`, so clients do not know where to connect.",
            "The Events of the Service say why: `kubectl describe service`.";
        D207 Error, Through true, "a published address is not the load balancer's",
            "The status publishes an address that the load balancer does not have, or its VIP although clients outside need its floating IP. A user or another controller wrote it, or the address now belongs to something else.",
            "The controller publishes the right address at its next check for drift (within 42 minutes by default). If another program overwrites it again, see D204.";
        D208 Error, Inside true, "a Service has the load balancer's address in externalIPs",
            "A service proxy sends packets to an address in `spec.externalIPs` of any Service straight to the pods of that Service, whatever the mode in the status says, and so around the load balancer.",
            "Remove the address from `spec.externalIPs`. Envoy Gateway writes it there from `Gateway.spec.addresses`.";
    }
    Some(Hop::Node) => {
        D301 Error, Bypassing false, "a node ignores ipMode",
            "The service proxy of a node probably short-circuits the address although the status says `ipMode: Proxy`. A verdict by version or image is marked as a guess; only the canary measures.",
            "Upgrade the service proxy (kube-proxy to 1.30 or newer), or publish a hostname until then. `openstack-ccm canary --once` measures all nodes.";
        D302 Error, Bypassing false, "the rules of a node short-circuit the address",
            "The rules of this node send packets for the address to a pod, although the path needs the load balancer.",
            "Correct the status of the Service. If the status already has `ipMode: Proxy`, the service proxy ignores it: see D301.";
        D303 Error, All true, "the rules of the service proxy are not in use",
            "The node has no rules of a service proxy, or nothing jumps to them. A reload of firewalld or `iptables -F` causes this. No Service works on this node until the service proxy writes all of its rules again.",
            "Restart the service proxy on the node: `kubectl -n kube-system delete pod` with the name of its kube-proxy. Then find out who flushes the rules.";
        D304 Warning, Nobody false, "rules of two service proxies on one node",
            "The node has rules of two modes of kube-proxy. The rules of the former mode are no longer updated, but packets may still match them.",
            "On the node run `kube-proxy --cleanup`, then restart the service proxy.";
        D305 Error, Inside true, "the source ranges keep the cluster's own clients out at the nodes",
            "A node that short-circuits an address applies `loadBalancerSourceRanges` itself. The ranges do not include the pods or the nodes of the cluster, so the node drops their packets.",
            "Set the annotations `loadbalancer.openstack.org/allow-cluster-sources: \"true\"` and `loadbalancer.openstack.org/ip-mode: proxy`, so that the load balancer decides about the cluster's own clients, or add the networks of pods and nodes to `loadBalancerSourceRanges`.";
    }
    Some(Hop::Way) => {
        D401 Warning, Pods false, "a NetworkPolicy keeps pods from the load balancer",
            "Without a short circuit, pods connect to the address of the load balancer, which is outside the cluster. An egress policy that allows only other pods drops these packets; a policy that allows nothing blocks every address.",
            "Add an egress rule with an `ipBlock` for the address to the policy.";
        D402 Error, InsideThrough true, "the source ranges of the load balancer do not include the cluster",
            "The load balancer accepts connections only from certain networks (`allowed_cidrs`), which do not include those from which the cluster itself connects.",
            "Set the annotation `loadbalancer.openstack.org/allow-cluster-sources: \"true\"`, or add the networks to `loadBalancerSourceRanges`.";
        D403 Error, Inside false, "a connection from a node is not answered",
            "A pod on the node tried to connect to the address and port. The connection timed out, was refused, or was closed without any data.",
            "Resolve the findings of the other hops first. If there are none, check the route from the node to the address: routers, source ranges, firewalls.";
        D404 Error, Outside true, "the source ranges keep this client out",
            "The address of `--from` is in none of the networks from which the listener accepts connections.",
            "Add the client's network to `loadBalancerSourceRanges`. The load balancer may see the client with another address, such as that of a router.";
        D405 Error, InsideThrough false, "security groups keep the nodes from the load balancer",
            "No rule for egress of the security groups of the nodes fits the load balancer's address and port, so packets of pods and nodes do not get there.",
            "Add a rule for egress to the security group of the nodes, for example for every address.";
    }
    Some(Hop::LoadBalancer) => {
        D501 Error, Through false, "part of the load balancer is in ERROR",
            "Octavia failed to apply a change. A load balancer that is ACTIVE may still have children in ERROR, and a load balancer in ERROR may still serve as before.",
            "openstack-ccm sends the change of a child in ERROR again by itself. For a load balancer in ERROR, ask the operator of the cloud, or fail it over: `openstack loadbalancer failover`.";
        D502 Error, Through false, "part of the load balancer has been PENDING for a long time",
            "Part of the load balancer has been PENDING for more than 15 minutes, which usually means that Octavia's worker was lost. Nothing can be changed until this status ends.",
            "Ask the operator of the cloud to reset the state of the load balancer.";
        D503 Error, Through true, "a port of the Service has no matching listener",
            "The load balancer lacks the listener of a port, or the listener is not as the Service asks for, for example in its protocol or pool.",
            "The controller repairs this at its next check for drift (within 42 minutes by default); `openstack-ccm plan` shows what it would do.";
        D504 Warning, Nobody false, "the provider of the load balancer does not support what the Service asks for",
            "The Service asks for something that Octavia, or the provider of this load balancer, does not support; the message says what happens instead.",
            "Use the provider amphora (`lb-provider` in `[LoadBalancer]` of cloud.conf), or, for client addresses on ovn, `externalTrafficPolicy: Local` with a health monitor instead of the PROXY protocol.";
        D505 Error, Through false, "the controller would refuse the Service, or could not serve it",
            "The controller cannot do what the Service or the configuration asks for; doctor shows the controller's message.",
            "Correct what the message names.";
        D506 Error, Through true, "there is no load balancer",
            "The cloud has no load balancer for this Service, although the status may publish an address.",
            "Let the controller create it: `openstack-ccm plan` shows what it would do. Check that cloud.conf names the right project and region.";
        D507 Warning, Nobody false, "the load balancer differs from what the Service asks for",
            "The controller would change something; the lines are those of `openstack-ccm plan`.",
            "The controller repairs this at its next check for drift (within 42 minutes by default), unless the Service asks for what the cloud refuses.";
        D508 Warning, Nobody false, "the controller warns of something",
            "The controller would write this Event of type Warning for the Service; [events.md](events.md) explains the reason.",
            "Do what the message says.";
        D509 Error, Through true, "the published address does not lead to the load balancer",
            "The status publishes a floating IP that is not attached to the load balancer, or is gone.",
            "The controller attaches the floating IP, or publishes another one, at its next check for drift (within 42 minutes by default).";
        D510 Error, Through true, "part of the load balancer is disabled",
            "Somebody set `admin_state_up` of the load balancer, of a listener or of a pool to false, so that part forwards nothing. The controller does not undo this.",
            "Enable it again with the command that doctor shows.";
        D511 Error, Outside false, "a listener accepts other clients than the Service asks for",
            "The networks from which the listener accepts connections (`allowed_cidrs`) differ from the source ranges of the Service.",
            "The controller corrects this at its next check for drift (within 42 minutes by default).";
        D512 Warning, Nobody false, "a setting is invalid, and the old value is kept",
            "An annotation or a field of the Service has a value that cannot be used. The load balancer keeps the old value; all other settings take effect.",
            "Correct what the message names.";
        D513 Error, Through false, "part of the load balancer reports ERROR",
            "The `operating_status` of the load balancer, of a listener or of a pool is ERROR, and no member explains it: Octavia hears that this part does not work.",
            "Ask the operator of the cloud, or fail the load balancer over: `openstack loadbalancer failover`.";
    }
    Some(Hop::Header) => {
        D601 Error, Through true, "the pools speak another protocol than the Service asks for",
            "The annotation asks for the PROXY protocol and a pool does not send its header, or the reverse.",
            "The controller builds a new pool and swaps it in, at its next check for drift (within 42 minutes by default). `openstack-ccm plan` shows the steps.";
    }
    Some(Hop::Member) => {
        D701 Error, Through false, "the members do not match the present nodes",
            "A pool has a member that is not a node, lacks a node, or has a member with an outdated address or node port. Some connections fail.",
            "The controller corrects this at its next check for drift (within 42 minutes by default); if it does not, its log says why.";
        D702 Error, Through true, "a security group closes the node port",
            "No security group of the nodes allows traffic from the load balancer to the node port, so every connection times out.",
            "Open the node ports for the subnet of the load balancer, or set `manage-security-groups = true` in `[LoadBalancer]` of cloud.conf.";
        D703 Error, Through true, "no member of a pool takes connections",
            "All members of a pool are reported down by its health monitor, disabled, in ERROR, or have weight 0. The load balancer has nowhere to send connections.",
            "Check the node port and the backend; see also D702. Enable a disabled member with the command that doctor shows.";
        D704 Warning, Nobody false, "some members of a pool take no connections",
            "Some members are reported down by the health monitor, disabled, or have weight 0. With `externalTrafficPolicy: Local`, this is expected for nodes without endpoints.",
            "Check the nodes that doctor names, unless the policy is Local.";
        D705 Warning, Through false, "the node of a member is not ready",
            "Kubernetes does not hear from the node, or its kubelet says that it is not ready, and no health monitor watches its member: connections to it may be lost.",
            "Look at the node: `kubectl describe node`. A health monitor would stop the traffic to such a node.";
    }
    Some(Hop::NodePort) => {
        D801 Error, All true, "no endpoint is ready",
            "No pod behind the Service is ready, so nodes refuse connections.",
            "`kubectl get pods` with the selector of the Service shows why.";
        D802 Warning, Through false, "externalTrafficPolicy is Local and there is no health monitor",
            "Nodes without an endpoint get traffic too, and drop it: some connections fail.",
            "Set the annotation `loadbalancer.openstack.org/enable-health-monitor: \"true\"`.";
        D803 Error, Through true, "a port has no node port",
            "The load balancer sends to node ports, and the Service has none for this port.",
            "Set `allocateLoadBalancerNodePorts: true`.";
        D804 Error, All true, "no endpoint has the port",
            "Endpoints are ready, but none has a port with the name and protocol of the Service's port. No container has a port with the name in `targetPort`, or the EndpointSlices were written for other ports.",
            "Correct `targetPort` of the Service, or the port in the pod template.";
        D805 Error, All false, "NetworkPolicies keep packets from the pods",
            "NetworkPolicies for ingress select the pods behind the Service, and none of them allows traffic from the load balancer. Its source is the address of a node with `externalTrafficPolicy: Cluster`, and that of the load balancer with `Local`. A node can always reach its own pods.",
            "Allow the port from the networks of the nodes and of the load balancer (`ipBlock`), or from everywhere.";
        D806 Error, All true, "the Service is left to another service proxy",
            "The Service has the label `service.kubernetes.io/service-proxy-name`, so kube-proxy opens none of its node ports, and the load balancer sends to ports on which nothing listens.",
            "Remove the label. With `ipMode: Proxy`, it is not needed to prevent the short circuit.";
        D807 Error, Through false, "kube-proxy opens no node ports at the address of a member",
            "`nodePortAddresses` of kube-proxy (or its flag `--nodeport-addresses`) names networks, and the address to which the load balancer sends is in none of them: the node refuses these connections.",
            "Add the network of the nodes to `nodePortAddresses`, or remove the setting, and restart kube-proxy.";
        D808 Error, All false, "a ready endpoint has no pod that serves",
            "An EndpointSlice lists an address as ready, but no pod has it, or its pod has ended, or is not ready. kube-controller-manager may not be running, or the Service publishes addresses that are not ready (`publishNotReadyAddresses`).",
            "`kubectl get pods` with the selector of the Service shows the pods; the log of kube-controller-manager says why slices are not updated.";
    }
    Some(Hop::Backend) => {
        D901 Error, Through true, "the backend does not expect the header that the load balancer sends",
            "The load balancer adds the PROXY protocol header, but the application's configuration does not switch the PROXY protocol on for this port, or not for the load balancer's network. The application takes the header for a broken request. If only some pods are so, a rollout is half done.",
            "Switch the PROXY protocol on in the configuration of the application, or off at the load balancer.";
        D902 Error, All true, "the backend expects a header that nobody sends",
            "The configuration of the application demands the PROXY protocol header, but the load balancer does not add it, so every connection fails (nginx logs `broken header`).",
            "Set the annotation `loadbalancer.openstack.org/proxy-protocol: \"v2\"`, or switch the PROXY protocol off in the application.";
        D903 Info, Nobody false, "the backend accepts connections with and without the header",
            "A short circuit does not break this application; only the client address in its log differs. `ip-mode: vip` is possible and saves a hop.",
            "Nothing has to be done.";
        D904 Warning, Nobody false, "the backend ignores the client addresses in the header",
            "The application reads the header and goes on, but trusts only other networks than that of the load balancer: connections work, and its log shows the address of a node or of the load balancer.",
            "Add the network of the load balancer, and with `externalTrafficPolicy: Cluster` those of the nodes, to the networks that the application trusts.";
    }
    None => {
        L101 Warning, Nobody false, "hairpin-proxy is installed",
            "hairpin-proxy, or a fork of it, leads pods around the load balancer by lines in the Corefile, or in `/etc/hosts` of the nodes.",
            "Remove its controller first, then exactly the lines that end with `# Added by hairpin-proxy`.";
        L102 Warning, Nobody false, "ouroboros is installed",
            "ouroboros leads pods around the load balancer: a block in the Corefile, a key of `coredns-custom`, or Services and DNSEndpoints of its own.",
            "Remove it with `helm uninstall`, then run doctor again: entries that an earlier mode wrote may remain.";
        L103 Warning, Nobody false, "a Service is published with a third-party hostname",
            "A hostname of a third-party DNS service, or a cloud's annotation that publishes a hostname, prevents the short circuit. Every pod then depends on that DNS service.",
            "Where the address is published with `ipMode: Proxy`, remove the annotation, one Service at a time.";
        L104 Warning, Nobody false, "CoreDNS has manual entries for names",
            "Lines of the Corefile, of `coredns-custom` or of node-local-dns rewrite names or contain fixed addresses.",
            "Remove a line when nothing depends on it any more; doctor removes nothing.";
        L105 Warning, Nobody false, "hostAliases lead pods elsewhere",
            "A pod template writes a name with the address of a load balancer or a Service into `/etc/hosts` of its pods.",
            "Remove the entry from the template.";
        L106 Info, Nobody false, "cert-manager uses its own name servers",
            "Flags of cert-manager name the resolvers that it uses for its self checks; they are often there because of a short circuit.",
            "Remove the flags if the self check works without them.";
        L107 Warning, Nobody false, "a setting hides load balancers from a service proxy",
            "A setting of the service proxy, or a label of a Service, makes nodes ignore the addresses of load balancers: of all of them, or of one Service.",
            "Where addresses are published with `ipMode: Proxy`, reset the setting to its default, or remove the label.";
        L108 Info, Nobody false, "a CronJob touches Services",
            "A CronJob annotates or patches Services, as people do to make a controller reconcile again. openstack-ccm checks for drift by itself.",
            "Delete the CronJob if that was its purpose.";
        L109 Warning, Nobody false, "externalIPs name the address of a load balancer",
            "`spec.externalIPs` of a Service names an address that a Service of type LoadBalancer publishes: service proxies send packets to it around the load balancer.",
            "Remove the address from `spec.externalIPs` of the Service, or from `Gateway.spec.addresses`.";
    }
}

impl Code {
    /// Returns the row of this code.
    pub fn entry(self) -> &'static Entry {
        // Each code has a row: both come from one list.
        TABLE.iter().find(|entry| entry.code == self).unwrap_or(&TABLE[0])
    }

    /// Returns the URL that explains this code.
    pub fn anchor(self) -> String {
        let page = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/reference/findings.md");
        format!("{page}#{}", self.as_str().to_ascii_lowercase())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Renders the page of codes, without its first line.
pub fn markdown() -> String {
    use fmt::Write as _;

    let mut page = String::from(
        "# Findings of doctor\n\n`openstack-ccm doctor` follows a packet to a load balancer, hop by hop, and gives each finding a code, \
         whose meaning never changes. Errors and warnings are defects; the rest is for information. What could not be checked is \
         *not known*; what no object shows is *not seen*. Neither counts as good.\n",
    );
    let mut heading = "";
    for Entry { code, severity, hop, title, meaning, remedy, .. } in TABLE {
        let group = hop.map_or("left over", Hop::title);
        if group != heading {
            heading = group;
            let number = hop.map(|hop| format!("Hop {}: ", hop.number())).unwrap_or_default();
            // Writing to a String cannot fail.
            let _ = write!(page, "\n## {number}{group}\n");
        }
        let _ = write!(page, "\n### {code}\n\n**{title}** ({severity})\n\n{meaning}\n\n{remedy}\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_code_has_one_row_and_the_rows_follow_the_way_of_a_packet() {
        let codes: BTreeSet<Code> = TABLE.iter().map(|entry| entry.code).collect();
        assert_eq!(codes.len(), TABLE.len());
        assert!(TABLE.iter().all(|entry| entry.code.entry() == entry));
        let hops: Vec<usize> = TABLE.iter().map(|entry| entry.hop.map_or(10, Hop::number)).collect();
        assert!(hops.is_sorted(), "{hops:?}");
        for entry in TABLE {
            let start = entry.hop.map_or("L1".to_owned(), |hop| format!("D{}", hop.number()));
            assert!(entry.code.as_str().starts_with(&start), "{}", entry.code);
        }
    }

    #[test]
    fn each_code_has_its_entry_on_the_page() {
        let page = markdown();
        for entry in TABLE {
            assert!(page.contains(&format!("\n### {}\n", entry.code)), "{}", entry.code);
        }
    }
}
