//! Clients of the Kubernetes API.
//!
//! Each client sends a request once: the controllers decide what is sent again, each by its own rule, and a late answer
//! about the Lease is worth nothing. The Lease has a client of its own, so that no crowd of other requests can delay
//! its renewal.

mod account_token;
mod guard;
mod limit;
mod metrics;
mod request;
mod transport;
mod unanswered;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http::{HeaderValue, header};
use k8s_openapi::api::core::v1::Namespace;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Client, Config};
use openstack_ccm_controllers::KnownCluster;
use openstack_ccm_core::permit::Gate;

use crate::args::PersonArgs;
use crate::args::controllers::ControllerName;
use crate::args::value::given;
use account_token::AccountToken;
use guard::guarded;
pub use guard::while_leading;
use request::Requests;
use transport::Connections;

pub use limit::RequestLimit;
pub use metrics::RequestMetrics;
pub use unanswered::Unanswered;

/// The namespace whose uid is the identity of the cluster.
const IDENTITY_NAMESPACE: &str = "kube-system";

/// Start of the cloud-controller-manager's User-Agent, as in other ones.
pub const AGENT: &str = concat!("openstack-ccm/", env!("CARGO_PKG_VERSION"), " cloud-controller-manager");

/// Longest time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for a review of a caller or for a token, all tries together.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence on a connection, idle ones included. Controllers wait 30 seconds for an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(45);
/// Longer than anybody waits.
const NO_LIMIT: Duration = Duration::from_hours(24);
/// Longest silence of a watch. The server ends it after 25 seconds and sends a bookmark shortly before, so a watch that is
/// silent for longer has lost its server. With the delay before the next try and the time to connect, the leader is blind
/// for 45 seconds at most, as long as Kubernetes' own controllers are.
const WATCH_READ_TIMEOUT: Duration = Duration::from_secs(35);

/// How to reach an API server.
#[derive(Clone)]
pub struct Connection {
    config: Config,
    metrics: RequestMetrics,
    /// The beginning of the User-Agent: the name of the program.
    agent: &'static str,
    /// Whether a person waits, and for how long; controllers wait [`READ_TIMEOUT`].
    person: Option<Duration>,
}

impl Connection {
    /// Connects to the server that the flags `--kubeconfig` and `--master` name, or to that of the pod's own cluster. No
    /// request is sent yet. `agent` begins the User-Agent.
    ///
    /// # Errors
    /// Files that cannot be read or do not make sense.
    pub async fn new(
        kubeconfig: Option<&PathBuf>,
        master: Option<&str>,
        agent: &'static str,
        metrics: RequestMetrics,
    ) -> anyhow::Result<Self> {
        let config = config(given(kubeconfig), master.filter(|url| !url.is_empty())).await?;
        Ok(Self { config, metrics, agent, person: None })
    }

    /// Returns a connection to the server of another kubeconfig, or this connection without one.
    ///
    /// # Errors
    /// A file that cannot be read or does not make sense; `flag` names it.
    pub async fn to(&self, flag: &str, kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        match kubeconfig {
            None => Ok(self.clone()),
            Some(file) => Ok(Self { config: read(flag, file).await?, ..self.clone() }),
        }
    }

    /// Creates a client; `purpose` ends its User-Agent, as in other cloud-controller-managers.
    ///
    /// # Errors
    /// Certificates or tokens that cannot be used.
    pub fn client(&self, purpose: &str, limit: RequestLimit) -> anyhow::Result<Client> {
        self.client_with(self.config.clone(), purpose, limit, None, Connections::Kept)
    }

    /// Creates a client that opens a connection for each request.
    fn client_of_new_connections(&self, purpose: &str) -> anyhow::Result<Client> {
        let limit = RequestLimit::none();
        self.client_with(self.config.clone(), purpose, limit, None, Connections::New)
    }

    /// Creates a client that acts as a ServiceAccount in kube-system; `tokens` requests its tokens.
    fn client_of(&self, account: &str, tokens: Client, limit: RequestLimit) -> anyhow::Result<Client> {
        let mut config = self.config.clone();
        config.auth_info = AuthInfo::default();
        let token = Some(AccountToken::new(tokens, account));
        self.client_with(config, account, limit, token, Connections::Kept)
    }

