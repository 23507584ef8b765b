//! OVN's databases and Octavia's driver for them, for the scenarios that need them. Nobody forwards packets: there is no chassis.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::api::OpenStack;
use super::{Folders, START, Services};
use crate::machine::process::run;
use crate::machine::wait::until;

/// Databases: name, schema, port.
const DATABASES: [(&str, &str, u16); 2] = [
    ("ovn-northbound", "/usr/share/ovn/ovn-nb.ovsschema", 6641),
    ("ovn-southbound", "/usr/share/ovn/ovn-sb.ovsschema", 6642),
];
const NORTHBOUND: &str = "tcp:127.0.0.1:6641";
const SOUTHBOUND: &str = "tcp:127.0.0.1:6642";
/// Where Octavia's driver agent listens: the driver for OVN knows no other place.
const SOCKETS: &str = "/run/octavia";
/// Everything that is started here, in the order in which it is ended.
const DAEMONS: [&str; 5] =
    ["octavia-driver-agent", "ovn-mirror", "ovn-northd", "ovn-southbound", "ovn-northbound"];
/// What octavia.conf gets at its end.
const SETTINGS: &str = "[ovn]\novn_nb_connection = tcp:127.0.0.1:6641\novn_sb_connection = tcp:127.0.0.1:6642\n\
                        [driver_agent]\nenabled_provider_agents = ovn\n";

/// An Octavia that has the provider ovn.
pub(crate) struct Ovn {
    /// Its octavia.conf before.
    configuration: String,
}

impl Ovn {
    /// Starts the databases, what fills them, and the driver agent; then Octavia's API anew, with one more provider.
    ///
    /// # Errors
    /// A part does not start.
    pub(crate) fn start(services: &mut Services, folders: &Folders, provider: &Path) -> Result<Self> {
        databases(services, folders)?;
        let mut mirror = folders.program("python");
        mirror.args(["-c", "from local_amphora.northbound import main; main()", NORTHBOUND]);
        services.add("ovn-mirror", folders, &mut mirror)?;
        let file = configuration(folders);
        let before = std::fs::read_to_string(&file)?;
        let (known, more) = (
            "of the Octavia Amphora driver.\n",
            "of the Octavia Amphora driver., ovn:The Octavia OVN driver.\n",
        );
        ensure!(before.contains(known), "{} names its providers in another way", file.display());
        let chosen = before.replace("default_provider_driver = amphora", "default_provider_driver = ovn");
        std::fs::write(&file, chosen.replace(known, more) + SETTINGS)?;
        let started = Self { configuration: before };
        let mut path = folders.drivers.clone().into_os_string();
        path.push(":");
        path.push(provider);
        let folders = Folders { drivers: path.into(), ..folders.clone() };
        std::fs::create_dir_all(SOCKETS)?;
        let mut agent = folders.program("octavia-driver-agent");
        agent.arg("--config-file").arg(&file);
        agent.arg("--log-file").arg(folders.logs().join("octavia-driver-agent.txt"));
        services.add("octavia-driver-agent", &folders, &mut agent)?;
        // An API that comes up before has no provider ovn until it is started anew.
        until("octavia-driver-agent listens", START, || {
            services.check()?;
            let log = std::fs::read_to_string(folders.logs().join("octavia-driver-agent.txt"))?;
            ensure!(log.contains("OVN provider agent has started"), "it has not said so");
            Ok(())
        })?;
        services.stop("octavia")?;
        services.resume(&folders, "octavia")?;
        // The driver is loaded with the first request.
        until("Octavia has the provider ovn", START, || {
            let providers =
                OpenStack::log_in("demo")?.list("load-balancer", "/v2/lbaas/providers", "providers")?;
            ensure!(providers.iter().any(|one| one["name"] == "ovn"), "{providers:?}");
            Ok(())
        })?;
        Ok(started)
    }

    /// Ends everything; Octavia's API is as before.
    ///
    /// # Errors
    /// A part does not end or start.
    pub(crate) fn stop(self, services: &mut Services, folders: &Folders) -> Result<()> {
        std::fs::write(configuration(folders), &self.configuration)?;
        services.stop("octavia")?;
        services.resume(folders, "octavia")?;
        DAEMONS.iter().try_for_each(|name| services.stop(name))
    }
}

fn configuration(folders: &Folders) -> PathBuf {
    folders.state.join("etc/octavia/octavia.conf")
}

fn databases(services: &mut Services, folders: &Folders) -> Result<()> {
    let home = folders.state.join("ovn");
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    std::fs::create_dir_all(&home)?;
    for (name, schema, port) in DATABASES {
        let file = home.join(name);
        run(Command::new("ovsdb-tool").arg("create").arg(&file).arg(schema))?;
        let mut server = Command::new("ovsdb-server");
        server.arg(format!("--remote=ptcp:{port}:127.0.0.1")).arg(&file);
        server.arg(format!("--unixctl={}.ctl", file.display()));
        services.add(name, folders, &mut server)?;
        services.wait_for_port(name, port)?;
    }
    let mut northd = Command::new("ovn-northd");
    northd.args([format!("--ovnnb-db={NORTHBOUND}"), format!("--ovnsb-db={SOUTHBOUND}")]);
    northd.arg(format!("--unixctl={}/northd.ctl", home.display()));
    services.add("ovn-northd", folders, &mut northd)
}

/// What OVN forwards for a load balancer: address and port, and the members behind it.
///
/// # Errors
/// The database cannot be read.
pub(crate) fn forwarded(load_balancer: &str) -> Result<String> {
    let query = ["--bare", "--columns=vips", "find", "Load_Balancer", &format!("name={load_balancer}")];
    let text = run(Command::new("ovn-nbctl").arg(format!("--db={NORTHBOUND}")).args(query))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Has all checks of a member end in this way, as the chassis would tell: `online` or `offline`.
///
/// # Errors
/// There is no check of it.
pub(crate) fn report_check(address: &str, status: &str) -> Result<()> {
    let find = |table: &str, column: &str, condition: &str| -> Result<String> {
        let found = southbound(&["--bare", &format!("--columns={column}"), "find", table, condition])?;
        let first = found.split_whitespace().next();
        first.map(str::to_owned).with_context(|| format!("{table} has no row with {condition}"))
    };
    let of_address = format!("ip={address}");
    let row = find("Service_Monitor", "_uuid", &of_address)?;
    let port = find("Service_Monitor", "logical_port", &of_address)?;
    // ovn-northd takes back what is reported of a port that no chassis has bound.
    let binding = find("Port_Binding", "_uuid", &format!("logical_port={port}"))?;
    southbound(&["set", "Port_Binding", &binding, "up=true"])?;
    southbound(&["set", "Service_Monitor", &row, &format!("status={status}")]).map(drop)
}

fn southbound(arguments: &[&str]) -> Result<String> {
    run(Command::new("ovn-sbctl").arg(format!("--db={SOUTHBOUND}")).args(arguments))
}

/// The VIP ports of the provider: those of load balancers, and those that it leaves behind where it refuses a load balancer that comes with its children.
///
/// # Errors
/// Neutron cannot be asked.
pub(crate) fn vip_ports(cloud: &OpenStack) -> Result<Vec<String>> {
    let ports = cloud.list("network", "/v2.0/ports?device_owner=ovn-lb:vip", "ports")?;
    Ok(ports.iter().filter_map(|port| port["id"].as_str().map(str::to_owned)).collect())
}
