//! `openstack-ccm-kube-sim`: the simulated Kubernetes API as a program.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use openstack_ccm_kube_sim::{ApiVersion, Server, Sim};

/// A Kubernetes API with its objects in memory, over plain HTTP.
#[derive(Debug, Parser)]
#[command(name = "openstack-ccm-kube-sim", version)]
struct Arguments {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:8001")]
    listen: SocketAddr,
    /// Minor release of Kubernetes to behave as, 24 to 36.
    #[arg(long, default_value_t = 36)]
    minor: u8,
    /// State of the feature gate LoadBalancerIPMode; 1.29 to 1.31 only.
    #[arg(long)]
    gate: Option<bool>,
    /// File to write a kubeconfig to.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let arguments = Arguments::parse();
    let version = match arguments.gate {
        Some(gate) => ApiVersion::with_gate(arguments.minor, gate),
        None => ApiVersion::new(arguments.minor),
    }?;
    let sim = Sim::new(version);
    let server = Server::bind(&sim, arguments.listen)
        .await
        .with_context(|| format!("listening on {}", arguments.listen))?;
    tracing::info!(url = server.url(), %version, "serving");
    if let Some(path) = &arguments.kubeconfig {
        tokio::fs::write(path, server.kubeconfig())
            .await
            .with_context(|| format!("writing {}", path.display()))?;
    }
    tokio::signal::ctrl_c().await.context("waiting for the signal to stop")?;
    Ok(())
}
