//! What a poll asks for.

use std::collections::BTreeMap;

use openstack_ccm_openstack_api::octavia::LoadBalancerFilter;

use super::poller_list::{Namesakes, PollerList};

/// One that is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched<'a> {
    pub(super) id: &'a str,
    pub(super) name: Option<&'a str>,
    pub(super) project_id: Option<&'a str>,
}

/// Lists that show everything watched.
#[derive(Debug)]
pub(super) struct PollQuery {
    /// Lists of all load balancers of a project.
    pub(super) of_projects: Vec<PollRequest>,
    /// Lists of those that have one name in a project, or one id.
    pub(super) single: Vec<PollRequest>,
}

/// One list.
#[derive(Debug)]
pub(super) struct PollRequest {
    pub(super) filter: LoadBalancerFilter,
    /// Empty as yet: it says of whom the list tells, and what is to be kept of it.
    pub(super) listed: PollerList,
}

impl PollQuery {
    /// Each load balancer by its name or id: what is asked for where few are watched.
    pub(super) fn of_each(watched: &[Watched<'_>]) -> Self {
        Self { of_projects: Vec::new(), single: watched.iter().map(Watched::request).collect() }
    }

    /// All load balancers of their projects. Nothing more is asked for where the owner of one is not known: an administrator's list would
    /// be that of the whole cloud.
    pub(super) fn of_projects(watched: &[Watched<'_>]) -> Self {
        let mut projects = BTreeMap::<_, Vec<_>>::new();
        let mut single = Vec::new();
        for one in watched {
            match one.project_id {
                Some(project_id) => projects.entry(project_id).or_default().push(*one),
                None => single.push(one.request()),
            }
        }
        let of_project = |(id, watched): (&str, Vec<_>)| PollRequest {
            filter: LoadBalancerFilter::of_project(Some(id.to_owned())),
            listed: listed(&watched, Namesakes::OfAll),
        };
        Self { of_projects: projects.into_iter().map(of_project).collect(), single }
    }
}

impl Watched<'_> {
    /// By its name, where that is known: others of this name show, too.
    fn request(&self) -> PollRequest {
        let Some((name, project_id)) = self.name.zip(self.project_id) else {
            let listed = listed(&[*self], Namesakes::Unknown);
            return PollRequest { filter: LoadBalancerFilter::id(self.id), listed };
        };
        let of_project = LoadBalancerFilter::of_project(Some(project_id.to_owned()));
        let filter = LoadBalancerFilter { name: Some(name.to_owned()), ..of_project };
        let listed = listed(&[*self], Namesakes::OfName(name.to_owned(), project_id.to_owned()));
        PollRequest { filter, listed }
    }
}

fn listed(watched: &[Watched<'_>], namesakes: Namesakes) -> PollerList {
    let ids = watched.iter().map(|one| one.id.to_owned()).collect();
    let names = watched.iter().filter_map(|one| one.name.map(str::to_owned)).collect();
    PollerList::new(ids, names, namesakes)
}
