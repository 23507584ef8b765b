//! TLS ends at the load balancer, with a certificate from Barbican: pods that take the short circuit meet plain HTTP.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::fallback::add_name;
use super::steps::{
    self, Client, Reach, client_outside, clients_inside, publish_as_before, published_through,
};
use crate::kubernetes::objects::ServiceSketch;
use crate::machine::process::run as run_command;
use crate::machine::wait::soon;
use crate::network::NODES;
use crate::network::ask::from_namespace_by_tls;
use crate::stage::Stage;

/// The name of the Service.
pub(crate) const SERVICE: &str = "terminated";
const SCENARIO: &str = "7 TLS";
/// The name in the certificate.
const NAME: &str = "tls.e2e.test";
const PORT: u16 = 443;

/// The whole scenario on the present cluster.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let authority = create(stage, &[])?;
    let api = stage.api()?;
    stage.start_controller()?;
    stage.check(SCENARIO, "published", |stage| Ok(format!("{} with ipMode Proxy", published(stage)?)));
    stage.stop_controller()?;
    stage.check(SCENARIO, "status as before", |stage| {
        let address = steps::address(&api, SERVICE)?;
        publish_as_before(&api, SERVICE, &address)?;
        Ok(format!("RED as it must be: {}", is_red(stage, &authority)?))
    });
    stage.start_controller()?;
    stage.check(SCENARIO, "with openstack-ccm", |stage| {
        published_through(&stage.api()?, SERVICE)?;
        Ok(format!("GREEN: {}", is_green(stage, &authority)?))
    });
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE]));
    Ok(())
}

/// Makes the certificate, which is the answer, and the Service with further annotations.
pub(crate) fn create(stage: &mut Stage, annotations: &[(&str, &str)]) -> Result<PathBuf> {
    let folder = stage.cluster()?.plane.folder().join("tls");
    let (authority, secret) = certificate(stage, &folder)?;
    let mut sketch = ServiceSketch::plain(SERVICE, true)
        .annotate("loadbalancer.openstack.org/default-tls-container-ref", &secret)
        .annotate("loadbalancer.openstack.org/x-forwarded-for", "true");
    for (key, value) in annotations {
        sketch = sketch.annotate(key, value);
    }
    sketch.ports = vec![PORT];
    sketch.target = 81;
    sketch.create(&stage.api()?, &[NODES[0], NODES[1]])?;
    Ok(authority)
}

/// Waits until openstack-ccm has published it, and makes the name in the certificate resolve to its address, which is the
/// answer.
pub(crate) fn published(stage: &Stage) -> Result<String> {
    let address = published_through(&stage.api()?, SERVICE)?;
    resolves(stage, &address)?;
    Ok(address)
}

/// Makes the name in the certificate resolve to an address.
pub(crate) fn resolves(stage: &Stage, address: &str) -> Result<()> {
    add_name(stage, NAME, address)
}

/// Pods and nodes take the short circuit, and a client outside is well.
pub(crate) fn is_red(stage: &Stage, authority: &Path) -> Result<String> {
    for client in clients_inside(stage, Reach::Internal) {
        soon(&format!("{} is short-circuited", client.who), || {
            let outcome = from_namespace_by_tls(&client.namespace, NAME, PORT, authority)?;
            // What a TLS client says when it is answered in plain HTTP.
            ensure!(outcome.to_string().contains("InvalidContentType"), "{}: {outcome}", client.who);
            Ok(())
        })?;
    }
    forwarded(&client_outside(Reach::Internal), authority)?;
    Ok("pods and nodes are answered in plain HTTP; outside is well".into())
}

/// Everybody gets TLS.
pub(crate) fn is_green(stage: &Stage, authority: &Path) -> Result<String> {
    let mut clients = clients_inside(stage, Reach::Internal);
    clients.push(client_outside(Reach::Internal));
    clients.iter().try_for_each(|client| forwarded(client, authority))?;
    Ok(format!("{} clients get TLS and are forwarded with their addresses", clients.len()))
}

fn forwarded(client: &Client, authority: &Path) -> Result<()> {
    soon(&format!("{} gets TLS", client.who), || {
        let outcome = from_namespace_by_tls(&client.namespace, NAME, PORT, authority)?;
        let wanted = format!("forwarded={}", client.address);
        ensure!(outcome.to_string().ends_with(&wanted), "{} without {wanted}: {outcome}", client.who);
        Ok(())
    })
}

/// A certificate that signs itself, as a PKCS #12 secret in Barbican. Returns its file and the address of the secret.
fn certificate(stage: &Stage, folder: &Path) -> Result<(PathBuf, String)> {
    std::fs::create_dir_all(folder)?;
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let (certificate, key, bundle) = (folder.join("tls.crt"), folder.join("tls.key"), folder.join("tls.p12"));
    std::fs::write(&certificate, made.cert.pem())?;
    std::fs::write(&key, made.signing_key.serialize_pem())?;
    let mut pack = Command::new("openssl");
    pack.args(["pkcs12", "-export", "-passout", "pass:", "-in"]).arg(&certificate).arg("-inkey").arg(&key);
    run_command(pack.arg("-out").arg(&bundle))?;
    let payload = run_command(Command::new("base64").arg("-w0").arg(&bundle))?;
    let body = json!({
        "name": SERVICE, "payload": payload.trim(), "payload_content_type": "application/octet-stream",
        "payload_content_encoding": "base64",
    });
    let answer = stage.cloud.user.post("key-manager", "/v1/secrets", &body)?.success()?;
    Ok((certificate, answer["secret_ref"].as_str().context("no secret_ref")?.to_owned()))
}
