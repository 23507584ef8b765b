//! Lists the load balancers with the identity of this cluster and of its Services: those whose Service is gone are orphans.

use std::collections::BTreeSet;

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::OrphanCandidate;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::octavia::{LoadBalancer, LoadBalancerFilter, ProvisioningStatus};

use super::failure::Answered as _;
use super::names::{self, GeneratedName, cluster_tag};
use super::read::lists::Lists;

/// Lists load balancers that may be orphans.
pub(super) struct OrphanCandidates {
    lists: Lists,
    cluster: ClusterIdentity,
}

impl OrphanCandidates {
    pub(super) fn new(lists: Lists, cluster: ClusterIdentity) -> Self {
        Self { lists, cluster }
    }

    /// Lists the candidates. Cluster names are not unique, so only tags count: without tags in Octavia the list is empty.
    pub(super) async fn list(&self) -> Result<Vec<OrphanCandidate>, Failure> {
        let OpenStack { octavia, project_id, .. } = self.lists.openstack();
        let doing = "listing the load balancers";
        if !octavia.api_versions().await.while_doing(doing)?.tags() {
            return Ok(Vec::new());
        }
        let tag = cluster_tag(&self.cluster);
        // One list serves this and the checks for drift. It is begun now: a Service that went since would look like one that is missing.
        if let Some(project_id) = project_id
            && let Some(listed) = self.lists.all_load_balancers(project_id).await.while_doing(doing)?
        {
            let ours = listed.iter().filter(|one| one.tags.contains(&tag)).cloned();
            return Ok(ours.filter_map(orphan_candidate).collect());
        }
        let filter = LoadBalancerFilter {
            tags: vec![tag],
            project_id: project_id.clone(),
            ..LoadBalancerFilter::default()
        };
        let listed = octavia.list_load_balancers(&filter).await.while_doing(doing)?;
        Ok(listed.into_iter().filter_map(orphan_candidate).collect())
    }
}

/// Returns the orphan that a load balancer may be. `None` if it is being deleted, names no Service, or was made by a user and is
/// only used by a Service.
fn orphan_candidate(listed: LoadBalancer) -> Option<OrphanCandidate> {
    let LoadBalancer { id, name, description, provisioning_status, tags, .. } = listed;
    let service_uids: BTreeSet<String> = names::service_uids(&tags).map(str::to_owned).collect();
    let goes = matches!(provisioning_status, ProvisioningStatus::PendingDelete | ProvisioningStatus::Deleted);
    let is_made = names::is_made_for_service(&name, &description);
    let counts = !goes && is_made && !service_uids.is_empty();
    counts.then(|| {
        let service = GeneratedName::parse(&name).map(|parsed| parsed.service);
        OrphanCandidate { id, name, service_uids, is_retained: names::is_retained(&description), service }
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::made_here("Kubernetes external service default/web from cluster c1", "ACTIVE", &["openstack-ccm-service=s1"], Some("s1"))]
    #[case::broken("", "ERROR", &["openstack-ccm-service=s1"], Some("s1"))]
    #[case::two_users("", "ACTIVE", &["openstack-ccm-service=s1", "openstack-ccm-service=s2"], Some("s1 s2"))]
    #[case::stays_on_purpose("Retained: Kubernetes external service default/web from cluster c1", "ACTIVE", &["openstack-ccm-service=s1"], Some("s1"))]
    #[case::goes("", "PENDING_DELETE", &["openstack-ccm-service=s1"], None)]
    #[case::made_by_occm("", "ACTIVE", &["kube_service_c1_default_web"], None)]
    fn tags_say_for_which_services(
        #[case] description: &str,
        #[case] status: &str,
        #[case] tags: &[&str],
        #[case] uids: Option<&str>,
    ) {
        let listed = json!({"id": "lb-1", "name": "kube_service_c1_default_web", "description": description,
            "tags": tags, "provisioning_status": status, "operating_status": "ONLINE"});
        let listed: LoadBalancer = serde_json::from_value(listed).expect("a load balancer");
        let made = orphan_candidate(listed.clone());
        let found = made.as_ref().map(|made| made.service_uids.iter().cloned().collect::<Vec<_>>().join(" "));
        assert_eq!(found.as_deref(), uids);
        let stays = made.as_ref().is_some_and(|made| made.is_retained);
        assert_eq!(stays, description.starts_with("Retained: "));
        let by_hand = LoadBalancer { name: "by hand".to_owned(), ..listed };
        assert_eq!(orphan_candidate(by_hand).is_some(), uids.is_some() && !description.is_empty());
        assert!(made.is_none_or(|made| made.service.is_some_and(|service| &*service.name == "web")));
    }
}
