//! Counts the existing load balancers among those that Services name, and says what the absence of the others means. Pure.

use std::collections::{HashMap, HashSet};

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_openstack_api::octavia::LoadBalancer;

use crate::load_balancer::identity::ids::PublishedId;
use crate::load_balancer::names::{self, GeneratedName};
use crate::load_balancer::objects::Tags;

/// What a list of all load balancers shows about those that Services name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Load balancers that were made for Services, existing or missing.
    pub(crate) named: usize,
    /// How many of `named` the list lacks.
    pub(crate) missing: usize,
    /// Whether the list has any load balancer of this cluster, or this process has found one before.
    pub(crate) any_of_cluster: bool,
}

/// What the absence of a load balancer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The load balancer is gone: others of this cluster exist.
    Gone,
    /// Most load balancers are missing: this may be another project or region.
    Most,
    /// No other load balancer shows whether this is the right project and region.
    Unproven,
}

impl Count {
    /// Returns what it means that one of the named load balancers is missing.
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

    /// Returns whether a load balancer may be created for a Service that never had one.
    pub(in crate::load_balancer) fn allows_more(self) -> bool {
        self.missing == 0 || self.absence() == Absence::Gone
    }
}

/// A load balancer that was made for a Service, according to the Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::load_balancer) struct Named {
    pub(in crate::load_balancer) id: PublishedId,
    /// The uid of the Service, and the name that is generated for it.
    pub(in crate::load_balancer) service_uid: String,
    pub(in crate::load_balancer) generated_name: String,
}

/// What was found about one named load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Presence {
    Nothing,
    /// Another load balancer has its name, or its id belongs to a load balancer of another name. That proves neither presence nor
    /// absence.
    Doubtful,
    /// The load balancer exists: the cloud confirms it, and not only the Service.
    Present,
}

/// What is kept of a list of all load balancers: a cloud may have thousands that are not counted.
#[derive(Debug)]
pub(in crate::load_balancer) struct PresenceTally<'a> {
    cluster: &'a ClusterIdentity,
    /// Uids of Services whose load balancers confirm nothing.
    on_word: &'a HashSet<String>,
    named: &'a [Named],
    findings: Vec<Presence>,
    by_id: HashMap<&'a str, usize>,
    by_uid: HashMap<&'a str, usize>,
    by_name: HashMap<&'a str, usize>,
    any_of_cluster: bool,
}

impl<'a> PresenceTally<'a> {
    /// Creates a tally of the `named` load balancers of a cluster.
    pub(in crate::load_balancer) fn new(
        named: &'a [Named],
        cluster: &'a ClusterIdentity,
        on_word: &'a HashSet<String>,
    ) -> Self {
        let by = |key: fn(&Named) -> &str| {
            named.iter().enumerate().map(|(place, one)| (key(one), place)).collect()
        };
        Self {
            cluster,
            on_word,
            named,
            findings: vec![Presence::Nothing; named.len()],
            by_id: by(|one| one.id.as_str()),
            by_uid: by(|one| &one.service_uid),
            by_name: by(|one| &one.generated_name),
            any_of_cluster: false,
        }
    }

    /// Returns what the list shows.
    pub(in crate::load_balancer) fn count(&self) -> Count {
        let of = |finding| self.findings.iter().filter(|one| **one == finding).count();
        let (missing, present) = (of(Presence::Nothing), of(Presence::Present));
        Count { named: missing + present, missing, any_of_cluster: self.any_of_cluster }
    }

    fn note(&mut self, place: Option<usize>, finding: Presence) {
        if let Some(found) = place.and_then(|place| self.findings.get_mut(place)) {
            *found = finding.max(*found);
        }
    }

    fn see(&mut self, one: &LoadBalancer) {
        let by_id = self.by_id.get(one.id.as_str()).copied();
        // A load balancer that OCCM made has no tags with uids yet; but no other has both the id and the name by chance.
        let made_for_it = by_id
            .and_then(|place| self.named.get(place))
            .is_some_and(|named| named.generated_name == one.name);
        self.note(by_id, if made_for_it { Presence::Present } else { Presence::Doubtful });
        for name in names::user_names(&one.tags).chain([one.name.as_str()]) {
            self.note(self.by_name.get(name).copied(), Presence::Doubtful);
        }
        if has_tag(self.cluster, &one.tags) {
            for uid in names::service_uids(&one.tags) {
                self.note(self.by_uid.get(uid).copied(), Presence::Present);
            }
        }
        let shows = made_for_it || is_made_here(self.cluster, &one.name, &one.tags);
        self.any_of_cluster |= shows && !is_for_any(&one.tags, self.on_word);
    }
}

