//! `check-config`: what is wrong before anything is switched on.

use openstack_ccm_openstack_sim::{Fault, OddCloud};
use rstest::rstest;
use serde_json::{Value, json};

use crate::process::Process;
use crate::stage::Stage;

/// Runs the subcommand on the configuration of the stage: whether it succeeds, and what it writes.
fn check(stage: &Stage, flags: &[&str]) -> (bool, String) {
    let conf = format!("--cloud-config={}", stage.file("cloud.conf").display());
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let mut arguments = vec!["check-config", &conf];
    if flags.contains(&"--services") {
        arguments.push(&kubeconfig);
    }
    arguments.extend(flags);
    let (status, output) = Process::run(stage, &arguments);
    (status.success(), output)
}

/// Adds lines to `[LoadBalancer]`, and whatever section follows in them.
fn append(stage: &Stage, lines: &str) {
    stage.set_cloud_conf(&format!("{}\n[LoadBalancer]\n{lines}\n", stage.cloud_conf()));
}

/// What an annotation would be refused for is found in cloud.conf, too.
#[rstest]
#[case::floating_network(
    "floating-network-id = public",
    "floating-network-id in [LoadBalancer] of cloud.conf: \"public\" is not a UUID"
)]
#[case::subnet("subnet-id = foo", "subnet-id in [LoadBalancer] of cloud.conf: \"foo\" is not a UUID")]
#[case::router("[Route]\nrouter-id = r1", "router-id in [Route] of cloud.conf: \"r1\" is not a UUID")]
#[case::class("[LoadBalancerClass \"dmz\"]\nfloating-network-id = provider", "\"provider\" is not a UUID")]
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_services_would_be_refused_for_is_an_error(#[case] lines: &str, #[case] named: &str) {
    let stage = Stage::new().await;
    append(&stage, lines);
    let (success, output) = check(&stage, &[]);
    assert!(!success && output.contains(named), "{output}");
    assert!(stage.cloud.log().calls().is_empty(), "nobody is asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_written_twice_is_reported() {
    let stage = Stage::new().await;
    stage.set_cloud_conf(
        &stage.cloud_conf().replace("[Global]", "[Global]\nauth-url = http://elsewhere.example.org"),
    );
    let (success, output) = check(&stage, &[]);
    assert!(success, "the later one counts, as with OCCM: {output}");
    assert!(
        output.contains("warning: ") && output.contains("auth-url: the key is already set in line 2"),
        "{output}"
    );
}

const ABSENT: &str = "6a61a5c8-0a57-4f5b-9c3e-0d6f1f9d2a11";

/// Every id is looked up; what is missing, of the wrong kind or not allowed is named with its place.
#[tokio::test(flavor = "multi_thread")]
async fn online_names_what_the_cloud_does_not_have_or_does_not_allow() {
    let stage = Stage::new().await;
    let (success, output) = check(&stage, &["--online"]);
    assert!(success && output.contains("cloud.conf is valid\n"), "{output}");
    for checked in
        ["ok: login to Keystone", "ok: the user may list load balancers", "OpenStack: 19 checks passed"]
    {
        assert!(output.contains(checked), "{checked} in {output}");
    }
    let tenant_network = stage.cloud.seed().network_id.clone();
    append(
        &stage,
        &format!(
            "floating-network-id = {tenant_network}\nmember-subnet-id = {ABSENT}\nflavor-id = {ABSENT}\n\
             availability-zone = nowhere\nlb-provider = octavia9\nlb-method = RANDOM\n[LoadBalancerClass \"dmz\"]\nnetwork-id = {ABSENT}\n[Route]\nrouter-id = {ABSENT}"
        ),
    );
    let denied = Fault::new().service("load-balancer").path("/v2.0/lbaas/loadbalancers");
    stage
        .cloud
        .faults()
        .add(denied.answer(403, json!({"faultstring": "Policy does not allow this request"})));
    let calls = stage.cloud.log().calls().len();
    let (success, output) = check(&stage, &["--online"]);
    assert!(!success, "{output}");
    for named in [
        format!(
            "floating-network-id in [LoadBalancer] of cloud.conf: the network {tenant_network:?} is not external"
        ),
        format!("member-subnet-id in [LoadBalancer] of cloud.conf: the subnet {ABSENT:?} does not exist"),
        format!(
            "flavor-id in [LoadBalancer] of cloud.conf: the flavor of load balancers {ABSENT:?} does not exist"
        ),
        "lb-provider in [LoadBalancer] of cloud.conf: the provider of load balancers \"octavia9\" does not exist"
            .to_owned(),
        "lb-method in [LoadBalancer] of cloud.conf: the method of pools \"RANDOM\" does not exist".to_owned(),
        "availability-zone in [LoadBalancer] of cloud.conf: the availability zone of load balancers"
            .to_owned(),
        format!(
            "network-id in [LoadBalancerClass \"dmz\"] of cloud.conf: the network {ABSENT:?} does not exist"
        ),
        format!("router-id in [Route] of cloud.conf: the router {ABSENT:?} does not exist"),
        "the user may not list load balancers".to_owned(),
        "load-balancer_member".to_owned(),
        "OpenStack: 9 errors, ".to_owned(),
    ] {
        assert!(output.contains(&named), "{named} in {output}");
    }
    let log = stage.cloud.log();
    let writes: Vec<_> = log.calls()[calls..]
        .iter()
        .filter(|call| {
            call.method != http::Method::GET && call.service != openstack_ccm_openstack_sim::Service::Identity
        })
        .cloned()
        .collect();
    assert!(writes.is_empty(), "nothing is changed: {writes:?}");
}

/// What only controllers need that will not run may be missing.
#[tokio::test(flavor = "multi_thread")]
async fn online_asks_for_what_the_chosen_controllers_need() {
    let stage = Stage::new().await;
    // There is no Nova in the other region.
    stage.set_cloud_conf(&stage.cloud_conf().replace("RegionOne", "RegionTwo"));
    append(&stage, &format!("subnet-id = {}\n[Route]\nrouter-id = {ABSENT}", stage.cloud.seed().subnet_id));
    let (success, output) = check(&stage, &["--online"]);
    assert!(!success && output.contains("cloud-node-controller cannot start"), "{output}");
    let (success, output) = check(&stage, &["--online", "--controllers=service"]);
    assert!(success && output.contains("OpenStack: ") && !output.contains("error"), "{output}");
    let (success, output) = check(&stage, &["--online", "--controllers=servce"]);
    assert!(!success && output.contains("\"servce\" is not a controller"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn online_names_a_wrong_password_and_a_wrong_region() {
    let stage = Stage::new().await;
    let conf = stage.cloud_conf();
    stage.set_cloud_conf(&conf.replace("password=\"lab\"", "password=\"correct-horse\""));
    let (success, output) = check(&stage, &["--online"]);
    assert!(!success && output.contains("401") && !output.contains("correct-horse"), "{output}");
    stage.set_cloud_conf(&conf.replace("RegionOne", "Nowhere"));
    let (success, output) = check(&stage, &["--online"]);
    assert!(!success && output.contains("service-lb-controller cannot start"), "{output}");
}

fn service(name: &str, annotations: &Value, class: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "loadBalancerClass": class, "ports": [{"port": 80}]},
    })
}

/// Every Service is read as the service controller reads it, and nothing is written anywhere.
#[tokio::test(flavor = "multi_thread")]
async fn all_services_of_a_cluster_are_checked_before_the_switch() {
    let stage = Stage::new().await;
    let create = |name: &str, annotations: &Value, class| {
        stage.kube.create(&service(name, annotations, class)).unwrap();
    };
    create("good", &json!({"loadbalancer.openstack.org/proxy-protocol": "v2"}), None);
    create(
        "wrong",
        &json!({"loadbalancer.openstack.org/timeout-client-data": "50s",
            "loadbalancer.openstack.org/floating-network-id": "public"}),
        None,
    );
    create("odd", &json!({"loadbalancer.openstack.org/proxy-protcol": "true"}), None);
    create(
        "other",
        &json!({"loadbalancer.openstack.org/connection-limit": "none"}),
        Some("example.com/other"),
    );
    let (success, output) = check(&stage, &["--services"]);
    assert!(!success, "{output}");
    for named in [
        "default/wrong: error: annotation loadbalancer.openstack.org/timeout-client-data: \"50s\"",
        "default/wrong: error: annotation loadbalancer.openstack.org/floating-network-id: \"public\" is not a UUID",
        "default/odd: warning: UnknownAnnotation",
        "3 Services of type LoadBalancer: 2 errors, 1 warning\n",
    ] {
        assert!(output.contains(named), "{named} in {output}");
    }
    assert!(!output.contains("default/good") && !output.contains("default/other"), "{output}");
    let (_, output) = check(&stage, &["--services", "--load-balancer-class=example.com/other"]);
    assert!(output.contains("default/other: error: "), "{output}");
    let requests = stage.kube.requests();
    assert!(requests.iter().all(|request| request.method == http::Method::GET), "nothing is changed");
    assert!(stage.cloud.log().calls().is_empty(), "the cloud is not asked");
}

/// The API server answers in pages.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_many_services_is_checked_to_its_last_one() {
    let stage = Stage::new().await;
    for number in 0..250 {
        stage.kube.create(&service(&format!("good-{number}"), &json!({}), None)).unwrap();
    }
    let wrong = json!({"loadbalancer.openstack.org/connection-limit": "none"});
    stage.kube.create(&service("wrong", &wrong, None)).unwrap();
    let (success, output) = check(&stage, &["--services"]);
    assert!(!success && output.contains("default/wrong: error: "), "{output}");
    assert!(output.contains("251 Services of type LoadBalancer: 1 error\n"), "{output}");
}

