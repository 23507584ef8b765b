//! An OpenStack to run against, on a TCP port, until interrupted.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use openstack_ccm_openstack_sim::Sim;
use tracing_subscriber::EnvFilter;

/// Keystone, Nova, Neutron, Octavia and Barbican in memory.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:15000")]
    listen: SocketAddr,
    /// How many node servers there are.
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Give the cluster's network an IPv6 subnet as well.
    #[arg(long)]
    ipv6: bool,
    /// Make listeners really listen and health monitors really check.
    #[arg(long)]
    forward: bool,
    /// How long each operation of Octavia takes, in milliseconds.
    #[arg(long, default_value_t = 1000)]
    delay_milliseconds: u64,
    /// The newest API version 2.x that Octavia knows.
    #[arg(long, default_value_t = 30)]
    octavia_api: u8,
    /// Write a cloud.conf for the cloud-controller-manager to this file.
    #[arg(long)]
    cloud_conf: Option<PathBuf>,
    /// Write a clouds.yaml for other clients to this file.
    #[arg(long)]
    clouds_yaml: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let arguments = Arguments::parse();
    let sim =
        Sim::builder().nodes(arguments.nodes).ipv6(arguments.ipv6).octavia_api(arguments.octavia_api).build();
    sim.set_delays(Duration::from_millis(arguments.delay_milliseconds));
    if arguments.forward {
        sim.start_forwarding();
    }
    let server = sim
        .serve(arguments.listen)
        .await
        .with_context(|| format!("could not listen on {}", arguments.listen))?;
    for (path, text) in
        [(&arguments.cloud_conf, sim.cloud_conf()), (&arguments.clouds_yaml, sim.clouds_yaml())]
    {
        if let Some(path) = path {
            std::fs::write(path, text).with_context(|| format!("could not write {}", path.display()))?;
        }
    }
    tracing::info!(address = %server.address(), "OpenStack is ready; user demo, project demo, password lab");
    tokio::signal::ctrl_c().await.context("could not wait for an interrupt")
}
