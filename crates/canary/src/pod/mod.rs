//! The program in the pods: proves that it knows the token, looks, and publishes its verdict as readiness.

mod answers;
mod dial;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpListener, lookup_host};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::addresses::{Addresses, Pair};
use crate::steady::{Patience, Steady};
use crate::verdict::{Finding, over_families};
use crate::{PORT, READINESS_PORT};
use answers::Token;
use dial::Dialler;

/// Factor by which looks are more frequent while no finding is held, or the finding may change.
const UNSETTLED_RATE: u32 = 10;
/// Longest wait for the name of the control Service.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct PodOptions {
    /// The secret that only the canary pods of a rollout know.
    pub token: String,
    /// The pod's own addresses: each of its families is measured.
    pub pod_ips: Vec<IpAddr>,
    /// The control Service, by name or by its ClusterIPs.
    pub control: Vec<String>,
    /// Addresses of the Services.
    pub addresses: Addresses,
    /// Time between two looks while nothing changes.
    pub period: Duration,
    /// Longest wait for an answer.
    pub dial_timeout: Duration,
    /// How slowly the verdict changes.
    pub patience: Patience,
}

/// What a pod has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Findings {
    pub held: Option<Finding>,
    /// The finding of the last look.
    pub last: Option<Finding>,
}

/// Runs until `stop`. `report` is called with each change of the findings.
///
/// # Errors
/// A port is taken.
pub async fn run(options: PodOptions, stop: CancellationToken, report: impl Fn(Findings)) -> io::Result<()> {
    let (door, readiness) = (listen(PORT).await?, listen(READINESS_PORT).await?);
    let token = Token::new(&options.token);
    let findings = watch::Sender::new(Findings::default());
    let looks = async {
        let mut looker = Looker::new(options.clone());
        loop {
            looker.look().await;
            let now = looker.findings();
            if findings.send_if_modified(|before| std::mem::replace(before, now) != now) {
                report(now);
            }
            sleep(looker.pause()).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => Ok(()),
        () = answers::greet(door, &token) => Ok(()),
        result = answers::readiness(readiness, findings.subscribe()) => result,
        () = looks => Ok(()),
    }
}

/// Listens on all addresses of both families, or of IPv4 where the kernel lacks IPv6.
async fn listen(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
    }
}

/// Repeats looks and keeps what they found.
struct Looker {
    options: PodOptions,
    dialler: Dialler,
    cluster_ips: Vec<IpAddr>,
    steady: Steady,
    last: Option<Finding>,
}

impl Looker {
    fn new(options: PodOptions) -> Self {
        Self {
            dialler: Dialler::new(&options.token, options.dial_timeout),
            cluster_ips: Vec::new(),
            steady: Steady::new(options.patience),
            last: None,
            options,
        }
    }

    async fn look(&mut self) {
        let pairs: Vec<Pair> =
            self.options.pod_ips.iter().filter_map(|ip| self.options.addresses.of_family(*ip)).collect();
        self.resolve(&pairs).await;
        let mut findings = Vec::new();
        for pair in pairs {
            let cluster_ip = self.cluster_ips.iter().find(|ip| ip.is_ipv4() == pair.control.is_ipv4());
            findings.push(self.dialler.look(cluster_ip.copied(), pair).await);
        }
        let finding = over_families(&findings);
        tracing::debug!(?findings, ?finding, "looked");
        self.last = Some(finding);
        self.steady.look(finding, Instant::now());
    }

    /// Resolves the ClusterIPs until each family has one, and after a silence; they never change while the Service lives.
    async fn resolve(&mut self, pairs: &[Pair]) {
        let known = |pair: &Pair, ips: &[IpAddr]| ips.iter().any(|ip| ip.is_ipv4() == pair.control.is_ipv4());
        if pairs.iter().all(|pair| known(pair, &self.cluster_ips)) && self.last != Some(Finding::Silence) {
            return;
        }
        let mut found = Vec::new();
        for name in &self.options.control {
            match timeout(LOOKUP_TIMEOUT, lookup_host((name.as_str(), PORT))).await {
                Ok(Ok(addresses)) => found.extend(addresses.map(|address| address.ip())),
                Ok(Err(error)) => tracing::debug!(name, %error, "the name of the Service does not resolve"),
                Err(_) => tracing::debug!(name, "the name of the Service was not resolved in time"),
            }
        }
        if !found.is_empty() {
            self.cluster_ips = found;
        }
    }

    fn findings(&mut self) -> Findings {
        Findings { held: self.steady.held(Instant::now()), last: self.last }
    }

    fn pause(&self) -> Duration {
        if self.steady.is_unsettled() { self.options.period / UNSETTLED_RATE } else { self.options.period }
    }
}

fn at(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, PORT)
}
