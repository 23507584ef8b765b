use openstack_ccm_core::service::Service;
use rstest::rstest;
use serde_json::json;

use openstack_ccm_openstack_api::neutron::FloatingIp;
use openstack_ccm_openstack_api::octavia::{Listener, Pool};

use super::*;
use crate::load_balancer::objects::Reclaim;

const CLUSTER: &str = "11111111-1111-4111-8111-111111111111";
const OTHER_CLUSTER: &str = "22222222-2222-4222-8222-222222222222";
const SERVICE: &str = "33333333-3333-4333-8333-333333333333";
const EARLIER_SERVICE: &str = "44444444-4444-4444-8444-444444444444";
const NAME: &str = "kube_service_c1_default_web";
const LEGACY_NAME: &str = "a3333333333334333833333333333333";
const DESCRIPTION: &str = "Kubernetes external service default/web from cluster c1";
const RULES: SharingRules = SharingRules { tags: true, most_users: 2 };

fn cluster_tag(uid: &str) -> String {
    format!("openstack-ccm-cluster={uid}")
}

fn service_tag(uid: &str) -> String {
    format!("openstack-ccm-service={uid}")
}

/// The tags that this program gives.
fn own_tags() -> Vec<String> {
    vec![NAME.to_owned(), cluster_tag(CLUSTER), service_tag(SERVICE)]
}

/// `adopts_foreign` is the operator's word.
fn with_claim<T>(adopts_foreign: bool, ask: impl FnOnce(Claim<'_>) -> T) -> T {
    let former_cluster_names = ["old".to_owned()];
    let service = Service::new(ServiceKey::new("default", "web"), SERVICE);
    let cluster = ClusterIdentity { name: "c1".into(), uid: CLUSTER.into() };
    let names = Names::new(&cluster, &service);
    ask(Claim {
        key: &service.key,
        service_uid: SERVICE,
        names: &names,
        scope: Scope {
            cluster: &cluster,
            former_cluster_names: &former_cluster_names,
            adopts_foreign,
            project_id: None,
            others: Others(None),
        },
        shares_foreign: false,
        was_served: false,
        is_known: false,
        previous_name: None,
        elsewhere: false,
    })
}

fn load_balancer(name: &str, description: &str, tags: &[String]) -> LoadBalancer {
    let value = json!({"id": "lb-1", "name": name, "description": description, "tags": tags,
        "provisioning_status": "ACTIVE", "operating_status": "ONLINE"});
    serde_json::from_value(value).expect("a load balancer")
}

fn listener(name: &str, tags: &[&str]) -> Listener {
    let value = json!({"id": "listener-1", "name": name, "tags": tags, "default_pool_id": "pool-1", "protocol": "TCP",
        "protocol_port": 80, "provisioning_status": "ACTIVE", "operating_status": "ONLINE"});
    serde_json::from_value(value).expect("a listener")
}

fn pool(id: &str, name: &str, tags: &[&str], users: &[&str]) -> Pool {
    let users: Vec<_> = users.iter().map(|id| json!({"id": id})).collect();
    let value = json!({"id": id, "name": name, "tags": tags, "listeners": users, "protocol": "TCP",
        "lb_algorithm": "ROUND_ROBIN", "provisioning_status": "ACTIVE", "operating_status": "ONLINE"});
    serde_json::from_value(value).expect("a pool")
}

fn text(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Usable(ownership) => format!("{ownership:?}"),
        Verdict::Unrelated => "Unrelated".to_owned(),
        Verdict::Refused(failure) => failure.message.clone(),
    }
}

