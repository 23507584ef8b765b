//! The Octavia provider of one Service.

use serde_json::{Value, json};

use crate::contract::setup::{annotated, configured, load_balancer};
use crate::support::{World, lb_name, service};

const LB_PROVIDER: &str = "loadbalancer.openstack.org/lb-provider";

async fn with_ovn(conf: &str) -> World {
    configured(|world| {
        world.cloud.add_octavia_provider("ovn");
        format!("{conf}\n")
    })
    .await
}

fn of_ovn(name: &str) -> Value {
    service(name, json!({"metadata": {"annotations": {LB_PROVIDER: "ovn"}}}))
}

/// Contract: O19, better: with OCCM all load balancers of a cluster have one provider.
#[tokio::test(start_paused = true)]
async fn a_service_gets_a_provider_that_cloud_conf_lists_and_others_that_of_all() {
    let world = with_ovn("lb-providers = ovn, f5").await;
    world.serve(&of_ovn("web")).await;
    assert_eq!(load_balancer(&world)["provider"], "ovn");
    assert_eq!(world.cloud.pools()[0]["lb_algorithm"], "SOURCE_IP_PORT", "as ovn can do it");
    world.serve(&service("other", json!({}))).await;
    assert_eq!(world.cloud.load_balancer(&lb_name("other")).unwrap()["provider"], "amphora");
    assert_eq!(world.refusals(), 0);
    // What the provider cannot do is refused before anything is made.
    let proxied = json!({"metadata": {"annotations": {LB_PROVIDER: "ovn", "loadbalancer.openstack.org/proxy-protocol": "v2"}}});
    world.create(&service("proxied", proxied));
    world.until_warned("proxied", "provider ovn only forwards packets").await;
    assert_eq!(world.cloud.load_balancers().len(), 2);
}

/// Nobody may choose where the operator has not said so, and what serves stays as it is.
#[tokio::test(start_paused = true)]
async fn a_provider_that_cloud_conf_does_not_list_is_refused_and_what_serves_stays() {
    let mut world = with_ovn("").await;
    world.create(&of_ovn("web"));
    world.until_warned("web", "lb-providers in [LoadBalancer] of cloud.conf").await;
    assert!(world.cloud.load_balancers().is_empty());
    world.annotate("web", LB_PROVIDER, Some("amphora"));
    world.until_served("web").await;
    world.take_cloud_writes();
    world.annotate("web", LB_PROVIDER, Some("ovn"));
    world.third_node_joins().await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"], "everything else follows the Service");
    // The operator allows it: still nothing but a new load balancer can have it.
    world.stop().await;
    world.settings.cloud_conf = "lb-providers = ovn\n".to_owned();
    world.start().await;
    world
        .until_warned(
            "web",
            "lb-provider asks for ovn, the load balancer has amphora; revert the change, \
    or delete the Service and create it again",
        )
        .await;
    world.quiet().await;
    assert!(world.take_cloud_writes().is_empty());
}

/// A provider that cloud.conf lists and the cloud does not have.
#[tokio::test(start_paused = true)]
async fn a_provider_that_the_cloud_does_not_have_is_named_with_those_that_it_has() {
    let world = World::configured("lb-providers = ovn\n").await;
    world.create(&annotated(&[("lb-provider", "ovn")]));
    world
        .until_warned(
            "web",
            "this cloud has the providers amphora, octavia: correct lb-provider in cloud.conf, or in the annotation",
        )
        .await;
}