#[rstest]
#[case(OddCloud::OctaviaWithoutFilters, &["warning: Filters of lists: ", "GET /v2.0/lbaas/loadbalancers does not filter by tags"])]
#[case(OddCloud::NeutronWithoutTags, &["warning: Tags of floating IPs: Neutron does not list standard-attr-tag",
    "warning: Tags of security groups: Neutron does not list standard-attr-tag"])]
#[case(OddCloud::StrictNeutronWithoutTags, &["warning: Tags of floating IPs: ", "GET /v2.0/floatingips refuses to filter by tags"])]
#[case(OddCloud::NeutronWithoutDescriptions, &["warning: Descriptions of floating IPs: Neutron does not list standard-attr-description",
    "warning: Tags of floating IPs: Neutron does not list standard-attr-tag", "GET /v2.0/floatingips refuses to filter by tags"])]
#[case(OddCloud::OctaviaWithoutTags, &["warning: Tags of load balancers: ", "GET /v2.0/lbaas/loadbalancers refuses to filter by tags",
    "load balancers are not shared"])]
#[case(OddCloud::HiddenNetworks, &["warning: Networks by id: "])]
#[case(OddCloud::GatewayWithFewPaths, &["warning: Versions of Octavia: ", "warning: Status tree: "])]
#[case(OddCloud::AccessRules, &["warning: Networks by id: ", "warning: Security groups: ", "warning: Quotas: ", "warning: Status tree: ",
    "warning: Providers, flavors and availability zones: ", "warning: Certificates: ", "by the access rules",
    "the cloud does not show the network", "PUT /v2.0/floatingips/*/tags"])]
#[case(OddCloud::GatewayWithoutQueries, &["GET /v2.0/networks does not filter by id", "GET /v2.0/lbaas/loadbalancers does not filter by",
    "GET /v2.0/subnets does not filter by", "GET /v2.0/ports does not filter by"])]
#[case(OddCloud::OldOctavia, &["warning: Status tree: ", "warning: Quotas: ", "for Batches that add members"])]
#[tokio::test(flavor = "multi_thread")]
async fn online_says_what_an_odd_cloud_lacks(#[case] odd: OddCloud, #[case] said: &[&str]) {
    let stage = Stage::new().await;
    let body = json!({"loadbalancer": {"name": "mine", "vip_subnet_id": stage.cloud.seed().subnet_id}});
    assert_eq!(stage.cloud.user().post("load-balancer", "/v2.0/lbaas/loadbalancers", &body).0, 201);
    stage.cloud.become_odd(odd);
    let (success, output) = check(&stage, &["--online", "--verbose"]);
    assert!(success, "what can be done without is no error: {output}");
    for text in said {
        assert!(output.contains(text), "{text} in {output}");
    }
}