#[rstest]
#[case::made_here(FoundBy::Name, NAME, DESCRIPTION, own_tags(), "Sole")]
#[case::made_here_and_renamed_by_hand(FoundBy::Annotation, "renamed", DESCRIPTION, own_tags(), "Sole")]
#[case::guest_on_one_made_by_hand(FoundBy::Annotation, "mine", "", own_tags(), "Guest")]
#[case::made_by_occm(FoundBy::Name, NAME, DESCRIPTION, vec![NAME.into()], "Sole")]
#[case::made_by_occm_before_tags(FoundBy::Name, NAME, DESCRIPTION, vec![], "Sole")]
#[case::made_by_occm_and_annotated(FoundBy::Annotation, NAME, "edited by hand", vec![NAME.into()], "Sole")]
#[case::adopted(FoundBy::Annotation, NAME, "edited by hand", vec![], "Sole")]
#[case::occm_shares_it(FoundBy::Annotation, NAME, DESCRIPTION, vec![NAME.into(), "kube_service_c1_default_api".into()], "Shared")]
#[case::earlier_service_of_the_name(FoundBy::Name, NAME, DESCRIPTION, vec![NAME.into(), cluster_tag(CLUSTER), service_tag(EARLIER_SERVICE)], "Sole")]
#[case::somebody_took_the_name(FoundBy::Name, NAME, "mine", vec![], "not the Service's tags or description")]
#[case::legacy_name(FoundBy::LegacyName, LEGACY_NAME, "", vec![], "Sole")]
#[case::legacy_name_annotated(FoundBy::Annotation, LEGACY_NAME, "", vec![], "Sole")]
#[case::cut_name_of_another_service(FoundBy::CutName, "kube_service_cut", "another", vec![], "Unrelated")]
#[case::other_cluster_by_name(FoundBy::Name, NAME, DESCRIPTION, vec![NAME.into(), cluster_tag(OTHER_CLUSTER), service_tag(EARLIER_SERVICE)], "belongs to another cluster")]
#[case::other_cluster_by_annotation(FoundBy::Annotation, NAME, DESCRIPTION, vec![cluster_tag(OTHER_CLUSTER)], "belongs to another cluster")]
#[case::made_by_hand(FoundBy::Annotation, "mine", "", vec![], "Guest")]
#[case::made_for_another_service(FoundBy::Annotation, "kube_service_c1_default_api", "", vec!["kube_service_c1_default_api".into()], "Guest")]
#[case::other_clusters_occm(FoundBy::Annotation, "kube_service_c2_default_web", "", vec!["kube_service_c2_default_web".into()], "Guest")]
#[case::full(FoundBy::Annotation, "kube_service_c1_default_api", "", vec!["kube_service_c1_default_api".into(), "kube_service_c1_default_b".into()], "max-shared-lb")]
#[case::full_but_a_user_already(FoundBy::Annotation, "kube_service_c1_default_api", "", vec!["kube_service_c1_default_api".into(), "kube_service_c1_default_b".into(), NAME.into()], "Guest")]
fn a_load_balancer_belongs_to(
    #[case] by: FoundBy,
    #[case] name: &str,
    #[case] description: &str,
    #[case] tags: Vec<String>,
    #[case] expected: &str,
) {
    let found = load_balancer(name, description, &tags);
    let verdict = with_claim(false, |claim| claim.judge(&found, by, RULES));
    assert!(text(&verdict).contains(expected), "{}", text(&verdict));
}

/// The same Service exists in two clusters, and one may be a guest of the other. What changes the owner is the
/// operator's word, or that the tags of this very Service stand beside no name but the previous one.
#[rstest]
#[case::former_name_in_cloud_conf("kube_service_old_default_web", vec![], "Sole")]
#[case::former_name_in_cloud_conf_and_occm("kube_service_old_default_web", vec!["kube_service_old_default_web".into()], "Sole")]
#[case::tags_of_this_service("kube_service_x_default_web", vec!["kube_service_x_default_web".into(), cluster_tag(CLUSTER), service_tag(SERVICE)], "Sole")]
#[case::tags_of_a_guest("kube_service_x_default_web", vec!["kube_service_x_default_web".into(), NAME.into(), cluster_tag(CLUSTER), service_tag(SERVICE)], "Guest")]
#[case::brought_from_another_cluster("kube_service_x_default_web", vec!["kube_service_x_default_web".into()], "runs with --cluster-name=c1")]
#[case::the_name_is_that_of_the_service_it_was_made_for("kube_service_x_default_web", vec!["kube_service_x_default_web".into()], "former-cluster-names")]
#[case::of_another_service_there("kube_service_x_default_api", vec![], "former-cluster-names")]
#[case::renamed_by_hand_there("mine", vec!["kube_service_x_default_web".into()], "remove loadbalancer.openstack.org/load-balancer-id")]
#[case::made_by_hand("mine", vec![], "Guest")]
#[case::guest_of_both_clusters("mine", vec!["kube_service_x_default_web".into(), NAME.into()], "Guest")]
fn annotations_that_a_controller_wrote_make_nobody_an_owner(
    #[case] name: &str,
    #[case] tags: Vec<String>,
    #[case] expected: &str,
) {
    let found = load_balancer(name, "", &tags);
    let verdict = with_claim(false, |claim| {
        Claim { was_served: true, ..claim }.judge(&found, FoundBy::Annotation, RULES)
    });
    assert!(text(&verdict).contains(expected), "{}", text(&verdict));
}

