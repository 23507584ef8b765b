//! The face over TCP: plain HTTP for kubectl and for programs in other processes.

use std::io;
use std::net::SocketAddr;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::service::SimService;
use crate::sim::Sim;

/// A simulator that listens. It stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    _stop: DropGuard,
}

impl Server {
    /// Listens on an address; port 0 chooses a free one.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(sim: &Sim, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        tokio::spawn(accept(listener, sim.service(), stop.clone()));
        Ok(Self { address, _stop: stop.drop_guard() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://ADDRESS`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The text of a kubeconfig file that leads here.
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: kube-sim\n  cluster:\n    server: {}\nusers:\n\
             - name: admin\n  user: {{}}\ncontexts:\n- name: kube-sim\n  context:\n    cluster: kube-sim\n    \
             user: admin\n    namespace: default\ncurrent-context: kube-sim\n",
            self.url()
        )
    }
}

async fn accept(listener: TcpListener, service: SimService, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => {
                // A connection that failed while it waited is the client's matter.
                let Ok((stream, _)) = accepted else { continue };
                let service = TowerToHyperService::new(service.clone());
                connections.spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
                        tracing::debug!(%error, "connection ended");
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
