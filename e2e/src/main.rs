//! End-to-end tests: real Kubernetes and OpenStack components, one machine, no container engine.
//!
//! `openstack-ccm-e2e run` builds or installs what is missing, makes a private world of namespaces and runs itself in it.

mod answer;
mod artifacts;
mod ask;
mod cache;
mod controller;
mod evidence;
mod ingress;
mod kubernetes;
mod machine;
mod network;
mod openstack;
mod process;
mod report;
mod scenario;
mod stage;
mod stream;
mod wait;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Parser, Subcommand};

use crate::artifacts::Artifacts;
use crate::cache::Cache;
use crate::report::say;
use crate::scenario::{GROUPS, Group};
use crate::stage::Stage;

/// End-to-end tests of openstack-ccm.
#[derive(Debug, Parser)]
#[command(name = "openstack-ccm-e2e")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the scenarios.
    Run {
        /// Only this group of scenarios; may be repeated.
        #[arg(long)]
        only: Vec<String>,
        /// Where machines that cannot run the scenarios are fine: say why, and succeed.
        #[arg(long)]
        if_possible: bool,
        /// Where logs and the report go; runs in different folders do not disturb each other.
        #[arg(long)]
        folder: Option<PathBuf>,
    },
    /// Run the scenarios in the world that is around this process.
    #[command(hide = true)]
    Inside {
        /// The folder of this run.
        folder: PathBuf,
        /// Groups of scenarios.
        groups: Vec<String>,
    },
    /// Send one request and describe what happened.
    #[command(hide = true)]
    Ask {
        /// Name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// Ask by TLS, and trust this authority.
        #[arg(long)]
        authority: Option<PathBuf>,
    },
    /// Send requests until a file appears, then write down what became of them.
    #[command(hide = true)]
    Stream {
        /// Name or address.
        host: String,
        /// The file for the count.
        tally: PathBuf,
        /// The file that ends it.
        stop: PathBuf,
    },
    /// Serve requests with and without the PROXY header.
    #[command(hide = true)]
    TolerantBackend {
        /// TCP port.
        port: u16,
    },
}

/// The file that tells the folder of a run from any other.
const MARK: &str = ".end-to-end-run";

fn main() -> ExitCode {
    let result = match CommandLine::parse().command {
        Command::Run { only, if_possible, folder } => run(&only, if_possible, folder),
        Command::Inside { folder, groups } => inside(&folder, &groups),
        Command::Ask { host, port, authority } => {
            say(&ask::account(&host, port, authority.as_deref()).to_string());
            Ok(true)
        }
        Command::Stream { host, tally, stop } => stream::run(&host, &tally, &stop).map(|()| true),
        Command::TolerantBackend { port } => stream::tolerant_backend(port).map(|()| true),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(only: &[String], if_possible: bool, chosen_folder: Option<PathBuf>) -> Result<bool> {
    if let Some(obstacle) = machine::obstacle() {
        say(&format!("left out: the end-to-end scenarios on real components, because {obstacle}"));
        return Ok(if_possible);
    }
    let groups = chosen(only)?;
    let began = Instant::now();
    machine::install_packages()?;
    let folder = std::path::absolute(chosen_folder.map_or_else(folder, Ok)?)?;
    let lock = std::fs::File::create(cache::beside(&folder, "lock"))?;
    lock.try_lock().context("another run is under way in this folder")?;
    if folder.exists() {
        // What the user points to by mistake is not removed.
        ensure!(folder.join(MARK).exists(), "{} is there and not of an earlier run", folder.display());
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(MARK), "")?;
    let artifacts = Artifacts::new(Cache::of_user()?);
    build(&artifacts, &groups)?;
    say(&format!("everything is built and installed after {} s", began.elapsed().as_secs()));
    let path = folder.to_string_lossy();
    let mut arguments = vec!["inside", &path];
    arguments.extend(groups.iter().map(|group| group.name));
    let program = own_copies(&folder)?;
    let code = world::run_inside(&program, &arguments)?;
    say(&format!("the whole run took {} s; logs and report: {path}", began.elapsed().as_secs()));
    Ok(code == 0)
}

fn chosen(only: &[String]) -> Result<Vec<&'static Group>> {
    if only.is_empty() {
        return Ok(GROUPS.iter().collect());
    }
    let find = |name: &String| {
        let known: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
        let group = GROUPS.iter().find(|group| group.name == name);
        group.with_context(|| format!("there is no group {name}; there are {}", known.join(", ")))
    };
    only.iter().map(find).collect()
}

/// Builds what the groups need before the world is made: there is no way to the internet from inside.
fn build(artifacts: &Artifacts, groups: &[&Group]) -> Result<()> {
    let began = Instant::now();
    artifacts.drivers()?;
    artifacts.etcd()?;
    for minor in groups.iter().flat_map(|group| group.needs) {
        for program in ["kube-apiserver", "kube-proxy"] {
            artifacts.kubernetes(*minor, program)?;
        }
    }
    say(&format!("components are in place after {} s", began.elapsed().as_secs()));
    Ok(())
}

/// Copies of this program and of the controller: a build meanwhile must not change what runs. Returns the former.
fn own_copies(folder: &Path) -> Result<PathBuf> {
    let programs = folder.join("bin");
    std::fs::create_dir_all(&programs)?;
    let this = std::env::current_exe()?;
    for program in [&this, &controller::program()?] {
        std::fs::copy(program, programs.join(program.file_name().context("a program without a name")?))?;
    }
    Ok(programs.join(this.file_name().context("a program without a name")?))
}

/// The folder of a run unless another is chosen, beside the program.
fn folder() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let target = this.parent().and_then(Path::parent).context("this program is not in a target folder")?;
    Ok(target.join("e2e"))
}

fn inside(folder: &Path, names: &[String]) -> Result<bool> {
    let began = Instant::now();
    let groups = chosen(names)?;
    let artifacts = Artifacts::new(Cache::of_user()?);
    let mut stage = Stage::build(folder, artifacts, controller::program()?)?;
    say(&format!("the cloud answers after {} s", began.elapsed().as_secs()));
    for group in groups {
        let outcome = (group.run)(&mut stage);
        if let Err(error) = outcome {
            stage
                .check("group", group.name, |_| -> Result<String> { bail!("it could not go on: {error:#}") });
        }
    }
    stage.end_cluster()?;
    say(&format!("\n{}\n", stage.report.table()));
    stage.report.write(&folder.join("report.md"), began.elapsed())?;
    Ok(stage.report.passed())
}
