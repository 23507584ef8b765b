//! End-to-end tests: real Kubernetes and OpenStack components, one machine, no container engine.
//!
//! `openstack-ccm-e2e run` builds or installs what is missing, makes a private world of namespaces and runs itself in it.

mod answer;
mod artifacts;
mod ask;
mod beside;
mod cache;
mod controller;
mod cost;
mod datagram;
mod docs;
mod evidence;
mod gateway;
mod guide;
mod ingress;
mod inside;
mod ipv6;
mod kubernetes;
mod lane;
mod machine;
mod network;
mod occm;
mod openstack;
mod pebble;
mod process;
mod queue;
mod report;
mod run;
mod scenario;
mod stage;
mod stream;
mod terminal;
mod truth;
mod wait;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::openstack::release::Release;
use crate::report::say;

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
        Command::Inside { run, folder, release } => inside::run(&run, &folder, release).map(|()| true),
        Command::Ask { host, port, authority, path } => {
            say(&ask::account(&host, port, &path, authority.as_deref()).to_string());
            Ok(true)
        }
        Command::AskByDatagram { host, port } => {
            say(&datagram::ask(&host, port).account().to_string());
            Ok(true)
        }
        Command::Stream { host, tally, stop } => stream::run(&host, &tally, &stop).map(|()| true),
        Command::TolerantBackend { port } => stream::tolerant_backend(port).map(|()| true),
        Command::DatagramBackend { pod, port } => datagram::backend(&pod, port).map(|()| true),
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
