//! Messages for pods that do not reach the application as they should, with remedies. Pure.

use openstack_ccm_core::advertise::{ClusterAccess, Needs, Path, Preference, SettingNames};

use crate::cluster::Obstacle;

/// Says that nodes bypass the load balancer and no hostname can be published.
pub(crate) fn no_fallback(needs: Needs, obstacle: &Obstacle, settings: &SettingNames) -> String {
    let SettingNames { hostname_annotation, hostname_suffix_setting, .. } = settings;
    format!(
        "pods in this cluster might bypass the load balancer although {needs}: {obstacle}. Upgrade the API server and all nodes to \
         Kubernetes 1.30 or later, or publish a hostname: set the annotation {hostname_annotation} on the Service, or \
         {hostname_suffix_setting}"
    )
}

/// Says that the load balancer rejects the cluster's own pods, if it does.
pub(crate) fn shut_out(access: &ClusterAccess, settings: &SettingNames) -> Option<String> {
    let remedy = of_source_ranges(access, settings)?;
    Some(format!("the load balancer rejects connections from the cluster's own pods because {remedy}"))
}

/// Says that the address stays published as it was, because pods need the short circuit.
pub(crate) fn stays_short_circuited(access: &ClusterAccess, settings: &SettingNames) -> Option<String> {
    let remedy = of_source_ranges(access, settings)?;
    Some(format!("the address is still published without ipMode Proxy because {remedy}"))
}

/// Returns what is wrong with the source ranges and what to do, as the end of a sentence; `None` if nothing is.
fn of_source_ranges(access: &ClusterAccess, settings: &SettingNames) -> Option<String> {
    let missing = match access {
        ClusterAccess::Open => return None,
        ClusterAccess::Without(networks) => format!(
            "the source ranges do not include addresses from which the cluster itself connects ({})",
            networks.join(", ")
        ),
        ClusterAccess::Unknown(cause) => {
            format!(
                "the source ranges might not include the addresses from which the cluster itself connects ({cause})"
            )
        }
    };
    let by_annotation = settings
        .cluster_sources_annotation
        .map(|annotation| format!(", or set the annotation {annotation}: \"true\""))
        .unwrap_or_default();
    Some(format!("{missing}. Add these addresses to spec.loadBalancerSourceRanges{by_annotation}"))
}

/// Says that `vip` was requested against what the path needs.
pub(crate) fn bypassed(path: Path, preference: &Preference, settings: &SettingNames) -> Option<String> {
    let Path::ThroughLoadBalancer(needs) = path else { return None };
    let effect = match needs {
        Needs::ProxyProtocol => {
            "the pods send no PROXY protocol header, so an application that expects the header closes their connections (nginx logs \
             `broken header`)"
        }
        Needs::TlsTermination => {
            "no component terminates the pods' TLS connections, so their requests over TLS fail"
        }
        Needs::HeaderInsertion => {
            "the pods' requests arrive without the HTTP headers that the load balancer inserts"
        }
        Needs::ClusterSources => {
            "the nodes drop the pods' connections, because the source ranges do not include them"
        }
        // The other Service has its own message.
        Needs::SharedAddress => return None,
    };
    let SettingNames { ip_mode_annotation, hostname_annotation, ip_mode_setting, .. } = settings;
    let remedy = if preference.service_mode.is_some() {
        format!(
            "Remove the annotation {ip_mode_annotation} or set it to proxy, or replace it by the annotation {hostname_annotation},"
        )
    } else {
        format!(
            "Set the annotation {ip_mode_annotation}: proxy or {hostname_annotation} on the Service, or remove \
             {ip_mode_setting},"
        )
    };
    Some(format!(
        "ip-mode asks for vip, so pods in this cluster bypass the load balancer: {effect}. {remedy} if pods use this address"
    ))
}
