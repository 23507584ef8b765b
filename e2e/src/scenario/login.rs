//! The ways to log in that clouds ask for, beside a password in the domain of the project.

use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::{Value, json};

use super::steps::{self, Reach, clients_inside, green, published_through};
use crate::kubernetes::objects::ServiceSketch;
use crate::network::{NODES, NodePlace};
use crate::openstack::api::{KEYSTONE, OpenStack};
use crate::stage::Stage;

const SCENARIO: &str = "33 login";
const SERVICE: &str = "logged-in";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// Roles of a user for whom the controller works.
const ROLES: [&str; 2] = ["member", "load-balancer_member"];

/// Makes what is needed in Keystone, and returns lines of `[Global]`.
type Prepare = fn(&Stage) -> Result<String>;

/// On the present cluster, whose controller is stopped and started anew.
///
/// # Errors
/// The cloud.conf cannot be written.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let ways: [(&str, Prepare); 2] = [
        ("an application credential", application_credential),
        ("a user of a domain other than the project's", user_of_another_domain),
    ];
    for (case, prepare) in ways {
        stage.check(SCENARIO, case, |stage| serve_with(stage, prepare));
        steps::remove(stage, &[SERVICE])?;
    }
    stage.stop_controller()?;
    let networks = stage.cloud.networks.clone();
    stage.cluster()?.launch.load_balancer_settings(&networks, "")
}

/// A Service is served with these lines of `[Global]`.
fn serve_with(stage: &mut Stage, prepare: Prepare) -> Result<String> {
    let lines = prepare(stage)?;
    stage.stop_controller()?;
    let networks = &stage.cloud.networks;
    let text = format!(
        "[Global]\nauth-url = {KEYSTONE}\nregion = RegionOne\n{lines}\n[LoadBalancer]\nsubnet-id = {}\n\
         floating-network-id = {}\n",
        networks.cluster_subnet, networks.public
    );
    std::fs::write(stage.cluster()?.launch.cloud_config(), text)?;
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, "v2", true).create(&api, &PLACES)?;
    stage.start_controller()?;
    let address = published_through(&api, SERVICE)?;
    green(&address, &clients_inside(stage, Reach::Internal))
}

fn first(admin: &OpenStack, path: &str, key: &str) -> Result<String> {
    let found = admin.list("identity", path, key)?;
    Ok(found.first().with_context(|| format!("{path}: nothing"))?["id"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

fn application_credential(_: &Stage) -> Result<String> {
    let user = first(&OpenStack::log_in("admin")?, "/users?name=demo", "users")?;
    // With all roles of the user: a credential of 2024.1 that has `member` and `load-balancer_member` alone is shown no subnets.
    let body = json!({"application_credential": {"name": "login"}});
    let path = format!("/users/{user}/application_credentials");
    let made = OpenStack::log_in("demo")?.post("identity", &path, &body)?.success()?;
    let made = &made["application_credential"];
    let text = |key: &str| made[key].as_str().unwrap_or_default().to_owned();
    Ok(format!(
        "application-credential-id = {}\napplication-credential-secret = {}\n",
        text("id"),
        text("secret")
    ))
}

fn user_of_another_domain(_: &Stage) -> Result<String> {
    let admin = OpenStack::log_in("admin")?;
    let make = |path: &str, kind: &str, body: &Value| -> Result<String> {
        let made = admin.post("identity", path, &json!({kind: body}))?.success()?;
        Ok(made[kind]["id"].as_str().context("no id")?.to_owned())
    };
    let domain = make("/domains", "domain", &json!({"name": "people"}))?;
    let user =
        make("/users", "user", &json!({"name": "operator", "domain_id": domain, "password": "of people"}))?;
    let project = first(&admin, "/projects?name=demo", "projects")?;
    for name in ROLES {
        let role = first(&admin, &format!("/roles?name={name}"), "roles")?;
        let path = format!("/projects/{project}/users/{user}/roles/{role}");
        admin.call("identity", Method::PUT, &path, None)?.success()?;
    }
    Ok("username = operator\npassword = \"of people\"\nuser-domain-name = people\ntenant-name = demo\n\
        tenant-domain-name = Default\n"
        .to_owned())
}
