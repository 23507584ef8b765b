//! The ways to log in that clouds ask for, beside a password in the domain of the project.

use anyhow::{Context as _, Result, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::steps::{self, Reach, clients_inside, green, published_through};
use crate::kubernetes::objects::ServiceSketch;
use crate::network::{NODES, NodePlace};
use crate::openstack::api::{KEYSTONE, OpenStack};
use crate::openstack::database;
use crate::stage::Stage;

const SCENARIO: &str = "33 login";
const SERVICE: &str = "logged-in";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// Roles of a user for whom the controller works.
const ROLES: [&str; 2] = ["member", "load-balancer_member"];

/// The identity provider and its protocol, which has the name of the method that serves it.
const PROVIDER: (&str, &str) = ("staff", "mapped");
/// What the provider calls itself, as the authentication module in front of Keystone says (`keystone_application.py`).
const ISSUER: &str = "https://staff.example";

/// Makes what is needed in Keystone, and returns lines of `[Global]`.
type Prepare = fn(&Stage) -> Result<String>;

/// On the present cluster, whose controller is stopped and started anew.
///
/// # Errors
/// The cloud.conf cannot be written.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let ways: [(&str, Prepare); 4] = [
        ("an application credential", application_credential),
        ("a user of a domain other than the project's", user_of_another_domain),
        ("an application credential of a federated user", credential_of_federated_user),
        ("the token of a federated login", token_of_federated_login),
    ];
    stage.check(SCENARIO, "a federated login", |_| federated_login());
    for (case, prepare) in ways {
        stage.check(SCENARIO, case, |stage| serve_with(stage, prepare));
        steps::remove(stage, &[SERVICE])?;
    }
    stage.check(SCENARIO, "an application credential whose user's membership has ended", membership_ends);
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
    Ok(lines(&credential(&OpenStack::log_in("demo")?, &user, "login")?))
}

/// A new application credential of somebody who is logged in.
fn credential(cloud: &OpenStack, user: &str, name: &str) -> Result<Value> {
    // With all roles of the user: a credential of 2024.1 that has `member` and `load-balancer_member` alone is shown no subnets.
    let body = json!({"application_credential": {"name": name}});
    let path = format!("/users/{user}/application_credentials");
    let made = cloud.post("identity", &path, &body)?.success()?;
    Ok(made["application_credential"].clone())
}

fn lines(credential: &Value) -> String {
    let text = |key: &str| credential[key].as_str().unwrap_or_default();
    let (id, secret) = (text("id"), text("secret"));
    format!("application-credential-id = {id}\napplication-credential-secret = {secret}\n")
}

fn make(admin: &OpenStack, path: &str, kind: &str, body: &Value) -> Result<String> {
    let made = admin.post("identity", path, &json!({kind: body}))?.success()?;
    Ok(made[kind]["id"].as_str().context("no id")?.to_owned())
}

/// Lets a user or a group, by kind and id, work for the controller in the project.
fn give_roles(admin: &OpenStack, project: &str, whom: &str) -> Result<()> {
    for name in ROLES {
        let role = first(admin, &format!("/roles?name={name}"), "roles")?;
        let path = format!("/projects/{project}/{whom}/roles/{role}");
        admin.call("identity", Method::PUT, &path, None)?.success()?;
    }
    Ok(())
}

fn project(admin: &OpenStack) -> Result<String> {
    first(admin, "/projects?name=demo", "projects")
}

fn user_of_another_domain(_: &Stage) -> Result<String> {
    let admin = OpenStack::log_in("admin")?;
    let domain = make(&admin, "/domains", "domain", &json!({"name": "people"}))?;
    let person = json!({"name": "operator", "domain_id": domain, "password": "of people"});
    let user = make(&admin, "/users", "user", &person)?;
    give_roles(&admin, &project(&admin)?, &format!("users/{user}"))?;
    Ok("username = operator\npassword = \"of people\"\nuser-domain-name = people\ntenant-name = demo\n\
        tenant-domain-name = Default\n"
        .to_owned())
}

/// Makes Keystone trust an identity provider, whose operators have the roles of a group, and logs in there.
fn federated_login() -> Result<String> {
    let admin = OpenStack::log_in("admin")?;
    let operators = json!({"name": "operators", "domain_id": "default"});
    let group = make(&admin, "/groups", "group", &operators)?;
    give_roles(&admin, &project(&admin)?, &format!("groups/{group}"))?;
    let put = |path: &str, body: &Value| {
        admin.put("identity", &format!("/OS-FEDERATION/{path}"), body)?.success().map(drop)
    };
    // Without a time the user belongs to the group for as long as the token lasts, and can make no application credential.
    let provider = json!({"enabled": true, "remote_ids": [ISSUER], "authorization_ttl": 60});
    let path = format!("identity_providers/{}", PROVIDER.0);
    put(&path, &json!({"identity_provider": provider}))?;
    let rule = json!({
        "local": [{"user": {"name": "{0}"}, "group": {"id": group}}],
        "remote": [{"type": "REMOTE_USER"}, {"type": "HTTP_OIDC_GROUPS", "any_one_of": ["operators"]}],
    });
    put("mappings/staff", &json!({"mapping": {"rules": [rule]}}))?;
    let protocol = json!({"mapping_id": "staff", "remote_id_attribute": "HTTP_OIDC_ISS"});
    put(&format!("{path}/protocols/{}", PROVIDER.1), &json!({"protocol": protocol}))?;
    let (user, name) = person(&OpenStack::log_in_at(PROVIDER.0, PROVIDER.1)?)?;
    Ok(format!("{name} is user {user}"))
}

/// Id and name of who is logged in.
fn person(cloud: &OpenStack) -> Result<(String, String)> {
    let token = cloud.about_token()?;
    let user = &token["token"]["user"];
    let text = |key: &str| user[key].as_str().unwrap_or_default().to_owned();
    ensure!(!user["OS-FEDERATION"].is_null(), "no federated user: {user}");
    Ok((text("id"), text("name")))
}

fn credential_of_federated_user(_: &Stage) -> Result<String> {
    Ok(lines(&federated_credential("login")?))
}

fn federated_credential(name: &str) -> Result<Value> {
    let project = project(&OpenStack::log_in("admin")?)?;
    let cloud = OpenStack::log_in_at(PROVIDER.0, PROVIDER.1)?.in_project(&project)?;
    credential(&cloud, &person(&cloud)?.0, name)
}

/// The time of the identity provider is over, and the user has not logged in again.
fn membership_ends(stage: &mut Stage) -> Result<String> {
    let credential = federated_credential("membership")?;
    OpenStack::log_in_with(&credential)?;
    database::execute(
        "keystone",
        "UPDATE expiring_user_group_membership SET last_verified = '2020-01-01 00:00:00'",
    )?;
    // It remembers roles for ten minutes.
    let folders = stage.cloud.folders.clone();
    stage.cloud.services.stop("keystone")?;
    stage.cloud.services.resume(&folders, "keystone")?;
    let refused = OpenStack::log_in_with(&credential);
    let Err(error) = refused else { bail!("it is taken") };
    Ok(format!("{error:#}"))
}

/// The token has no scope: the controller asks for one in the project.
fn token_of_federated_login(_: &Stage) -> Result<String> {
    let cloud = OpenStack::log_in_at(PROVIDER.0, PROVIDER.1)?;
    Ok(format!("token = {}\ntenant-name = demo\ntenant-domain-name = Default\n", cloud.token()))
}
