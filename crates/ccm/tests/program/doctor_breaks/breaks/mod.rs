//! What an operator, a tenant or an accident does to a Service that is served.

mod application;
mod balancer;
mod cluster;
mod controller;
mod external_ips;
mod floating;
mod pods;
mod policies;
mod programs;
mod published;
mod security;
mod service_proxy;

use super::stage::{Kind, Stage};

/// What doctor can see of a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// All of it: what it says has to be what packets do.
    Clear,
    /// Packets arrive, and the controller would repair something on their way: a member that is missing beside another.
    Spare,
    /// Objects do not show what becomes of packets.
    Doubt,
    /// Objects show nothing at all: `unknown` is right, and green would be wrong where packets are lost.
    Hidden,
}

/// One of them.
pub(super) struct Break {
    pub(super) name: &'static str,
    /// In which worlds it can be done.
    pub(super) fits: fn(Kind) -> bool,
    pub(super) sight: Sight,
    /// Codes, of which doctor has to name one; without any it has to be quiet.
    pub(super) codes: &'static [&'static str],
    /// In which worlds it has to.
    pub(super) told_in: fn(Kind) -> bool,
    /// The hops of which something may be unseen.
    pub(super) unseen: &'static [u64],
    /// Whether it writes down what a port of the pod makes of the header, beside those of [`Part::Programs`], which all do.
    configures: bool,
    pub(super) does: fn(&Stage),
}

impl Break {
    const fn new(name: &'static str, fits: fn(Kind) -> bool, does: fn(&Stage)) -> Self {
        Self {
            name,
            fits,
            sight: Sight::Clear,
            codes: &[],
            told_in: anywhere,
            unseen: &[],
            configures: false,
            does,
        }
    }

    const fn seen(self, sight: Sight) -> Self {
        Self { sight, ..self }
    }

    const fn told(self, codes: &'static [&'static str]) -> Self {
        Self { codes, ..self }
    }

    const fn told_in(self, told_in: fn(Kind) -> bool) -> Self {
        Self { told_in, ..self }
    }

    const fn unseen(self, unseen: &'static [u64]) -> Self {
        Self { unseen, ..self }
    }

    const fn configures(self) -> Self {
        Self { configures: true, ..self }
    }
}

/// What breaks are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Balancer,
    Floating,
    Security,
    Cluster,
    Policies,
    Published,
    Application,
    Controller,
    Pods,
    ServiceProxy,
    ExternalIps,
    Programs,
}

impl Part {
    const ALL: [Self; 12] = [
        Self::Balancer,
        Self::Floating,
        Self::Security,
        Self::Cluster,
        Self::Policies,
        Self::Published,
        Self::Application,
        Self::Controller,
        Self::Pods,
        Self::ServiceProxy,
        Self::ExternalIps,
        Self::Programs,
    ];
}

/// All breaks of one part.
pub(super) fn of_part(part: Part) -> &'static [Break] {
    match part {
        Part::Balancer => balancer::BREAKS,
        Part::Floating => floating::BREAKS,
        Part::Security => security::BREAKS,
        Part::Cluster => cluster::BREAKS,
        Part::Policies => policies::BREAKS,
        Part::Published => published::BREAKS,
        Part::Application => application::BREAKS,
        Part::Controller => controller::BREAKS,
        Part::Pods => pods::BREAKS,
        Part::ServiceProxy => service_proxy::BREAKS,
        Part::ExternalIps => external_ips::BREAKS,
        Part::Programs => programs::BREAKS,
    }
}

/// What can be done in a world of this kind: all of it, or what may do something new.
pub(super) fn fitting(kind: Kind, all_of_it: bool) -> Vec<&'static Break> {
    let parts = Part::ALL.into_iter().filter(|part| all_of_it || kind.differs_in(*part));
    parts.flat_map(of_part).filter(|one| (one.fits)(kind)).collect()
}

/// Whether a break writes down what a port of the pod makes of the header. Where two do, what the later writes is not the truth of both.
pub(super) fn configures(one: &Break) -> bool {
    one.configures || of_part(Part::Programs).iter().any(|row| row.name == one.name)
}

fn anywhere(_: Kind) -> bool {
    true
}

/// Whether what bypasses the load balancer is lost.
fn needs_way(kind: Kind) -> bool {
    kind.has_header() && kind != Kind::Traefik
}

fn in_cloud(kind: Kind) -> bool {
    kind.is_in_cloud()
}