/// The annotation `allow-foreign-cluster` makes a guest, and only where nobody could mistake the users for each other.
#[rstest]
#[case::of_another_name("kube_service_c2_default_web", FoundBy::Annotation, "Guest")]
#[case::of_the_same_name(NAME, FoundBy::Annotation, "belongs to another cluster")]
#[case::found_by_its_name(NAME, FoundBy::Name, "belongs to another cluster")]
fn a_service_that_shares_with_another_cluster_takes_nothing_over(
    #[case] name: &str,
    #[case] by: FoundBy,
    #[case] expected: &str,
) {
    for identity in [cluster_tag(OTHER_CLUSTER), format!("kube_cluster_id_{OTHER_CLUSTER}")] {
        let found = load_balancer(name, DESCRIPTION, &[name.into(), identity]);
        let verdict =
            with_claim(false, |claim| Claim { shares_foreign: true, ..claim }.judge(&found, by, RULES));
        assert!(text(&verdict).contains(expected), "{}", text(&verdict));
    }
}

/// What OCCM may write about the cluster is read, also where it names this one.
#[rstest]
#[case::this_cluster(CLUSTER, "Sole")]
#[case::another(OTHER_CLUSTER, "belongs to another cluster")]
fn the_cluster_id_of_occm_is_an_identity(#[case] uid: &str, #[case] expected: &str) {
    let found = load_balancer(NAME, DESCRIPTION, &[NAME.into(), format!("kube_cluster_id_{uid}")]);
    let verdict = with_claim(false, |claim| claim.judge(&found, FoundBy::Name, RULES));
    assert!(text(&verdict).contains(expected), "{}", text(&verdict));
}

/// On another cluster's load balancer the listeners may carry this Service's generated name, and are not its own.
#[test]
fn nothing_on_another_clusters_load_balancer_is_ours_by_its_name() {
    let tags = Tags::from([NAME.to_owned(), cluster_tag(OTHER_CLUSTER)]);
    with_claim(false, |claim| {
        let claim = claim.on(None, &tags);
        let [theirs, ours] =
            [vec![NAME], vec![NAME, "openstack-ccm-service=33333333-3333-4333-8333-333333333333"]]
                .map(|tags| listener(&format!("listener_0_{NAME}"), &tags));
        assert!(!claim.owns_listener(&theirs, Ownership::Guest));
        assert!(claim.owns_listener(&ours, Ownership::Guest));
    });
}

/// Defect: 8, better: nothing of another cluster is renamed or taken over by accident.
#[test]
fn another_clusters_load_balancer_is_taken_over_only_on_purpose() {
    let found = load_balancer(NAME, DESCRIPTION, &[NAME.into(), cluster_tag(OTHER_CLUSTER)]);
    let verdict = with_claim(true, |claim| claim.judge(&found, FoundBy::Name, RULES));
    assert_eq!(verdict, Verdict::Usable(Ownership::Sole));
}

#[test]
fn sharing_needs_tags() {
    let found = load_balancer("mine", "", &[]);
    let rules = SharingRules { tags: false, most_users: 2 };
    let verdict = with_claim(false, |claim| claim.judge(&found, FoundBy::Annotation, rules));
    assert!(text(&verdict).contains("requires tags"), "{verdict:?}");
}

