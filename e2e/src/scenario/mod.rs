//! What is looked at. A group is a sequence of scenarios on one cluster, because clusters are what costs time.

pub(crate) mod address;
pub(crate) mod back;
pub(crate) mod calls;
pub(crate) mod canary;
pub(crate) mod certificates;
pub(crate) mod choice;
pub(crate) mod cluster;
pub(crate) mod datagrams;
pub(crate) mod detection;
pub(crate) mod doctor;
pub(crate) mod fallback;
pub(crate) mod families;
pub(crate) mod gateways;
pub(crate) mod hairpin;
pub(crate) mod interfaces;
pub(crate) mod killed;
pub(crate) mod kubelet;
pub(crate) mod kubernetes_release;
pub(crate) mod last_release;
pub(crate) mod life;
pub(crate) mod login;
pub(crate) mod machines;
pub(crate) mod older_release;
pub(crate) mod overlay;
pub(crate) mod ovn;
pub(crate) mod pair;
pub(crate) mod plan;
pub(crate) mod predecessor;
pub(crate) mod requested;
pub(crate) mod security_groups;
pub(crate) mod serving;
pub(crate) mod shared;
pub(crate) mod skew;
pub(crate) mod source;
pub(crate) mod steps;
pub(crate) mod tls;
pub(crate) mod toggle;
pub(crate) mod trouble;
pub(crate) mod untouched;
pub(crate) mod upgrade;
pub(crate) mod wishes;

use anyhow::Result;

use crate::artifacts::part::Part;
use crate::artifacts::release::Release;
use crate::artifacts::{Framework, Minor, OccmRelease};
use crate::kubernetes::proxy::Mode;
use crate::kubernetes::server::ServerKind;
use crate::network::ipv6::SecondSubnet;
use crate::stage::Stage;
use crate::truth;

/// Scenarios on one cluster.
pub(crate) struct Group {
    /// Its name, for `--only`.
    pub name: &'static str,
    /// Versions whose programs it needs.
    pub needs: &'static [Minor],
    /// Which programs of them.
    pub programs: &'static [&'static str],
    /// Versions of the load balancer controller of another cloud that it needs.
    pub owners: &'static [Framework],
    /// Releases of OCCM that it needs.
    pub occm: &'static [OccmRelease],
    /// Whether it needs cert-manager and Pebble.
    pub with_acme: bool,
    /// Whether it needs mermaid, where there is npm.
    pub with_mermaid: bool,
    /// Whether it needs Envoy and Traefik.
    pub with_gateways: bool,
    /// Whether it needs OVN's databases and Octavia's driver for them.
    pub with_ovn: bool,
    /// Whether it needs nodes that run containers.
    pub with_kubelet: bool,
    /// Whether it needs the program of the last release.
    pub with_last_release: bool,
    /// Whether it runs only where it is named.
    pub on_request: bool,
    /// The release of OpenStack that it runs on.
    pub release: Release,
    /// What it does.
    pub run: fn(&mut Stage) -> Result<()>,
}

impl Group {
    const fn new(
        name: &'static str,
        needs: &'static [Minor],
        programs: &'static [&'static str],
        run: fn(&mut Stage) -> Result<()>,
    ) -> Self {
        Self {
            name,
            needs,
            programs,
            owners: &[],
            occm: &[],
            with_acme: false,
            with_mermaid: false,
            with_gateways: false,
            with_ovn: false,
            with_kubelet: false,
            with_last_release: false,
            on_request: false,
            release: Release::NEWEST,
            run,
        }
    }

    /// What is built or installed before it begins.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let programs = |minor: &Minor| {
            self.programs.iter().map(|program| Part::Kubernetes(*minor, program)).collect::<Vec<_>>()
        };
        let further: [(bool, &[Part]); 6] = [
            (self.with_mermaid, &[Part::Mermaid]),
            (self.with_gateways, &[Part::Envoy, Part::Traefik]),
            (self.with_ovn, &[Part::OvnProvider]),
            (self.with_last_release, &[Part::LastRelease]),
            (self.with_acme, &[Part::Pebble, Part::CertManager]),
            (
                self.with_kubelet,
                &[
                    Part::Node("kubelet"),
                    Part::Node("kube-scheduler"),
                    Part::Helm,
                    Part::Kubectl,
                    Part::Image,
                ],
            ),
        ];
        let mut parts = vec![Part::OpenStack(self.release), Part::Drivers(self.release), Part::Etcd];
        parts.extend(self.needs.iter().flat_map(programs));
        parts.extend(self.occm.iter().map(|release| Part::Occm(*release)));
        parts.extend(self.owners.iter().map(|framework| Part::Owner(*framework)));
        parts.extend(further.into_iter().filter(|(needed, _)| *needed).flat_map(|(_, parts)| parts));
        parts
    }
}

