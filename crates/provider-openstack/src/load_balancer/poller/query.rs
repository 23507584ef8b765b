//! What a poll asks for.

use std::collections::BTreeSet;

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
    pub(super) of_projects: Vec<LoadBalancerFilter>,
    /// Lists of those that have one name in a project, or one id.
    pub(super) single: Vec<LoadBalancerFilter>,
    /// What is to be kept of them.
    pub(super) listed: PollerList,
}

impl PollQuery {
    /// Each load balancer by its name or id: what is asked for where few are watched.
    pub(super) fn of_each(watched: &[Watched<'_>]) -> Self {
        let names = watched.iter().filter_map(Watched::name_in_project).map(owned).collect();
        Self {
            of_projects: Vec::new(),
            single: watched.iter().map(Watched::filter).collect(),
            listed: listed(watched, Namesakes::OfNames(names)),
        }
    }

    /// All load balancers of their projects. Nothing more is asked for where the owner of one is not known: an administrator's list would
    /// be that of the whole cloud.
    pub(super) fn of_projects(watched: &[Watched<'_>]) -> Self {
        let projects: BTreeSet<_> = watched.iter().filter_map(|one| one.project_id).collect();
        let of_project = |id: &str| LoadBalancerFilter::of_project(Some(id.to_owned()));
        let without_owner = watched.iter().filter(|one| one.project_id.is_none());
        Self {
            of_projects: projects.into_iter().map(of_project).collect(),
            single: without_owner.map(|one| LoadBalancerFilter::id(one.id)).collect(),
            listed: listed(watched, Namesakes::OfAll),
        }
    }
}

impl<'a> Watched<'a> {
    fn name_in_project(&self) -> Option<(&'a str, &'a str)> {
        self.name.zip(self.project_id)
    }

    /// By its name, where that is known: others of this name show, too.
    fn filter(&self) -> LoadBalancerFilter {
        let Some((name, project_id)) = self.name_in_project() else { return LoadBalancerFilter::id(self.id) };
        let of_project = LoadBalancerFilter::of_project(Some(project_id.to_owned()));
        LoadBalancerFilter { name: Some(name.to_owned()), ..of_project }
    }
}

fn listed(watched: &[Watched<'_>], namesakes: Namesakes) -> PollerList {
    let ids = watched.iter().map(|one| one.id.to_owned()).collect();
    let names = watched.iter().filter_map(|one| one.name.map(str::to_owned)).collect();
    PollerList::new(ids, names, namesakes)
}

fn owned((name, project_id): (&str, &str)) -> (String, String) {
    (name.to_owned(), project_id.to_owned())
}
