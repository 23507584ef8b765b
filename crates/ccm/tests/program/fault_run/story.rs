//! What users, administrators and machines do in a run.

use std::time::Duration;

use fastrand::Rng;

use super::annotation::{self, Setting};
use super::inherited::Inherited;
use super::stage::NEIGHBOURS;

/// Nodes that are there from the beginning to the end; one more is there until it vanishes.
pub(super) const LASTING_NODES: usize = 4;

/// Every `operating_status`.
const OPERATING: [&str; 5] = ["ONLINE", "OFFLINE", "DEGRADED", "ERROR", "NO_MONITOR"];

/// What only some stories have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Annotations with right, odd and wrong values.
    Annotations,
    /// Annotations that OCCM passed over, on what it left.
    PassedOver,
    /// Services on the load balancer of others.
    Sharing,
    /// Services that were copied from another cluster.
    Copies,
    /// Load balancers in ERROR.
    Broken,
    /// Credentials of another project.
    WrongProject,
    /// Absurd values of `Retry-After`.
    AbsurdWaits,
    /// Services and Nodes that the API server shows no more for a while.
    Absences,
    /// Some of them that it does not show, or that its lists lack.
    Gaps,
    /// Load balancers of the cluster itself that stay PENDING as long as the trouble lasts.
    Hangs,
    /// Another tenant of the cluster who means no good.
    Tenant,
    /// Lists of the project that are slow or fail.
    Lists,
    /// One call that is refused for good, in runs in which nothing else goes wrong.
    Refusals,
}

impl Kind {
    /// Whether stories have it: `FAULT_WITHOUT=Broken,Copies` leaves out what a search is not about.
    pub(super) fn is_included(self) -> bool {
        let without = std::env::var("FAULT_WITHOUT").unwrap_or_default();
        !without.split(',').any(|kind| kind == format!("{self:?}"))
    }
}

/// One change from outside. Names are used once, so that an edit never depends on how far the program is.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Create {
        service: usize,
        proxy: bool,
        settings: Vec<Setting>,
    },
    /// A Service on the load balancer that a person made for all.
    Share {
        service: usize,
    },
    /// A copy of a Service of the other cluster, with all its annotations.
    Copy {
        neighbour: usize,
    },
    /// An annotation with a right, odd or wrong value.
    Annotate {
        service: usize,
        setting: Setting,
    },
    /// Annotations are again as they were at the beginning: what a wrong value does to a load balancer depends on
    /// whether it is there already.
    Settle {
        service: usize,
    },
    SetProxy {
        service: usize,
        on: bool,
    },
    SetPorts {
        service: usize,
        ports: usize,
    },
    SetAffinity {
        service: usize,
        on: bool,
    },
    SetRanges {
        service: usize,
        on: bool,
    },
    Retype {
        service: usize,
    },
    Delete {
        service: usize,
    },
    /// Octavia puts the load balancer of a Service into ERROR.
    Break {
        service: usize,
        operating: &'static str,
    },
    /// An administrator repairs it.
    FailOver {
        service: usize,
    },
    Join {
        node: usize,
    },
    Vanish {
        node: usize,
    },
    DropRoutes,
    AddStrayRoute {
        third: usize,
    },
}

/// Edits that are made at once, and the time until the next ones.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) edits: Vec<Edit>,
    pub(super) pause: Duration,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    /// What OCCM served before.
    pub(super) inherited: Vec<Inherited>,
    /// Whether another cluster runs in the same project.
    pub(super) neighbour: bool,
    pub(crate) steps: Vec<Step>,
}

/// What is there at a point of a story.
#[derive(Default)]
struct Draft {
    services: Vec<usize>,
    /// Those of them that share a load balancer.
    sharing: Vec<usize>,
    /// Those whose load balancer is there from the beginning, and their own.
    inherited: Vec<usize>,
    /// Services of the other cluster that were not copied yet.
    uncopied: Vec<usize>,
    next: usize,
    vanished: bool,
}

impl Story {
    pub(crate) fn of(random: &mut Rng) -> Self {
        let inherited = Inherited::some(random);
        let neighbour = random.u8(0..3) == 0;
        let mut draft = Draft {
            services: inherited.iter().map(|one| one.service).collect(),
            sharing: inherited.iter().filter(|one| one.host.is_some()).map(|one| one.service).collect(),
            inherited: inherited.iter().filter(|one| one.host.is_none()).map(|one| one.service).collect(),
            uncopied: if neighbour { (0..NEIGHBOURS).collect() } else { Vec::new() },
            next: LASTING_NODES + 1,
            vanished: false,
        };
        let steps = (0..random.usize(3..8)).map(|_| Step {
            edits: (0..random.usize(1..4)).map(|_| draft.edit(random)).collect(),
            pause: Duration::from_millis(random.u64(0..40_000)),
        });
        let mut steps: Vec<Step> = steps.collect();
        let repaired = draft.inherited.iter().map(|service| Edit::FailOver { service: *service });
        let settled = draft.services.iter().map(|service| Edit::Settle { service: *service });
        let pause = Duration::from_secs(10);
        steps.push(Step { edits: repaired.chain(settled).collect(), pause });
        Self { inherited, neighbour, steps }
    }
}

impl Draft {
    fn edit(&mut self, random: &mut Rng) -> Edit {
        let some_service = random.choice(&self.services).copied();
        match (random.u8(0..20), some_service) {
            (0, Some(service)) => Edit::SetProxy { service, on: random.bool() },
            // On a shared load balancer the ports of all would be the same ones.
            (1, Some(service)) if !self.sharing.contains(&service) => {
                Edit::SetPorts { service, ports: random.usize(1..4) }
            }
            (2, Some(service)) => {
                self.services.retain(|one| *one != service);
                Edit::Retype { service }
            }
            (3 | 4, Some(service)) => {
                self.services.retain(|one| *one != service);
                Edit::Delete { service }
            }
            // One that joins afterwards may get the address of the one that vanished.
            (5 | 6, _) if !self.vanished => Edit::Join { node: self.fresh() },
            // Many at once would be held up, and one that was never initialised is nobody's to delete.
            (7, _) if !self.vanished => {
                self.vanished = true;
                Edit::Vanish { node: LASTING_NODES }
            }
            (8, _) => Edit::DropRoutes,
            (9, _) => Edit::AddStrayRoute { third: 100 + self.fresh() },
            (10..=13, Some(service)) if Kind::Annotations.is_included() => {
                Edit::Annotate { service, setting: annotation::any(random) }
            }
            (14, Some(service)) => Edit::SetAffinity { service, on: random.bool() },
            (15, Some(service)) => Edit::SetRanges { service, on: random.bool() },
            (16, _) if Kind::Broken.is_included() && !self.inherited.is_empty() => {
                let service = self.inherited[random.usize(0..self.inherited.len())];
                Edit::Break { service, operating: OPERATING[random.usize(0..OPERATING.len())] }
            }
            (17 | 19, _) if Kind::Copies.is_included() && !self.uncopied.is_empty() => {
                Edit::Copy { neighbour: self.uncopied.swap_remove(random.usize(0..self.uncopied.len())) }
            }
            (18, _) if Kind::Sharing.is_included() => {
                let service = self.fresh();
                self.services.push(service);
                self.sharing.push(service);
                Edit::Share { service }
            }
            _ => {
                let service = self.fresh();
                self.services.push(service);
                Edit::Create { service, proxy: random.bool(), settings: annotation::right(random) }
            }
        }
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }
}
