//! How many of the load balancers that Services name are there, and what it means that others are not. Pure.

use std::collections::HashSet;

use openstack_ccm_openstack_api::octavia::LoadBalancer;

use crate::load_balancer::names;

/// What a list of all load balancers shows of those that Services name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Load balancers that were made for Services and are named by them.
    pub(crate) named: usize,
    /// Those of them that the list lacks.
    pub(crate) missing: usize,
    /// Whether the list has any load balancer of this cluster, or this process has found one before.
    pub(crate) any_of_cluster: bool,
}

/// What the absence of a load balancer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It is gone: others of this cluster are there.
    Gone,
    /// Most are missing: this may be another project or region.
    Most,
    /// It is the only one that could tell.
    Unproven,
}

impl Count {
    /// What it means that one of the named is missing.
    pub(crate) fn absence(self) -> Absence {
        let Self { named, missing, any_of_cluster } = self;
        if missing >= 2 && missing.saturating_mul(2) > named {
            Absence::Most
        } else if any_of_cluster {
            Absence::Gone
        } else {
            Absence::Unproven
        }
    }

    /// Whether a load balancer may be created for a Service that never had one.
    pub(super) fn allows_more(self) -> bool {
        self.missing == 0 || self.absence() == Absence::Gone
    }
}

/// What is kept of a list of all load balancers: a cloud may have thousands that nobody counts.
#[derive(Debug)]
pub(super) struct PresenceTally<'a> {
    cluster_uid: &'a str,
    named: usize,
    /// Those that are named and not listed yet.
    missing: HashSet<&'a str>,
    any_of_cluster: bool,
}

impl<'a> PresenceTally<'a> {
    /// Of these ids, for a cluster.
    pub(super) fn new(named: &'a HashSet<String>, cluster_uid: &'a str) -> Self {
        let missing = named.iter().map(String::as_str).collect();
        Self { cluster_uid, named: named.len(), missing, any_of_cluster: false }
    }

    /// What the list shows.
    pub(super) fn count(&self) -> Count {
        let Self { named, any_of_cluster, .. } = *self;
        let missing = self.missing.len();
        Count { named, missing, any_of_cluster: any_of_cluster || missing < named }
    }
}

impl Extend<LoadBalancer> for PresenceTally<'_> {
    fn extend<I: IntoIterator<Item = LoadBalancer>>(&mut self, listed: I) {
        for one in listed {
            self.missing.remove(one.id.as_str());
            self.any_of_cluster |= names::cluster_uids(&one.tags).any(|uid| uid == self.cluster_uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{from_value, json};

    use super::*;

    /// The count of those that are named, by a list of these; one that is listed as `x*` has the tag of the cluster.
    fn count(named: &str, listed: &str) -> Count {
        let named: HashSet<_> = named.split_whitespace().map(str::to_owned).collect();
        let load_balancer = |id: &str| -> LoadBalancer {
            let tags = if id.ends_with('*') { vec!["openstack-ccm-cluster=uid"] } else { Vec::new() };
            let view = json!({"id": id, "tags": tags, "provisioning_status": "ACTIVE", "operating_status": "ONLINE"});
            from_value(view).expect("a load balancer")
        };
        let mut tally = PresenceTally::new(&named, "uid");
        tally.extend(listed.split_whitespace().map(load_balancer));
        tally.count()
    }

    #[rstest]
    #[case::one_of_many("a b c d", "a b c", Absence::Gone)]
    #[case::half_of_two("a b", "a", Absence::Gone)]
    #[case::half_of_four("a b c d", "a b", Absence::Gone)]
    #[case::more_than_half("a b c", "a", Absence::Most)]
    #[case::all_of_two("a b", "", Absence::Most)]
    #[case::most_though_others_of_the_cluster_are_there("a b c", "a x*", Absence::Most)]
    #[case::the_only_one("a", "", Absence::Unproven)]
    #[case::the_only_one_beside_strangers("a", "x y", Absence::Unproven)]
    #[case::the_only_one_beside_others_of_the_cluster("a", "x*", Absence::Gone)]
    fn an_absence_is_judged_by_what_is_there(
        #[case] named: &str,
        #[case] listed: &str,
        #[case] expected: Absence,
    ) {
        assert_eq!(count(named, listed).absence(), expected);
    }

    #[rstest]
    #[case::nothing_is_named("", "", true)]
    #[case::all_are_there("a b", "a b", true)]
    #[case::one_is_missing("a b c", "a b", true)]
    #[case::most_are_missing("a b c", "a", false)]
    #[case::the_only_one_is_missing("a", "", false)]
    fn a_new_service_waits_where_it_may_be_the_wrong_place(
        #[case] named: &str,
        #[case] listed: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(count(named, listed).allows_more(), expected);
    }
}