/// Defect: 79, better: only the own generated name and tags make a load balancer ours to delete.
#[test]
fn who_goes_never_owns_another_clusters_load_balancer() {
    let tags = [NAME.into(), cluster_tag(OTHER_CLUSTER)];
    let found = load_balancer(NAME, DESCRIPTION, &tags);
    with_claim(false, |claim| {
        let release = |by| claim.judge_for_release(&found, by, Reclaim::Delete);
        assert_eq!(release(FoundBy::Name), None);
        assert_eq!(release(FoundBy::Annotation), None, "its tag of the same name stays");
    });
}

/// Who was to adopt a load balancer and never did leaves it behind.
#[rstest]
#[case::nothing_says_whose_it_is(vec![], Some(Ownership::Guest))]
#[case::occm_tagged_it(vec![NAME.into()], Some(Ownership::Sole))]
#[case::adopted_and_tagged(own_tags(), Some(Ownership::Sole))]
fn only_what_was_adopted_goes_with_its_service(
    #[case] tags: Vec<String>,
    #[case] expected: Option<Ownership>,
) {
    let found = load_balancer(NAME, "edited by hand", &tags);
    with_claim(false, |claim| {
        assert_eq!(claim.judge_for_release(&found, FoundBy::Annotation, Reclaim::Delete), expected);
    });
}

/// One that has outlived its Service is for a Service of the same name to take over, and never goes before that.
#[rstest]
#[case::by_its_name(FoundBy::Name, NAME, own_tags(), None, Some(Ownership::Sole))]
#[case::by_the_tag_of_the_same_service(FoundBy::Annotation, NAME, own_tags(), None, Some(Ownership::Sole))]
#[case::before_tags(FoundBy::Name, NAME, vec![], None, Some(Ownership::Sole))]
#[case::with_a_guest(FoundBy::Name, NAME, vec![NAME.into(), "kube_service_c1_default_b".into()], None, None)]
#[case::of_another_service_as_its_guest(FoundBy::Annotation, "kube_service_c1_default_b", vec!["kube_service_c1_default_b".into(), NAME.into()], Some(Ownership::Guest), Some(Ownership::Guest))]
#[case::of_another_service_as_its_last_user(FoundBy::Annotation, "kube_service_c1_default_b", vec![NAME.into()], Some(Ownership::Guest), Some(Ownership::Sole))]
fn a_retained_load_balancer_goes_with_nobody(
    #[case] by: FoundBy,
    #[case] name: &str,
    #[case] tags: Vec<String>,
    #[case] deletes: Option<Ownership>,
    #[case] retains: Option<Ownership>,
) {
    let found = load_balancer(name, &names::retained_description(DESCRIPTION), &tags);
    with_claim(false, |claim| {
        assert_eq!(claim.judge_for_release(&found, by, Reclaim::Delete), deletes);
        assert_eq!(claim.judge_for_release(&found, by, Reclaim::Retain), retains);
        if name == NAME {
            let verdict = text(&claim.judge(&found, by, RULES));
            assert!(verdict == "Sole" || verdict == "Shared", "{verdict}");
        }
    });
}

#[rstest]
#[case::made_here("any", &[NAME, "openstack-ccm-service=33333333-3333-4333-8333-333333333333"], Ownership::Guest, true)]
#[case::made_by_occm("any", &[NAME], Ownership::Guest, true)]
#[case::another_services("any", &["kube_service_c1_default_api"], Ownership::Sole, false)]
#[case::before_tags("listener_0_kube_service_c1_default_web", &[], Ownership::Sole, true)]
#[case::before_tags_but_a_guest("listener_0_kube_service_c1_default_web", &[], Ownership::Guest, false)]
#[case::administrators("extra", &[], Ownership::Sole, false)]
#[case::tags_of_a_team("listener_0_kube_service_c1_default_web", &["team-a"], Ownership::Sole, false)]
#[case::other_cluster("any", &[NAME, "openstack-ccm-cluster=22222222-2222-4222-8222-222222222222"], Ownership::Sole, false)]
#[case::earlier_service("any", &[NAME, "openstack-ccm-service=44444444-4444-4444-8444-444444444444"], Ownership::Sole, true)]
#[case::same_name_elsewhere("any", &[NAME, "openstack-ccm-service=44444444-4444-4444-8444-444444444444"], Ownership::Guest, false)]
fn a_listener_belongs_to_the_service(
    #[case] name: &str,
    #[case] tags: &[&str],
    #[case] ownership: Ownership,
    #[case] ours: bool,
) {
    let listener = listener(name, tags);
    assert_eq!(with_claim(false, |claim| claim.owns_listener(&listener, ownership)), ours);
}

