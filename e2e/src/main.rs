//! End-to-end tests: real Kubernetes and OpenStack components, one machine, no container engine.
//!
//! `openstack-ccm-e2e run` builds or installs what is missing, makes a private world of namespaces and runs itself in it.
//!
//! An error of a function says what could not be done; it fails the case that met it, with its text. Each layer names only those above it
//! in this table:
//!
//! | layer | holds |
//! | --- | --- |
//! | `machine` | this machine: processes, namespaces, waiting, the cache of what was built |
//! | `report` | what was seen, and its tables |
//! | `artifacts` | programs that are built or installed |
//! | `openstack` | the cloud: its services, its API, its databases |
//! | `network` | nodes, pods and clients as namespaces; one request and what became of it |
//! | `backends` | what runs in pods and outside: nginx, gateways, streams of connections, an ACME server |
//! | `kubernetes` | control planes, service proxies, objects, pods as processes |
//! | `programs` | the controller, OCCM and somebody at a terminal |
//! | `stage` | one cloud and one cluster after another, and the evidence of a failure |
//! | `truth` | conversations with real services and simulators |
//! | `scenario` | what is looked at |
//! | `run` | worlds side by side, the queue of groups, what a run writes into the sources |

mod artifacts;
mod backends;
mod kubernetes;
mod machine;
mod network;
mod openstack;
mod programs;
mod report;
mod run;
mod scenario;
mod stage;
mod truth;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::artifacts::release::Release;
use crate::machine::say;

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
    Run(run::Options),
    /// Run scenarios in the world that is around this process.
    #[command(hide = true)]
    Inside {
        /// The folder of the run.
        run: PathBuf,
        /// The folder of this world.
        folder: PathBuf,
        /// The release of its OpenStack.
        release: Release,
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
        /// What is asked for.
        #[arg(long, default_value = "/")]
        path: String,
    },
    /// Send one datagram and describe what happened.
    #[command(hide = true)]
    AskByDatagram {
        /// Address.
        host: String,
        /// UDP port.
        port: u16,
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
    /// Answer datagrams with the address that they come from.
    #[command(hide = true)]
    DatagramBackend {
        /// The name of the pod.
        pod: String,
        /// UDP port.
        port: u16,
    },
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().command {
        Command::Run(options) => run::run(&options),
        Command::Inside { run, folder, release } => run::inside::run(&run, &folder, release).map(|()| true),
        Command::Ask { host, port, authority, path } => {
            say(&network::ask::account(&host, port, &path, authority.as_deref()).to_string());
            Ok(true)
        }
        Command::AskByDatagram { host, port } => {
            say(&network::datagram::ask(&host, port).account().to_string());
            Ok(true)
        }
        Command::Stream { host, tally, stop } => backends::stream::run(&host, &tally, &stop).map(|()| true),
        Command::TolerantBackend { port } => backends::stream::tolerant_backend(port).map(|()| true),
        Command::DatagramBackend { pod, port } => network::datagram::backend(&pod, port).map(|()| true),
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
