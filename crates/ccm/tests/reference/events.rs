//! `docs/reference/events.md`: what each reason of an Event means. A test compares the reasons with those in the
//! sources.

use crate::occm;
use crate::page::{GENERATED, cell};
use crate::released::since;

/// One reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventReason {
    /// Kind of the object.
    pub(crate) object: &'static str,
    /// `reason` of the Event.
    pub(crate) reason: &'static str,
    /// `Normal` or `Warning`.
    pub(crate) severity: &'static str,
    /// When it is said, and what to do.
    pub(crate) meaning: &'static str,
}

const fn row(
    object: &'static str,
    severity: &'static str,
    reason: &'static str,
    meaning: &'static str,
) -> EventReason {
    EventReason { object, reason, severity, meaning }
}

/// All reasons.
#[rustfmt::skip]
pub(crate) const REASONS: &[EventReason] = &[
    row("Service", "Normal", "EnsuringLoadBalancer", "Work on the load balancer begins."),
    row("Service", "Normal", "EnsuredLoadBalancer", "The load balancer matches the Service."),
    row("Service", "Normal", "UpdatedLoadBalancer", "Nodes changed, and the load balancer follows."),
    row("Service", "Normal", "DeletingLoadBalancer", "The removal of the load balancer begins."),
    row("Service", "Normal", "DeletedLoadBalancer", "The Service no longer uses a load balancer. A shared one keeps serving the others."),
    row("Service", "Warning", "LoadBalancerStatusContested", "Another controller, which the message names, keeps writing the status. Let one of them serve the Service: by `spec.loadBalancerClass`, or by switching the other one off."),
    row("Service", "Normal", "LoadBalancerIPModeChanged", "The published mode of the address changed, even if another controller wrote the previous one; the message says why. The first publication causes no such Event."),
    row("Service", "Warning", "LoadBalancerIPModeNotHonoured", "Pods may bypass the load balancer: the cluster, or a node, does not honour ipMode and no hostname is configured. The message names the cause and both fixes."),
    row("Service", "Warning", "LoadBalancerAddressInExternalIPs", "`spec.externalIPs` of this or another Service names the load balancer's address, and clients have to come through the load balancer: nodes send packets of pods to the pods of that Service instead. It is named if it is in the same namespace. Remove the address from `spec.externalIPs`; Envoy Gateway writes it there from `Gateway.spec.addresses`."),
    row("Service", "Warning", "LoadBalancerBypassRequested", "`ip-mode` asks for `vip` although the load balancer adds the PROXY protocol header, terminates TLS or inserts HTTP headers: pods in the cluster bypass it. The message says what happens to them. Remove `ip-mode`, or use a hostname, if pods use the address."),
    row("Service", "Warning", "LoadBalancerSourceRangesLackCluster", "The source ranges lack addresses from which the cluster itself connects, so its pods cannot connect through the load balancer. An address that was published without ipMode Proxy keeps its mode if pods can use it that way. The message names the missing networks and the annotation `allow-cluster-sources`."),
    row("Service", "Warning", "SyncLoadBalancerFailed", "The load balancer could not be created, changed or removed; the message has the cause. It is retried."),
    row("Service", "Warning", "UpdateLoadBalancerFailed", "Changed nodes could not be written to the load balancer. It is retried."),
    row("Service", "Warning", "DeleteLoadBalancerFailed", "The load balancer of a Service that is gone could not be removed. It is retried."),
    row("Service", "Warning", "UnAvailableLoadBalancer", "No node can take traffic; the message says why. Existing members are kept."),
    row("Service", "Warning", "LoadBalancerForcedInternal", "There is no external network, so the Service is internal. Set floating-network-id."),
    row("Service", "Warning", "LoadBalancerExternalNetworkSearchFailed", "The external network could not be found."),
    row("Service", "Warning", "LoadBalancerSourceRangesIgnored", "Source ranges are not supported here, or are of another family than the address."),
    row("Service", "Warning", "LoadBalancerAvailabilityZonesIgnored", "This Octavia, or its provider, has no availability zones, so the setting is ignored."),
    row("Service", "Warning", "LoadBalancerFlavorIgnored", "This Octavia, or its provider, has no flavors, so the setting is ignored."),
    row("Service", "Warning", "LoadBalancerFloatingIPSkipped", "The Service has an IPv6 address, for which there are no floating IPs."),
    row("Service", "Warning", "LoadBalancerRenameRefused", "The name of the load balancer contains another cluster name than `kubernetes`, the default with which the program was started. It is served, and keeps its name. Set `--cluster-name`."),
    row("Service", "Warning", "LoadBalancerRename", "A load balancer that was made under another cluster name is renamed."),
    row("Service", "Warning", "LoadBalancerLbMethodUnknown", "Octavia does not know the algorithm that lb-method names."),
    row("Service", "Warning", "LoadBalancerIPIgnored", "spec.loadBalancerIP asks for another address than the one that the load balancer has and keeps."),
    row("Service", "Warning", "LoadBalancerAddressChanged", "Another address is published from now on; the message has both. If another client attached the new floating IP and the Service does not ask for it, the message names that floating IP, with its description, and the one of the Service that lies idle. Otherwise the Event is a Normal one."),
    row("Service", "Warning", "LoadBalancerMembersOutOfReach", "The load balancer is made on an external network on which some nodes have no address, so it might not reach them. Set `member-subnet-id`."),
    row("Service", "Warning", "FloatingIPLeftInUse", "A floating IP of the Service stays, because something else uses it, for example another Service on the same load balancer."),
    row("Service", "Warning", "FloatingIPNotDeleted", "The cloud's policy does not let the user of cloud.conf delete floating IPs, so one that the Service gives up stays in the project, attached to nothing. The message names the rule, and who can delete it."),
    row("Service", "Warning", "FloatingIPOnInternalService", "Somebody attached a floating IP to the load balancer of an internal Service, which can be reached from outside by it. It stays. Take it off, or set `keep-floatingip` if it is wanted."),
    row("Service", "Warning", "CloudPartMissing", "The cloud lacks an optional part of its API, or refuses its calls for good. The message names the kind of call, the part, and [what is done without it](openstack-calls.md). It is said once, on any Service, and concerns all Services; the answer itself, which may name objects of others, is in the log and in the output of `check-config --online`; the gauge `openstack_ccm_cloud_parts_missing` and `openstack-ccm status` go on saying it."),
    row("Service", "Warning", "FloatingIPKept", "keep-floatingip is neither true nor false, so a floating IP of the Service is kept. Delete it if it is not needed."),
    row("Service", "Warning", "LoadBalancerDuplicateKept", "Two load balancers were made for the Service, and clients may use both: the other one has a floating IP, or nothing shows that no connection has passed it. The message names the one that serves the Service, and how to delete the other one or go back to it."),
    row("Service", "Warning", "LoadBalancerRetained", "The load balancer of a Service that is gone is kept, because its reclaim policy asks for it or cannot be read."),
    row("Service", "Warning", "LoadBalancerRetainNotAllowed", "reclaim-policy is retain, which allow-retain of cloud.conf does not allow in this namespace: the load balancer is deleted with the Service."),
    row("Service", "Warning", "LoadBalancerChildFailed", "Octavia failed to apply the last change of a listener, pool, member or monitor. The change is sent again."),
    row("Service", "Warning", "LoadBalancerChangeRepeated", "Changes that Octavia accepted are needed again although nothing failed: either they have no effect on this cloud, or somebody else is changing the load balancer. They are repeated after pauses that grow longer. The message names the first one."),
    row("Service", "Normal", "LoadBalancerSharedInternally", "An internal Service joins the load balancer of other Services and is published by its VIP. OCCM refuses such a Service; after a switch from OCCM it is served."),
    row("Service", "Normal", "LoadBalancerQueued", "The creation has been queued for ten seconds: Octavia is slower the more it creates at once. The message says about how many come before it."),
    row("Service", "Normal", "LoadBalancerBusy", "For ten seconds, the Service has waited for a change that Octavia is at work on and that was not made for it, for example a failover or a change by hand."),
    row("Service", "Normal", "LoadBalancerChildPending", "For ten seconds, a listener, pool, member or monitor has been PENDING below a load balancer that is not, or Octavia has refused every change as if it were at work. LoadBalancerStuck follows after ten minutes."),
    row("Service", "Normal", "LoadBalancerShared", "For ten seconds, another Service that uses the same load balancer has been reconciled first."),
    row("Service", "Warning", "LoadBalancerStuck", "For ten minutes, the load balancer has been PENDING, or a listener, pool, member or monitor below one that is ACTIVE, or Octavia has refused every change as if it were at work. Ask the operator of the cloud; the message names the object."),
    row("Service", "Warning", "LoadBalancerInError", "The load balancer is in ERROR and stays as it is, because it may still serve. The message has both statuses, the reason, and what to do."),
    row("Service", "Warning", "LoadBalancerFailover", "The load balancer is in ERROR, and Octavia is asked once to fail it over, as error-recovery of cloud.conf says."),
    row("Service", "Warning", "LoadBalancerReplaced", "The load balancer is in ERROR and is deleted and recreated, because its creation failed, or because error-recovery of cloud.conf says so."),
    row("Service", "Warning", "LoadBalancerGone", "The load balancer was deleted in the cloud, or the Service was restored from a backup of another cluster and was never published in this one: a new load balancer is created."),
    row("Service", "Warning", "LoadBalancerLeft", "The load balancer is not deleted, because somebody else has added something to it, or because only its name says that it is this cluster's and its members are no nodes of it."),
    row("Service", "Warning", "LoadBalancerWithoutService", "An orphaned load balancer: it was created for an earlier Service of this name. Delete it if it is not in use elsewhere."),
    row("Service", "Warning", "LoadBalancerListenerReplaced", "A listener has to be replaced, so connections to it fail for some seconds."),
    row("Service", "Warning", "LoadBalancerProxyProtocolSwitched", "The PROXY protocol is switched on, off, or to another version. The load balancer does so without a gap, but the pods must accept, or no longer expect, the header from this moment on; otherwise every connection fails."),
    row("Service", "Warning", "LoadBalancerNeedsRecreation", "What the Service asks for now needs a new load balancer; the message says what."),
    row("Service", "Warning", "LoadBalancerNodeSkipped", "A node does not become a member; the message says why. One without an address keeps the member that it has."),
    row("Service", "Warning", "LoadBalancerNodesSkipped", "Nodes have no server with a port in this project: they do not count when the subnet is chosen, or get no security group. Set their providerID, or subnet-id, or leave them out with node-selector."),
    row("Service", "Warning", "LoadBalancerSingleStack", "spec.ipFamilies asks for two families and the load balancer has one."),
    row("Service", "Warning", "LoadBalancerPortsSingleStack", "Some ports answer on addresses of one family only."),
    row("Service", "Warning", "LoadBalancerSettingWithoutEffect", "A setting applies to no port of the Service."),
    row("Service", "Warning", "LoadBalancerSettingWrongWithoutEffect", "A value is wrong, but is not used at present, so nothing is refused. The message says why it is not used."),
    row("Service", "Warning", "LoadBalancerSettingNotSupported", "This Octavia, or its provider, cannot do what a setting asks for; the message says what happens instead."),
    row("Service", "Warning", "LoadBalancerSettingNotUnderstood", "A boolean is neither true nor false, and is ignored, as in OCCM. An existing load balancer does not change. Write true or false."),
    row("Service", "Warning", "LoadBalancerPortWaits", "A new port has no listener yet, because it depends on a setting that cannot be read. Correct the setting that SyncLoadBalancerFailed names."),
    row("Service", "Warning", "LoadBalancerChecksOverlap", "A check of the health monitor may last longer than the time between two checks. Lower health-monitor-timeout or raise health-monitor-delay."),
    row("Service", "Warning", "LoadBalancerWithoutNodePorts", "Some ports have no node port, so nothing answers there."),
    row("Service", "Normal", "LoadBalancerClusterSourcesAllowed", "The addresses of the cluster itself were added to the source ranges; the message lists them."),
    row("Service", "Warning", "LoadBalancerMembersDrained", "A port takes no connections: somebody set weight 0 or `admin_state_up` false in Octavia on each member of its pool. The controller does not undo this; the message has the command that does."),
    row("Service", "Warning", "LoadBalancerDriftRepaired", "Somebody changed something in the cloud although the Service did not change, and it was corrected; the message lists what was done."),
    row("Service", "Warning", "LoadBalancerLocalWithoutMonitor", "externalTrafficPolicy is Local and there is no health monitor, so nodes without endpoints also get traffic and drop it. Set enable-health-monitor."),
    row("Service", "Warning", "LoadBalancerMetricsPortTaken", "Another listener of the load balancer has the port for its metrics, so there are none. Choose another one with metrics-port."),
    row("Service", "Warning", "LoadBalancerAppProtocolMismatch", "The load balancer speaks HTTP on a port whose appProtocol says that the nodes speak another protocol."),
    row("Service", "Warning", "LoadBalancerHeadersNotInserted", "Somebody set headers on a listener by hand, which Octavia does not insert if the pool uses the PROXY protocol."),
    row("Service", "Normal", "LoadBalancerTcpPortsOnly", "A setting applies to the TCP ports of the Service only."),
    row("Service", "Warning", "UnknownAnnotation", "An annotation with the prefix `loadbalancer.openstack.org/` is not known; the message suggests the closest one."),
    row("Service", "Warning", "CanaryStatusOverwritten", "Another controller writes the status of a Service of the canary. openstack-ccm does not overwrite it, and judges nodes by versions and images. Have that controller ignore Services of the class `openstack-ccm.io/canary`."),
    row("Node", "Warning", "ServiceProxyIgnoresIPMode", "The canary, or kube-proxy itself, reports that the service proxy of the node short-circuits addresses with ipMode Proxy. Services that need the way through the load balancer are published with a hostname, if one is configured."),
    row("Node", "Normal", "ServiceProxyHonoursIPMode", "The service proxy of the node was found unfit before, and is fit now."),
    row("Node", "Warning", "CanaryContradiction", "The answers that the canary gets on this node contradict each other, so they cannot come from a service proxy alone. The node is judged by versions and images. Check for routes or proxies that use the canary's addresses."),
    row("Node", "Normal", "Synced", "The node was initialised."),
    row("Node", "Warning", "NodeInitializationFailed", "The node could not be initialised; the message has the cause. It is retried."),
    row("Node", "Warning", "NodeAddressesNotUpdated", "The addresses of the node stay as they are; the message has the cause."),
    row("Node", "Warning", "NodeServerReplaced", "The server of the node's providerID is gone, and another one has its name: the Node has the addresses of the old one. The message names both ids, and the three steps by which the Node is registered anew."),
    row("Node", "Warning", "NodeServerMoved", "The label `topology.kubernetes.io/zone` or `region` of the Node names another zone or region than the one in which its server is now. These labels are never changed while a Node lives, because volumes are bound to them. The message names the three steps by which the Node is registered anew."),
    row("Node", "Warning", "NodeServerNotFound", "The node is not ready, has no providerID, and no server has its name, so nobody can say whether its server is gone. The Node is kept; the message says how to delete it, or to give it an id."),
    row("Node", "Warning", "NodeDeletionHeld", "Too many servers are missing at once, or the cloud's answer is not reliable: no node is deleted. The message says what to do."),
    row("Node", "Normal", "DeletingNode", "The node is deleted because its server is gone."),
    row("Node", "Warning", "DeletingNodeFailed", "The node could not be deleted. It is retried."),
    row("Node", "Warning", "FailedToCreateRoute", "The route to the pods of the node could not be created. It is retried."),
    row("Lease", "Normal", "LeaderElection", "A process became the leader, or stopped leading."),
];