#[rstest]
#[case::made_here(pool("pool-9", "any", &[NAME], &[]), Ownership::Guest, true)]
#[case::default_of_an_own_listener(pool("pool-1", "any", &[], &["listener-1"]), Ownership::Guest, true)]
#[case::shared_with_another_listener(pool("pool-1", "any", &[], &["listener-1", "x"]), Ownership::Sole, false)]
#[case::of_a_policy(pool("pool-9", "redirect", &[], &["listener-1"]), Ownership::Sole, false)]
#[case::left_by_occm(pool("pool-9", "pool_0_kube_service_c1_default_web", &[], &[]), Ownership::Sole, true)]
#[case::left_by_occm_where_it_was_a_guest(pool("pool-9", "pool_0_kube_service_c1_default_web", &[], &[]), Ownership::Guest, true)]
#[case::same_name_in_use(pool("pool-9", "pool_0_kube_service_c1_default_web", &[], &["x"]), Ownership::Guest, false)]
#[case::another_services(pool("pool-1", "any", &["openstack-ccm-service=x"], &["listener-1"]), Ownership::Guest, false)]
fn a_pool_belongs_to_the_service(#[case] pool: Pool, #[case] ownership: Ownership, #[case] ours: bool) {
    let own = listener("any", &[NAME]);
    assert_eq!(with_claim(false, |claim| claim.owns_pool(&pool, &[&own], ownership)), ours);
}

/// Defect: 56, better: the whole description and the tags decide, not a phrase.
#[rstest]
#[case::made_here("Floating IP for Kubernetes external service default/web from cluster c1", &["openstack-ccm-cluster=11111111-1111-4111-8111-111111111111"], true)]
#[case::made_by_occm("Floating IP for Kubernetes external service default/web from cluster c1", &[], true)]
#[case::another_service("Floating IP for Kubernetes external service default/web2 from cluster c1", &[], false)]
#[case::users_own("mine", &[], false)]
#[case::other_cluster("Floating IP for Kubernetes external service default/web from cluster c1", &["openstack-ccm-cluster=22222222-2222-4222-8222-222222222222"], false)]
fn a_floating_ip_belongs_to_the_service(
    #[case] description: &str,
    #[case] tags: &[&str],
    #[case] ours: bool,
) {
    let value = json!({"id": "fip", "floating_ip_address": "203.0.113.1", "floating_network_id": "ext",
        "description": description, "tags": tags});
    let floating_ip: FloatingIp = serde_json::from_value(value).expect("a floating IP");
    assert_eq!(with_claim(false, |claim| claim.owns_floating_ip(&floating_ip)), ours);
}

#[rstest]
#[case::nobodys("", &[], None)]
#[case::of_this_service("", &["openstack-ccm-service=33333333-3333-4333-8333-333333333333"], None)]
#[case::of_another("", &["openstack-ccm-service=x"], Some("openstack-ccm-service=x"))]
#[case::of_an_earlier_one_of_the_name("Floating IP for Kubernetes external service default/web from cluster c1", &["openstack-ccm-service=x"], None)]
#[case::of_another_cluster("Floating IP for Kubernetes external service default/web from cluster c1", &["kube_cluster_id_x"], Some("kube_cluster_id_x"))]
#[case::kept_by_another_cluster("Floating IP for Kubernetes external service default/web from cluster c2", &[], None)]
#[case::tagged_by_a_team("", &["team-a"], None)]
fn a_floating_ip_is_claimed_by_another(
    #[case] description: &str,
    #[case] tags: &[&str],
    #[case] expected: Option<&str>,
) {
    let value = json!({"id": "fip", "floating_ip_address": "203.0.113.1", "floating_network_id": "ext",
        "description": description, "tags": tags});
    let floating_ip: FloatingIp = serde_json::from_value(value).expect("a floating IP");
    assert_eq!(with_claim(false, |claim| claim.claim_of_another(&floating_ip)).as_deref(), expected);
}
