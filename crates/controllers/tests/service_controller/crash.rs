//! The controller is killed at every boundary of a call and started again: the end is the same.

use std::sync::Arc;

use openstack_ccm_core::advertise::{Needs, Path, Preference};
use openstack_ccm_kube_sim::ApiVersion;
use serde_json::json;

use crate::cloud::LoadBalancer;
use crate::wire::Fuse;
use crate::world::{World, annotation, finalizers, settle, until};

/// What is left in the end.
#[derive(Debug, PartialEq, Eq)]
struct End {
    ingress: Vec<String>,
    finalizers: Vec<String>,
    annotations: Vec<(String, Option<String>)>,
    load_balancers: Vec<LoadBalancer>,
}

async fn end(world: &World) -> End {
    let service = world.get("app").await;
    let keys = [crate::cloud::ID, crate::cloud::ADDRESS, "theirs"];
    End {
        ingress: world.ingress("app").await,
        finalizers: service.as_ref().map(finalizers).unwrap_or_default(),
        annotations: keys
            .map(|key| (key.to_owned(), service.as_ref().and_then(|service| annotation(service, key))))
            .to_vec(),
        load_balancers: world.cloud.load_balancers(),
    }
}

#[derive(Clone, Copy, Debug)]
enum Story {
    Create,
    Change,
    OldServer,
    TypeChanged,
    Delete,
    DeleteWithOtherFinalizer,
}

impl Story {
    async fn prepare(self) -> World {
        let version = match self {
            Self::OldServer => ApiVersion::V1_28,
            _ => ApiVersion::V1_36,
        };
        let world = World::started(version).await;
        let preference = Preference { hostname_suffix: Some("example.org".into()), ..Preference::default() };
        world.cloud.publish_by(Path::ThroughLoadBalancer(Needs::ProxyProtocol), preference);
        match self {
            Self::Create | Self::OldServer => {}
            Self::DeleteWithOtherFinalizer => {
                world.create_with("app", json!({"metadata": {"finalizers": ["example.org/other"]}})).await;
                world.until_published("app").await;
                settle().await;
            }
            Self::Change | Self::TypeChanged | Self::Delete => world.serve("app").await,
        }
        world
    }

    async fn act(self, world: &World) {
        match self {
            Self::Create | Self::OldServer => {
                world.create_with("app", json!({"metadata": {"annotations": {"theirs": "1"}}})).await;
            }
            Self::Change => {
                world.cloud.publish_by(Path::Direct, Preference::default());
                world.patch("app", json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await;
            }
            Self::TypeChanged => world.patch("app", json!({"spec": {"type": "ClusterIP"}})).await,
            Self::Delete | Self::DeleteWithOtherFinalizer => world.delete("app").await,
        }
    }
}

/// Kills the controller after `steps` boundaries of the story; answers the end, and whether it was killed at all.
async fn tell(story: Story, steps: usize) -> (End, bool) {
    let mut world = story.prepare().await;
    let fuse = Arc::new(Fuse::new(steps));
    world.wire.set_fuse(Arc::clone(&fuse));
    story.act(&world).await;
    settle().await;
    let killed = fuse.blown();
    if killed {
        world.kill().await;
        world.wire.set_fuse(Arc::new(Fuse::new(usize::MAX)));
        world.start().await;
    }
    settle().await;
    until("nothing happens any more", async || {
        world.wire.journal();
        settle().await;
        world.wire.journal().is_empty()
    })
    .await;
    (end(&world).await, killed)
}

async fn every_boundary(story: Story) {
    let (expected, killed) = tell(story, usize::MAX).await;
    assert!(!killed);
    let mut steps = 0;
    loop {
        let (end, killed) = tell(story, steps).await;
        assert_eq!(end, expected, "{story:?} killed after {steps} steps");
        if !killed {
            break;
        }
        steps += 1;
    }
    assert!(steps >= 4, "{story:?} has only {steps} boundaries");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_created() {
    every_boundary(Story::Create).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_changed() {
    every_boundary(Story::Change).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_on_a_server_that_drops_the_mode() {
    every_boundary(Story::OldServer).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_type_changes() {
    every_boundary(Story::TypeChanged).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted() {
    every_boundary(Story::Delete).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted_and_held_by_another() {
    every_boundary(Story::DeleteWithOtherFinalizer).await;
}
