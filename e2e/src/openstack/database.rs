//! Databases with all schemas, users and networks: made once on a machine, then copied for each run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{Folders, PORTS, Services, compute};
use crate::artifacts::{Artifacts, source};
use crate::machine::cache::{Key, beside};
use crate::machine::process::{run, run_logged};
use crate::machine::progress::announce;

const NAMES: [&str; 4] = ["keystone", "neutron", "octavia", "barbican"];

/// The key of the databases: the releases, and what is put into them.
///
/// # Errors
/// A source file cannot be read.
fn key(folders: &Folders) -> Result<Key> {
    Key::of(&["databases", &folders.environment.to_string_lossy()])
        .file(&source("openstack/seed.py"))?
        .file(&source("openstack/etc/mariadb.cnf"))
}

/// Puts databases and keys into the folders of this run; makes them first if the cache has none.
///
/// # Errors
/// They cannot be made or copied.
pub(crate) fn restore(folders: &Folders, artifacts: &Artifacts) -> Result<()> {
    let snapshot = artifacts.cache().entry("databases", &key(folders)?, |target| {
        let state = beside(target, "work");
        let making = Folders { state: state.clone(), ..folders.clone() };
        if state.exists() {
            std::fs::remove_dir_all(&state)?;
        }
        making.prepare()?;
        announce("making the databases of OpenStack", || make(&making))?;
        for name in ["mysql", "keys"] {
            std::fs::rename(state.join(name), target.join(name))?;
        }
        Ok(std::fs::remove_dir_all(&state)?)
    })?;
    for name in ["mysql", "keys"] {
        copy(&snapshot.join(name), &folders.state.join(name))?;
    }
    Ok(())
}

/// Runs statements in a database of the cloud that runs, as nobody should, to bring about what takes hours or luck.
///
/// # Errors
/// The database refuses.
pub(crate) fn execute(name: &str, statements: &str) -> Result<()> {
    run(Command::new("mariadb").args(["--socket=/run/mariadb.sock", "-u", "root", name, "-e", statements]))
        .map(drop)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    run(Command::new("cp").args(["-a", "--reflink=auto"]).arg(from).arg(to)).map(drop)
}

fn make(folders: &Folders) -> Result<()> {
    let log = folders.logs().join("databases.log");
    let etc = folders.state.join("etc");
    run_logged(
        &log,
        Command::new("mariadb-install-db")
            .arg(format!("--defaults-file={}/mariadb.cnf", etc.display()))
            .args(["--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"]),
    )?;
    let mut services = Services { daemons: Vec::new() };
    services.database(folders)?;
    let mut sql =
        "CREATE USER e2e@'127.0.0.1' IDENTIFIED BY 'e2e'; GRANT ALL ON *.* TO e2e@'127.0.0.1';".to_owned();
    NAMES
        .iter()
        .chain(&compute::DATABASES)
        .for_each(|name| sql.push_str(&format!("CREATE DATABASE {name};")));
    run(Command::new("mariadb").args(["--socket=/run/mariadb.sock", "-u", "root", "-e", sql.as_str()]))?;
    keystone(folders, &log)?;
    services.api(folders, "keystone")?;
    authority(&folders.state.join("keys"))?;
    schemas(folders, &log)?;
    if folders.release.has_nova() {
        compute::schemas(folders, &log)?;
    }
    services.wait_for_port("keystone", PORTS[0].1)?;
    services.api(folders, "neutron")?;
    let seed = source("openstack/seed.py");
    run_logged(&log, folders.program("python").arg(&seed).arg("identity"))?;
    services.wait_for_port("neutron", PORTS[1].1)?;
    run_logged(&log, folders.program("python").arg(&seed).arg("network"))?;
    if folders.release.has_nova() {
        compute::seed(&mut services, folders, &log)?;
    }
    // The database last, so that nobody writes while it closes its files.
    services.stop("neutron")?;
    services.stop("keystone")?;
    services.stop("mariadb")
}

fn keystone(folders: &Folders, log: &Path) -> Result<()> {
    let configuration = folders.state.join("etc/keystone/keystone.conf");
    for name in ["fernet", "credential"] {
        std::fs::create_dir_all(folders.state.join("keys").join(name))?;
        run(Command::new("chmod").arg("700").arg(folders.state.join("keys").join(name)))?;
    }
    let owner = ["--keystone-user", "root", "--keystone-group", "root"];
    let url = super::api::KEYSTONE;
    let bootstrap = [
        "--bootstrap-password",
        "e2e",
        "--bootstrap-region-id",
        "RegionOne",
        "--bootstrap-public-url",
        url,
        "--bootstrap-internal-url",
        url,
        "--bootstrap-admin-url",
        url,
    ];
    let steps: [(&str, &[&str]); 4] =
        [("db_sync", &[]), ("fernet_setup", &owner), ("credential_setup", &owner), ("bootstrap", &bootstrap)];
    for (step, arguments) in steps {
        let mut command = folders.program("keystone-manage");
        run_logged(log, command.arg("--config-file").arg(&configuration).arg(step).args(arguments))?;
    }
    Ok(())
}

fn schemas(folders: &Folders, log: &Path) -> Result<()> {
    let etc = |name: &str| -> PathBuf { folders.state.join("etc").join(name) };
    let mut neutron = folders.program("neutron-db-manage");
    neutron
        .arg("--config-file")
        .arg(etc("neutron/neutron.conf"))
        .arg("--config-file")
        .arg(etc("neutron/ml2.ini"));
    run_logged(log, neutron.args(["upgrade", "heads"]))?;
    let mut octavia = folders.program("octavia-db-manage");
    run_logged(log, octavia.arg("--config-file").arg(etc("octavia/octavia.conf")).args(["upgrade", "head"]))?;
    let url = "mysql+pymysql://e2e:e2e@127.0.0.1:3306/barbican?charset=utf8mb4";
    run_logged(log, folders.program("barbican-manage").args(["db", "upgrade", "--db-url", url]))
}

/// The authority that signs certificates of amphorae.
fn authority(keys: &Path) -> Result<()> {
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-days",
        "3650",
        "-subj",
        "/CN=amphorae",
        "-passout",
        "pass:e2e",
    ]);
    command.arg("-keyout").arg(keys.join("octavia-ca.key")).arg("-out").arg(keys.join("octavia-ca.pem"));
    run(&mut command).map(drop)
}
