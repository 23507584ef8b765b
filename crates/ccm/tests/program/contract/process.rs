//! The framework's scenarios of the process that need the whole program.

use openstack_ccm_kube_sim::Fault;

use crate::support::{World, service};

/// A status that may not be written is reported and tried again, and the program does not crash.
///
/// Framework: M12, same.
#[tokio::test(start_paused = true)]
async fn framework_m12_a_status_that_may_not_be_written_is_told_and_tried_again() {
    let world = World::started().await;
    let fault = Fault::on("PATCH", "/services/web/status").fail(
        403,
        "Forbidden",
        "no right to patch services/status",
    );
    let denied = world.kube.inject(fault);
    world.create(&service("web", serde_json::json!({})));
    world.until_warned("web", "no right to patch services/status").await;
    world.kube.remove_fault(denied);
    world.until_published("web").await;
}