    fn client_with(
        &self,
        mut config: Config,
        purpose: &str,
        limit: RequestLimit,
        token: Option<AccountToken>,
        connections: Connections,
    ) -> anyhow::Result<Client> {
        config.default_retry = false;
        let silence = self.person.unwrap_or(READ_TIMEOUT);
        config.connect_timeout = Some(CONNECT_TIMEOUT.min(silence));
        config.reset_reader_on_write = true;
        let agent = HeaderValue::try_from(format!("{}/{purpose}", self.agent));
        config.headers.push((header::USER_AGENT, agent.context("the User-Agent is not valid")?));
        let silent_for = |silence| {
            let mut config = config.clone();
            config.read_timeout = Some(silence);
            transport::client(config, connections).context("no client for the Kubernetes API could be made")
        };
        let requests = Requests {
            watches: silent_for(WATCH_READ_TIMEOUT)?,
            others: silent_for(silence)?,
            token,
            limit,
            metrics: self.metrics.clone(),
            host: config.cluster_url.authority().map(ToString::to_string).unwrap_or_default(),
            server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            tells: self.person.is_some(),
        };
        Ok(requests.client())
    }
}

/// Returns the files in `$KUBECONFIG` if none exists. As in kubectl, some of several may be absent.
fn named_in_environment() -> Vec<PathBuf> {
    let files = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let files: Vec<PathBuf> =
        std::env::split_paths(&files).filter(|file| !file.as_os_str().is_empty()).collect();
    if files.iter().any(|file| file.exists()) { Vec::new() } else { files }
}

impl PersonArgs {
    /// Creates a client for the cluster.
    ///
    /// # Errors
    /// There is no kubeconfig that can be used.
    pub async fn client(&self) -> anyhow::Result<Client> {
        self.client_of(AGENT).await
    }

    /// Creates a client for another program, whose name begins the User-Agent.
    ///
    /// # Errors
    /// There is no kubeconfig that can be used.
    pub async fn client_of(&self, agent: &'static str) -> anyhow::Result<Client> {
        let (config, metrics) = (self.config().await?, RequestMetrics::default());
        let connection = Connection { config, metrics, agent, person: Some(self.patience()) };
        connection.client("cli", RequestLimit::none())
    }

    /// How long the answer to one request may take.
    pub fn patience(&self) -> Duration {
        // As with kubectl, 0 is no limit.
        if self.request_timeout.is_zero() { NO_LIMIT } else { self.request_timeout }
    }

    /// Returns the server that `kubectl` would use.
    async fn config(&self) -> anyhow::Result<Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        match (given(self.kubeconfig.as_ref()), &self.context) {
            (Some(file), _) => {
                let problem = || format!("--kubeconfig={}: the file cannot be used", file.display());
                let kubeconfig =
                    Kubeconfig::read_from(file).map_err(without_excerpt).with_context(problem)?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await.with_context(problem)
            }
            (None, Some(name)) => Config::from_kubeconfig(&options).await.with_context(|| {
                format!("--context={name}: no kubeconfig contains a usable context of this name")
            }),
            (None, None) => {
                for file in named_in_environment() {
                    let problem = || format!("KUBECONFIG points to {}, which cannot be read", file.display());
                    std::fs::metadata(&file).with_context(problem)?;
                }
                // An existing file that cannot be parsed is reported before other files are tried.
                if let Err(error @ KubeconfigError::Parse(_)) = Kubeconfig::read() {
                    return Err(without_excerpt(error)).context("the kubeconfig cannot be used");
                }
                Config::infer()
                    .await
                    .context("no kubeconfig was found; specify a file with --kubeconfig or in $KUBECONFIG")
            }
        }
    }
}

/// The client of each controller, and a client for what they share. None repeats requests by itself.
#[derive(Clone)]
pub struct ControllerClients {
    shared: Client,
    /// Reads the identity of the cluster.
    identity: Client,
    own: HashMap<&'static str, Client>,
}

impl ControllerClients {
    /// Uses the same client for all controllers.
    pub fn same(client: Client) -> Self {
        Self { identity: client.clone(), shared: client, own: HashMap::new() }
    }