/// API server 1.36.
const CURRENT: ServerKind = ServerKind { minor: Minor::V1_36, gate: None, dual_stack: false };
/// The same with addresses of both families.
const DUAL_STACK: ServerKind = ServerKind { dual_stack: true, ..CURRENT };
/// API server 1.28, which does not know the field.
const OLD: ServerKind = ServerKind { minor: Minor::V1_28, gate: None, dual_stack: false };
/// API server 1.29 as it is by default.
const GATE_OFF: ServerKind = ServerKind { minor: Minor::V1_29, gate: Some(false), dual_stack: false };
/// API server 1.29 with the alpha feature.
const GATE_ON: ServerKind = ServerKind { minor: Minor::V1_29, gate: Some(true), dual_stack: false };

/// A cluster whose nodes and endpoints the test writes.
const SERVED: &[&str] = &["kube-apiserver", "kube-proxy"];
/// A cluster with a controller manager.
const MANAGED: &[&str] = &["kube-apiserver", "kube-proxy", "kube-controller-manager"];

/// What a run is there for: the hairpin and its cure, life and faults, the ways of traffic. These groups are begun however late it is; they
/// need the same programs.
pub(crate) const CORE: [&str; 3] = ["current", "life", "traffic"];

/// All groups, in the order in which they begin: first those that need the fewest programs, then the long ones. `cluster` and `gate`
/// wait for leases and servers more than they work, so they run beside others that do not. Programs are built in this order too, so
/// `certificates`, whose programs nobody else needs, is the last, and the first to be left out when time is short.
pub(crate) const GROUPS: &[Group] = &[
    Group::new("current", &[Minor::V1_36], SERVED, current),
    Group::new("life", &[Minor::V1_36], SERVED, life),
    Group::new("traffic", &[Minor::V1_36], SERVED, traffic),
    Group::new("requested", &[Minor::V1_36], SERVED, requested::run),
    Group::new("cluster", &[Minor::V1_36], MANAGED, cluster),
    Group::new("serving", &[Minor::V1_36], SERVED, serving),
    Group::new("plan", &[Minor::V1_36], SERVED, plan::run),
    Group::new("families", &[Minor::V1_36], SERVED, families),
    Group::new("gate", &[Minor::V1_29, Minor::V1_36], SERVED, gate),
    Group::new("truth", &[Minor::V1_36], SERVED, truth),
    Group::new("calls", &[Minor::V1_36], SERVED, calls),
    Group::new("machines", &[Minor::V1_36], SERVED, machines),
    Group {
        with_mermaid: true,
        ..Group::new("doctor", &[Minor::V1_36, Minor::V1_29, Minor::V1_28], SERVED, doctor::run)
    },
    Group { on_request: true, ..Group::new("doctor-objects", &[Minor::V1_36], SERVED, doctor::objects) },
    Group::new("nodes", &[Minor::V1_36, Minor::V1_29], SERVED, nodes),
    Group::new("canary", &[Minor::V1_36, Minor::V1_29, Minor::V1_28], SERVED, canary),
    Group {
        owners: &Framework::ALL,
        ..Group::new("overlay", &[Minor::V1_36, Minor::V1_29], SERVED, overlay::run)
    },
    Group::new("old", &[Minor::V1_28], SERVED, old),
    Group { occm: &[OccmRelease::V1_36], ..Group::new("back", &[Minor::V1_36], SERVED, back::run) },
    Group {
        occm: &[OccmRelease::V1_29, OccmRelease::V1_36],
        ..Group::new("predecessor", &[Minor::V1_36, Minor::V1_28], SERVED, predecessor::run)
    },
    Group {
        occm: &[OccmRelease::V1_36],
        on_request: true,
        ..Group::new("beside-occm", &[Minor::V1_36], SERVED, calls::beside_occm)
    },
    // The image takes a release build of a quarter of an hour, more than all others together may take in CI.
    Group {
        with_kubelet: true,
        on_request: true,
        ..Group::new("kubelet", &[Minor::V1_36], MANAGED, kubelet::run)
    },
    Group { on_request: true, ..Group::new("wishes", &[Minor::V1_36], SERVED, wishes::run) },
    Group { with_gateways: true, ..Group::new("gateways", &[Minor::V1_36], SERVED, gateways::run) },
    Group { with_ovn: true, ..Group::new("ovn", &[Minor::V1_36], SERVED, ovn::run) },
    Group {
        with_last_release: true,
        ..Group::new("last-release", &[Minor::V1_36], SERVED, last_release::run)
    },
    kubernetes("kubernetes-1.33", &[Minor::V1_33], false, |stage| {
        kubernetes_release::run(stage, Minor::V1_33)
    }),
    kubernetes("kubernetes-1.37", &[Minor::V1_37], true, |stage| {
        kubernetes_release::run(stage, Minor::V1_37)
    }),
    Group { on_request: true, ..Group::new("cluster-1.37", &[Minor::V1_37], MANAGED, newest_cluster) },
    kubernetes("kubernetes-1.30", &[Minor::V1_30], true, |stage| {
        kubernetes_release::run(stage, Minor::V1_30)
    }),
    kubernetes("kubernetes-1.35", &[Minor::V1_35], true, |stage| {
        kubernetes_release::run(stage, Minor::V1_35)
    }),
    older_release("openstack-2024.1", Release::V2024_1, false),
    older_release("openstack-2025.1", Release::V2025_1, true),
    older_release("openstack-2023.1", Release::V2023_1, true),
    older_release("openstack-yoga", Release::Yoga, true),
    Group {
        with_acme: true,
        owners: &[Framework::V0_36],
        ..Group::new("certificates", &[Minor::V1_36], SERVED, certificates::run)
    },
];

