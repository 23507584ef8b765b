//! A pod asks its own load balancer: broken as an old controller publishes it, and well as this one does.

use anyhow::{Context as _, Result, ensure};

use super::doctor::rules;
use super::steps::{
    self, Reach, client_outside, clients_inside, green, publish_as_before, published_through, red,
};
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::network::NODES;
use crate::stage::Stage;

/// Name, version of the PROXY protocol, reach.
const SERVICES: [(&str, &str, Reach); 4] = [
    ("internal-v1", "v1", Reach::Internal),
    ("internal-v2", "v2", Reach::Internal),
    ("floating-v1", "v1", Reach::Floating),
    ("floating-v2", "v2", Reach::Floating),
];

/// The names of the Services.
pub(crate) fn names() -> Vec<&'static str> {
    SERVICES.iter().map(|(name, _, _)| *name).collect()
}

/// Creates the Services and waits until the controller has published all of them with `ipMode: Proxy`.
pub(crate) fn create(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    for (name, version, reach) in SERVICES {
        let sketch = ServiceSketch::proxy(name, version, reach == Reach::Internal);
        sketch.create(&api, &[NODES[0], NODES[1]])?;
    }
    stage.start_controller()?;
    let mut addresses = Vec::new();
    for (name, _, _) in SERVICES {
        addresses.push(published_through(&api, name)?);
    }
    Ok(format!("ip and ipMode Proxy published: {}", addresses.join(", ")))
}

/// Red with the status of an old controller, green with ours, for each Service.
pub(crate) fn red_then_green(stage: &mut Stage, label: &str, mode: Mode) -> Result<()> {
    let api = stage.api()?;
    stage.stop_controller()?;
    let mut addresses = Vec::new();
    for (name, _, _) in SERVICES {
        let address = steps::address(&api, name)?;
        publish_as_before(&api, name, &address)?;
        addresses.push(address);
    }
    for ((name, version, reach), address) in SERVICES.iter().zip(&addresses) {
        let case = format!("{label}, {name}, status as before");
        stage.check("1 hairpin", &case, |stage| {
            let seen = red(stage, address, &clients_inside(stage, *reach))?;
            green(address, &[client_outside(*reach)]).context("the client outside")?;
            rules::agree(stage, mode, address, true)?;
            Ok(format!("RED as it must be: {seen}; outside is well (PROXY {version})"))
        });
    }
    stage.start_controller()?;
    for ((name, version, reach), address) in SERVICES.iter().zip(&addresses) {
        stage.check("1 hairpin", &format!("{label}, {name}, with openstack-ccm"), |stage| {
            ensure!(&published_through(&api, name)? == address, "the address has changed");
            let mut clients = clients_inside(stage, *reach);
            clients.push(client_outside(*reach));
            let seen = green(address, &clients)?;
            rules::agree(stage, mode, address, false)?;
            Ok(format!("GREEN: {seen}, right client addresses (PROXY {version})"))
        });
    }
    Ok(())
}

/// The whole scenario on the present cluster: with iptables, then with nftables.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let kind = stage.cluster()?.plane.kind;
    if stage.check("1 hairpin", &format!("{}, publish", kind.text()), create) {
        red_then_green(stage, &format!("{} {}", kind.text(), Mode::Iptables.text()), Mode::Iptables)?;
        stage.replace_proxies(kind, Mode::Nftables)?;
        red_then_green(stage, &format!("{} {}", kind.text(), Mode::Nftables.text()), Mode::Nftables)?;
    }
    stage.check("1 hairpin", &format!("{}, clean-up", kind.text()), |stage| steps::release(stage, &names()));
    Ok(())
}