/// Returns whether this cluster made a load balancer: it has the cluster's tag and name. Any other load balancer gets the tag as
/// soon as a Service of the cluster names it in an annotation, to share it.
pub(in crate::load_balancer) fn is_made_here(cluster: &ClusterIdentity, name: &str, tags: &Tags) -> bool {
    let named = GeneratedName::parse(name).is_some_and(|made_for| made_for.cluster == cluster.name);
    named && has_tag(cluster, tags)
}

fn has_tag(cluster: &ClusterIdentity, tags: &Tags) -> bool {
    names::cluster_uids(tags).any(|uid| uid == cluster.uid)
}

/// Returns whether the tags name one of these Services.
pub(in crate::load_balancer) fn is_for_any(tags: &Tags, service_uids: &HashSet<String>) -> bool {
    names::service_uids(tags).any(|uid| service_uids.contains(uid))
}

impl Extend<LoadBalancer> for PresenceTally<'_> {
    fn extend<I: IntoIterator<Item = LoadBalancer>>(&mut self, listed: I) {
        listed.into_iter().for_each(|one| self.see(&one));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{from_value, json};

    use super::*;

    fn named(id: &str) -> Named {
        let generated_name = format!("kube_service_c_default_{id}");
        Named { id: PublishedId::in_test(id), service_uid: format!("uid-of-{id}"), generated_name }
    }

    fn cluster() -> ClusterIdentity {
        ClusterIdentity { name: "c".to_owned(), uid: "uid".to_owned() }
    }

    /// Counts the named load balancers in a list of these: OCCM made `x` for the Service that names `x`, `x*` has the tags of the cluster
    /// and of that Service, `x!` only the id, `x?` only the name, `x+` the id and the tags of a guest.
    fn count(services: &str, listed: &str) -> Count {
        let services: Vec<Named> = services.split_whitespace().map(named).collect();
        let load_balancer = |text: &str| -> LoadBalancer {
            let id = text.trim_end_matches(['*', '!', '?', '+']);
            let tags = if text.ends_with(['*', '+']) {
                vec!["openstack-ccm-cluster=uid".to_owned(), format!("openstack-ccm-service=uid-of-{id}")]
            } else {
                Vec::new()
            };
            let name =
                if text.ends_with(['!', '+']) { "another".to_owned() } else { named(id).generated_name };
            let shown = if text.ends_with('?') { "another-id" } else { id };
            let view = json!({"id": shown, "name": name, "tags": tags, "provisioning_status": "ACTIVE", "operating_status": "ONLINE"});
            from_value(view).expect("a load balancer")
        };
        let (cluster, none) = (cluster(), HashSet::new());
        let mut tally = PresenceTally::new(&services, &cluster, &none);
        tally.extend(listed.split_whitespace().map(load_balancer));
        tally.count()
    }

    #[rstest]
    #[case::of_the_cluster("a b", "a* b*", (2, 0, true))]
    #[case::made_by_occm("a b", "a b", (2, 0, true))]
    #[case::another_one_has_the_id("a b", "a! b!", (0, 0, false))]
    #[case::another_one_has_the_name("a b", "a? b?", (0, 0, false))]
    #[case::guests_of_others("a b", "a+ b+", (2, 0, false))]
    #[case::one_of_each("a b c d", "a* b! c?", (2, 1, true))]
    fn only_what_the_cloud_says_as_well_is_counted(
        #[case] services: &str,
        #[case] listed: &str,
        #[case] expected: (usize, usize, bool),
    ) {
        let Count { named, missing, any_of_cluster } = count(services, listed);
        assert_eq!((named, missing, any_of_cluster), expected);
    }

    #[test]
    fn what_was_made_on_somebodys_word_is_no_evidence() {
        let services = [named("a"), named("b")];
        let view = json!({"id": "b", "name": named("b").generated_name, "tags": ["openstack-ccm-cluster=uid", "openstack-ccm-service=uid-of-b"],
            "provisioning_status": "ACTIVE", "operating_status": "ONLINE"});
        let listed: LoadBalancer = from_value(view).expect("a load balancer");
        let cluster = cluster();
        for (on_word, expected) in
            [(HashSet::new(), Absence::Gone), (HashSet::from(["uid-of-b".to_owned()]), Absence::Unproven)]
        {
            let mut tally = PresenceTally::new(&services, &cluster, &on_word);
            tally.extend([listed.clone()]);
            assert_eq!(tally.count().absence(), expected);
        }
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