/// What is shown on one more version of Kubernetes.
const fn kubernetes(
    name: &'static str,
    needs: &'static [Minor],
    on_request: bool,
    run: fn(&mut Stage) -> Result<()>,
) -> Group {
    Group { on_request, owners: &[Framework::V0_36], ..Group::new(name, needs, SERVED, run) }
}

/// What is shown on an older OpenStack.
const fn older_release(name: &'static str, release: Release, on_request: bool) -> Group {
    Group { release, on_request, ..Group::new(name, &[Minor::V1_36], SERVED, older_release::run) }
}

fn current(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("current", CURRENT, Mode::Iptables)?;
    hairpin::run(stage)
}

fn traffic(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("traffic", CURRENT, Mode::Iptables)?;
    address::run(stage)?;
    source::run(stage)?;
    tls::run(stage)?;
    shared::run(stage)?;
    toggle::run(stage)
}

/// The network has a second subnet meanwhile.
fn families(stage: &mut Stage) -> Result<()> {
    let networks = stage.cloud.networks.clone();
    let second = SecondSubnet::add(&stage.cloud.user, &networks)?;
    let looked = in_both_families(stage);
    stage.end_cluster()?;
    second.remove(&stage.cloud.user)?;
    looked
}

fn in_both_families(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("families", DUAL_STACK, Mode::Iptables)?;
    let networks = stage.cloud.networks.clone();
    // The subnets are found by the addresses of the nodes.
    stage.cluster()?.launch.load_balancer_settings(&networks, "subnet-id =")?;
    datagrams::create(stage)?;
    families::run(stage)?;
    datagrams::run(stage)?;
    security_groups::run(stage)
}

fn machines(stage: &mut Stage) -> Result<()> {
    machines::run(stage)?;
    truth::compute(stage)
}

fn calls(stage: &mut Stage) -> Result<()> {
    calls::run(stage)
}

fn cluster(stage: &mut Stage) -> Result<()> {
    cluster::run(stage, CURRENT)
}

fn newest_cluster(stage: &mut Stage) -> Result<()> {
    cluster::run(stage, ServerKind { minor: Minor::V1_37, ..CURRENT })
}

fn nodes(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("nodes", CURRENT, Mode::Iptables)?;
    choice::run(stage)?;
    skew::run(stage)
}

fn canary(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("canary", CURRENT, Mode::Iptables)?;
    canary::run(stage)?;
    let networks = stage.cloud.networks.clone();
    let second = SecondSubnet::add(&stage.cloud.user, &networks)?;
    let looked = stage.start_cluster("canary in both families", DUAL_STACK, Mode::Iptables);
    let looked = looked.and_then(|()| canary::in_both_families(stage));
    stage.end_cluster()?;
    second.remove(&stage.cloud.user)?;
    looked
}

fn life(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("life", CURRENT, Mode::Iptables)?;
    life::run(stage)?;
    trouble::run(stage)?;
    killed::run(stage)
}

fn serving(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("serving", CURRENT, Mode::Iptables)?;
    serving::run(stage)
}

fn old(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("old", OLD, Mode::Iptables)?;
    fallback::run(stage)?;
    truth::kubernetes(stage, &[OLD])
}

fn truth(stage: &mut Stage) -> Result<()> {
    truth::openstack(stage)?;
    truth::kubernetes(stage, &[CURRENT])
}

fn gate(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("gate", GATE_OFF, Mode::Iptables)?;
    fallback::run(stage)?;
    upgrade::run(stage)?;
    truth::kubernetes(stage, &[GATE_OFF, GATE_ON])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_for_one_group_alone_are_built_last() {
        let only: Vec<&str> = GROUPS.iter().filter(|group| group.with_acme).map(|group| group.name).collect();
        assert_eq!(only, ["certificates"]);
        assert_eq!(GROUPS.last().map(|group| group.name), Some("certificates"));
    }

    #[test]
    fn the_core_is_built_first() {
        let first: Vec<&str> = GROUPS.iter().take(CORE.len()).map(|group| group.name).collect();
        assert_eq!(first, CORE);
        assert!(GROUPS[..CORE.len()].iter().all(|group| group.parts() == GROUPS[0].parts()));
    }
}
