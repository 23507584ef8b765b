//! Nova with its fake driver, Placement and Glance: servers behind nodes, for the scenarios that need them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::api::OpenStack;
use super::{Folders, START, Services};
use crate::artifacts::source;
use crate::machine::process::run_logged;
use crate::machine::wait::{soon, until};

pub(super) const DATABASES: [&str; 5] = ["placement", "glance", "nova_api", "nova", "nova_cell0"];
/// Its APIs, in the order in which they start.
const APIS: [(&str, u16); 3] = [("placement", 8778), ("glance", 9292), ("nova", 8774)];
/// The name of the hypervisor's machine, as in `nova.conf`.
const HOST: &str = "e2e-compute";

/// Makes its schemas.
///
/// # Errors
/// A program fails.
pub(super) fn schemas(folders: &Folders, log: &Path) -> Result<()> {
    let steps: [(&str, &str, &[&str]); 6] = [
        ("placement-manage", "placement/placement.conf", &["db", "sync"]),
        ("glance-manage", "glance/glance-api.conf", &["db_sync"]),
        ("nova-manage", "nova/nova.conf", &["api_db", "sync"]),
        ("nova-manage", "nova/nova.conf", &["cell_v2", "map_cell0"]),
        ("nova-manage", "nova/nova.conf", &["db", "sync"]),
        ("nova-manage", "nova/nova.conf", &["cell_v2", "create_cell", "--name=cell1"]),
    ];
    for (program, file, arguments) in steps {
        let mut command = folders.program(program);
        command.arg("--config-file").arg(folders.state.join("etc").join(file));
        run_logged(log, command.args(arguments))?;
    }
    Ok(())
}

/// Makes the flavor and the image of servers.
///
/// # Errors
/// An API does not answer or refuses.
pub(super) fn seed(services: &mut Services, folders: &Folders, log: &Path) -> Result<()> {
    services.start_apis(folders, &APIS)?;
    run_logged(log, folders.program("python").arg(source("openstack/seed.py")).arg("compute"))?;
    APIS.iter().rev().try_for_each(|(name, _)| services.stop(name))
}

/// Starts everything, unless it runs, and waits until servers can be made.
///
/// # Errors
/// A part does not start.
pub(crate) fn start(services: &mut Services, folders: &Folders) -> Result<()> {
    if services.runs("nova") {
        return Ok(());
    }
    for daemon in ["nova-conductor", "nova-scheduler"] {
        let mut command = folders.program(daemon);
        services.add(daemon, folders, logged(&mut command, folders, daemon))?;
    }
    let mut hypervisor = folders.program("python");
    hypervisor.args(["-c", "from local_amphora.hypervisor import main; main()"]);
    hypervisor.arg(folders.state.join("state/nova")).arg(HOST);
    services.add("nova-compute", folders, logged(&mut hypervisor, folders, "nova-compute"))?;
    services.start_apis(folders, &APIS)?;
    let admin = OpenStack::log_in("admin")?;
    // A server that is made before the hypervisor has reported ends in ERROR. What the databases know is from no run.
    until("nova-compute has reported", START, || {
        services.check()?;
        let hypervisors = admin.list("compute", "/v2.1/os-hypervisors", "hypervisors")?;
        ensure!(hypervisors.iter().any(|one| one["state"] == "up"), "{hypervisors:?}");
        Ok(())
    })
}

fn logged<'a>(command: &'a mut Command, folders: &Folders, name: &str) -> &'a mut Command {
    command.arg("--config-file").arg(folders.state.join("etc/nova/nova.conf"));
    command.arg("--log-file").arg(folders.logs().join(format!("{name}.txt")))
}

/// The ids of what servers are made of.
///
/// # Errors
/// One of them is not there.
pub(crate) fn flavor_and_image(cloud: &OpenStack) -> Result<(String, String)> {
    let e2e = |service: &str, path: &str, key: &str| -> Result<String> {
        let list = cloud.list(service, path, key)?;
        let found = list.iter().find(|one| one["name"] == "e2e").and_then(|one| one["id"].as_str());
        Ok(found.with_context(|| format!("there is no e2e in {key}"))?.to_owned())
    };
    Ok((e2e("compute", "/v2.1/flavors", "flavors")?, e2e("image", "/v2/images", "images")?))
}

/// Makes a server with a port that exists, and returns its id when it is ACTIVE.
///
/// # Errors
/// Nova refuses, or the server does not become ACTIVE.
pub(crate) fn add_server(cloud: &OpenStack, name: &str, port: &str, metadata: &Value) -> Result<String> {
    let (flavor, image) = flavor_and_image(cloud)?;
    let body = json!({"server": {
        "name": name, "flavorRef": flavor, "imageRef": image, "networks": [{"port": port}], "metadata": metadata,
    }});
    let answer = cloud.post("compute", "/v2.1/servers", &body)?.success()?;
    let id = answer["server"]["id"].as_str().context("the server has no id")?.to_owned();
    soon(&format!("server {name} is ACTIVE"), || {
        let server = cloud.get("compute", &format!("/v2.1/servers/{id}"))?;
        ensure!(
            server["server"]["status"] == "ACTIVE",
            "{}: {}",
            server["server"]["status"],
            server["server"]["fault"]
        );
        Ok(())
    })?;
    Ok(id)
}

/// Makes a server do something, such as `os-stop`.
///
/// # Errors
/// Nova refuses.
pub(crate) fn act(cloud: &OpenStack, id: &str, action: &str) -> Result<()> {
    let mut body = serde_json::Map::new();
    body.insert(action.to_owned(), Value::Null);
    let path = format!("/v2.1/servers/{id}/action");
    cloud.call("compute", Method::POST, &path, Some(&Value::Object(body)))?.success().map(drop)
}

/// Deletes a server and waits until it is gone.
///
/// # Errors
/// Nova refuses, or it stays.
pub(crate) fn remove_server(cloud: &OpenStack, id: &str) -> Result<()> {
    let path = format!("/v2.1/servers/{id}");
    cloud.delete("compute", &path)?.success()?;
    until("the server is gone", Duration::from_secs(60), || {
        let answer = cloud.call("compute", Method::GET, &path, None)?;
        ensure!(answer.status == 404, "{}", answer.body["server"]["status"]);
        Ok(())
    })
}