    /// Creates clients, each with a limit of this many requests a second and at once; with `own_accounts`, each acts as
    /// the controller's ServiceAccount, as `--use-service-account-credentials` asks for.
    ///
    /// # Errors
    /// Certificates or tokens that cannot be used.
    pub fn new(
        connection: &Connection,
        (qps, burst): (f64, u32),
        own_accounts: bool,
    ) -> anyhow::Result<Self> {
        let mut clients = Self::same(connection.client("controllers", RequestLimit::new(qps, burst))?);
        clients.identity = connection.client_of_new_connections("identity")?;
        if own_accounts {
            // Not held up by other requests of the process.
            let tokens = connection.client("tokens", RequestLimit::none())?;
            for account in ControllerName::ALL.map(ControllerName::service_account) {
                if !clients.own.contains_key(account) {
                    let limit = RequestLimit::new(qps, burst);
                    clients.own.insert(account, connection.client_of(account, tokens.clone(), limit)?);
                }
            }
        }
        Ok(clients)
    }

    /// Returns the cluster with this uid, which these clients have to show.
    pub fn known_cluster(&self, uid: String) -> Arc<KnownCluster> {
        Arc::new(KnownCluster::new(self.identity.clone(), uid))
    }

    /// Returns these clients with a layer that reports lists and watches to `cluster`, and refuses writes without the gate's permit.
    #[must_use]
    pub fn behind(&self, gate: &Gate, cluster: &Arc<KnownCluster>) -> Self {
        let own = self.own.iter().map(|(account, client)| (*account, guarded(client, gate, cluster)));
        Self {
            shared: guarded(&self.shared, gate, cluster),
            identity: self.identity.clone(),
            own: own.collect(),
        }
    }

    /// Returns the client for what all controllers share: the watch of nodes.
    pub fn shared(&self) -> &Client {
        &self.shared
    }

    pub fn of(&self, controller: ControllerName) -> Client {
        self.own.get(controller.service_account()).unwrap_or(&self.shared).clone()
    }
}

async fn config(kubeconfig: Option<&Path>, master: Option<&str>) -> anyhow::Result<Config> {
    let master = master
        .map(|text| text.parse::<http::Uri>().with_context(|| format!("--master={text}: this is not a URL")))
        .transpose()?;
    let mut config = match (kubeconfig, master.clone()) {
        (Some(file), _) => read("--kubeconfig", file).await?,
        (None, Some(url)) => Config::new(url),
        (None, None) => Config::incluster().context(
            "the process does not run in a pod with a service account; specify a file with --kubeconfig",
        )?,
    };
    if let Some(url) = master {
        config.cluster_url = url;
    }
    Ok(config)
}

/// Returns the error without the line that it is about, which may be a token.
fn without_excerpt(error: KubeconfigError) -> anyhow::Error {
    match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(place) => anyhow::anyhow!("line {} is not the YAML of a kubeconfig", place.line()),
            None => anyhow::anyhow!("it is not the YAML of a kubeconfig"),
        },
        other => other.into(),
    }
}

async fn read(flag: &str, file: &Path) -> anyhow::Result<Config> {
    let kubeconfig = Kubeconfig::read_from(file)
        .map_err(without_excerpt)
        .with_context(|| format!("{flag}={}: the file cannot be used", file.display()))?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("{flag}={}: its current context cannot be used", file.display()))
}

/// Reads the identity of the cluster: the uid of its namespace kube-system.
///
/// # Errors
/// The API server cannot be reached, or the right to read the namespace is missing.
pub async fn cluster_uid(client: Client) -> anyhow::Result<String> {
    let namespace = Api::<Namespace>::all(client)
        .get(IDENTITY_NAMESPACE)
        .await
        .context("the namespace kube-system, whose uid is the identity of the cluster, cannot be read")?;
    namespace.metadata.uid.context("the namespace kube-system has no uid")
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_server_that_never_answers_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let master = format!("http://{}", listener.local_addr().unwrap());
        let connection =
            Connection::new(None, Some(&master), AGENT, RequestMetrics::default()).await.unwrap();
        let client = connection.client("test", RequestLimit::none()).unwrap();
        let asked = tokio::spawn(cluster_uid(client));
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0, "the question has arrived");
        // Real sockets need a clock that runs.
        tokio::time::pause();
        tokio::time::advance(READ_TIMEOUT + Duration::from_secs(1)).await;
        tokio::time::resume();
        assert!(asked.await.unwrap().is_err());
    }
}
