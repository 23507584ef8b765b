//! What is kept of a list of load balancers, and of whom it tells: a project may have thousands that nobody waits for.

use std::collections::{HashMap, HashSet};

use openstack_ccm_openstack_api::octavia::LoadBalancer;

/// When load balancers were changed last.
#[derive(Debug, Default)]
pub(in crate::load_balancer) struct LastChanges(Vec<(String, Option<String>)>);

impl LastChanges {
    /// Ids, each with `updated_at`.
    pub(super) fn into_pairs(self) -> Vec<(String, Option<String>)> {
        self.0
    }
}

impl Extend<LoadBalancer> for LastChanges {
    fn extend<I: IntoIterator<Item = LoadBalancer>>(&mut self, listed: I) {
        self.0.extend(listed.into_iter().map(|one| (one.id, one.updated_at)));
    }
}

/// What the list also shows: others that have the name of one that is watched.
#[derive(Debug, Default)]
pub(super) enum Namesakes {
    /// Not all of any name.
    #[default]
    Unknown,
    /// All.
    OfAll,
    /// Those of this name in this project.
    OfName(String, String),
}

/// What the poller keeps of a list.
#[derive(Debug, Default)]
pub(super) struct PollerList {
    /// Ids of those that it was asked for, so that one that it lacks is gone. Of others it tells nothing.
    ids: HashSet<String>,
    /// Names of those that are watched, as far as they are known before.
    names: HashSet<String>,
    namesakes: Namesakes,
    /// Those with these ids and names, by id.
    load_balancers: HashMap<String, LoadBalancer>,
    names_of_others: HashSet<String>,
    last_changes: LastChanges,
}

impl Extend<LoadBalancer> for PollerList {
    fn extend<I: IntoIterator<Item = LoadBalancer>>(&mut self, listed: I) {
        for one in listed {
            self.last_changes.0.push((one.id.clone(), one.updated_at.clone()));
            if self.ids.contains(&one.id) || self.names.contains(&one.name) {
                self.load_balancers.insert(one.id.clone(), one);
            } else if matches!(self.namesakes, Namesakes::OfAll) {
                self.names_of_others.insert(one.name);
            }
        }
    }
}

impl PollerList {
    /// Nothing is listed yet. It will tell of those with these ids; they are to be kept, and those with these names.
    pub(super) fn new(ids: HashSet<String>, names: HashSet<String>, namesakes: Namesakes) -> Self {
        Self { ids, names, namesakes, ..Self::default() }
    }

    /// Whether it shows the load balancer with this id unless that is gone.
    pub(super) fn tells_of(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// The load balancer with this id.
    pub(super) fn get(&self, id: &str) -> Option<&LoadBalancer> {
        self.load_balancers.get(id)
    }

    /// The others of this name in a project. Absent where not all of them were kept.
    pub(super) fn namesakes(&self, name: &str, id: &str, project_id: &str) -> Option<Vec<LoadBalancer>> {
        let are_kept = match &self.namesakes {
            Namesakes::OfAll => !self.names_of_others.contains(name),
            Namesakes::OfName(known, of_project) => known == name && of_project == project_id,
            Namesakes::Unknown => false,
        };
        if !are_kept {
            return None;
        }
        let of_project = |one: &&LoadBalancer| one.project_id.as_deref() == Some(project_id);
        let is_other = |one: &&LoadBalancer| one.name == name && one.id != id;
        Some(self.load_balancers.values().filter(of_project).filter(is_other).cloned().collect())
    }

    /// How many load balancers are listed. Not known once [taken](Self::take_last_changes).
    pub(super) fn len(&self) -> usize {
        self.last_changes.0.len()
    }

    /// When all that are listed were changed last. Taken once.
    pub(super) fn take_last_changes(&mut self) -> LastChanges {
        std::mem::take(&mut self.last_changes)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{from_value, json};

    use super::*;

    fn load_balancer(id: &str, name: &str) -> LoadBalancer {
        let view = json!({"id": id, "name": name, "project_id": "project", "provisioning_status": "ACTIVE",
            "operating_status": "ONLINE", "updated_at": format!("{id}-changed")});
        from_value(view).expect("a load balancer")
    }

    #[rstest]
    #[case::its_name_is_known(&["web"], "web", Some(vec!["another"]))]
    #[case::its_name_is_not_known_and_another_has_it(&[], "web", None)]
    #[case::nobody_else_has_its_name(&[], "mail", Some(vec![]))]
    fn who_has_the_name_of_one_that_is_watched(
        #[case] known: &[&str],
        #[case] name: &str,
        #[case] namesakes: Option<Vec<&str>>,
    ) {
        let names = known.iter().map(|name| (*name).to_owned()).collect();
        let mut listed = PollerList::new(["watched".to_owned()].into(), names, Namesakes::OfAll);
        listed.extend([load_balancer("another", "web"), load_balancer("watched", name)]);
        let found = listed.namesakes(name, "watched", "project");
        let ids = found.as_deref().map(|found| found.iter().map(|one| one.id.as_str()).collect::<Vec<_>>());
        assert_eq!(ids, namesakes);
    }

    #[test]
    fn of_one_that_nobody_waits_for_only_its_last_change_is_kept() {
        let mut listed = PollerList::new(["watched".to_owned()].into(), HashSet::new(), Namesakes::OfAll);
        listed.extend([load_balancer("another", "web"), load_balancer("watched", "mail")]);
        assert!(listed.get("another").is_none() && listed.get("watched").is_some());
        let changes = listed.take_last_changes().into_pairs();
        let changed = |id: &str| (id.to_owned(), Some(format!("{id}-changed")));
        assert_eq!(changes, [changed("another"), changed("watched")]);
    }
}