const INTRODUCTION: &str = "# Events

These are the Events that `kubectl describe` and `kubectl events` show. Reasons and texts are those of the framework and of the
Go implementation (column *OCCM*), if they have one. An Event is written when something begins, ends or fails, but not for a reconciliation that
changes nothing; repeats are counted in one Event. The API server deletes an Event an hour after its last write. A Warning whose cause lasts
is therefore written again at each check for drift (`drift-check-interval`), so that `kubectl describe` shows what holds now.

Exceptions: failures are reported at every retry (reasons with `Failed`, for example), and these are reported once:
";

const TABLE: &str = "\
| Object | Type | Reason | OCCM | Meaning |
| --- | --- | --- | --- | --- |
";

/// Warnings that are said once.
pub(crate) const ONCE: &[&str] = &[
    "CloudPartMissing",
    "FloatingIPKept",
    "FloatingIPLeftInUse",
    "FloatingIPNotDeleted",
    "LoadBalancerAddressChanged",
    "LoadBalancerChangeRepeated",
    "LoadBalancerChildFailed",
    "LoadBalancerDriftRepaired",
    "LoadBalancerDuplicateKept",
    "LoadBalancerFailover",
    "LoadBalancerGone",
    "LoadBalancerLeft",
    "LoadBalancerListenerReplaced",
    "LoadBalancerMembersOutOfReach",
    "LoadBalancerProxyProtocolSwitched",
    "LoadBalancerRename",
    "LoadBalancerReplaced",
    "LoadBalancerRetained",
];

/// The page, with those reasons only that `is_used` knows.
pub(crate) fn markdown(is_used: impl Fn(&str) -> bool) -> String {
    let rows: String = REASONS
        .iter()
        .filter(|event| is_used(event.reason))
        .map(|event| {
            let EventReason { object, severity, reason, meaning } = event;
            let occm = occm::column("events", reason).unwrap_or_default();
            format!("| {object} | {severity} | `{reason}` | {occm} | {}{} |\n", since(reason), cell(meaning))
        })
        .collect();
    let once: Vec<String> = ONCE.iter().map(|reason| format!("`{reason}`")).collect();
    format!("{GENERATED}\n\n{INTRODUCTION}{}.\n\n{TABLE}{rows}", once.join(", "))
}
