//! What a Service may ask of its load balancer by annotation, and the cloud has to grant: an address, sharing by it, a provider.

use anyhow::{Result, ensure};

use super::CURRENT;
use super::steps::{self, Reach, clients_inside, green, published_through, warned};
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::network::{NODES, NodePlace};
use crate::stage::Stage;

const SCENARIO: &str = "39 wishes";
const OWNER: &str = "wished";
const GUEST: &str = "wished-too";
const STRANGER: &str = "wished-in-vain";
const CHOOSER: &str = "wished-provider";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
const VIP_ADDRESS: &str = "loadbalancer.openstack.org/vip-address";
const SHARE: &str = "loadbalancer.openstack.org/share-by-address";
const LB_PROVIDER: &str = "loadbalancer.openstack.org/lb-provider";

/// On a cluster of 1.36.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("wishes", CURRENT, Mode::Iptables)?;
    let networks = stage.cloud.networks.clone();
    stage.cluster()?.launch.load_balancer_settings(&networks, "lb-providers = octavia")?;
    ServiceSketch::proxy(OWNER, "v2", true).annotate(SHARE, "true").create(&stage.api()?, &PLACES)?;
    stage.start_controller()?;
    stage.check(SCENARIO, "a second Service joins by the address", joins);
    stage.check(SCENARIO, "who does not say so is refused before anything is made", is_refused);
    stage.check(SCENARIO, "a Service chooses a provider that cloud.conf lists", chooses);
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[OWNER, GUEST, STRANGER, CHOOSER]));
    Ok(())
}

fn joins(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let address = published_through(&api, OWNER)?;
    let guest = ServiceSketch::proxy(GUEST, "v2", true).annotate(VIP_ADDRESS, &address);
    let mut guest = guest.annotate(SHARE, "true");
    guest.ports = vec![8080];
    guest.create(&api, &PLACES)?;
    ensure!(published_through(&api, GUEST)? == address, "another address is published");
    green(&address, &clients_inside(stage, Reach::Internal))
}

fn is_refused(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let address = published_through(&api, OWNER)?;
    let mut stranger = ServiceSketch::proxy(STRANGER, "v2", true).annotate(VIP_ADDRESS, &address);
    stranger.ports = vec![8081];
    stranger.create(&api, &PLACES)?;
    let said = warned(&api, STRANGER, "SyncLoadBalancerFailed", &[SHARE, "load-balancer-id"])?;
    ensure!(stage.cloud.user.load_balancer(STRANGER).is_err(), "a load balancer was made");
    Ok(said)
}

fn chooses(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    ServiceSketch::proxy(CHOOSER, "v2", true).annotate(LB_PROVIDER, "octavia").create(&api, &PLACES)?;
    let address = published_through(&api, CHOOSER)?;
    let provider = stage.cloud.user.load_balancer(CHOOSER)?["provider"].clone();
    let seen = green(&address, &clients_inside(stage, Reach::Internal))?;
    Ok(format!("provider {provider}; {seen}"))
}
