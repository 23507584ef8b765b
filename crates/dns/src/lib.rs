//! Resolves names for the clients of OpenStack and of Kubernetes.
//!
//! The program is linked with musl, which asks all name servers of `/etc/resolv.conf` at once and takes the first answer: of an
//! internal and a public server, the public one often answers first that an internal name does not exist. musl also ends the
//! look-up at a bad answer for AAAA. glibc and Go ask one server after another, and use the addresses that they get; so does
//! this crate.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hyper_util::client::legacy::connect::dns::Name;

mod file;

use file::ConfigurationFile;

const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Why a name has no address.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ResolveError {
    /// `/etc/resolv.conf` cannot be read, or names no server.
    #[error("no name server could be read from /etc/resolv.conf: {0}")]
    NoServer(String),
    /// No name server had an address; the cause is the first error.
    #[error("{host} cannot be resolved: {cause}")]
    NoAddress {
        /// The name.
        host: String,
        /// The first error of a name server, or of the network.
        cause: String,
    },
}

/// The name servers of this machine, read for the first name, and again after the file has changed.
#[derive(Clone, Debug)]
pub struct Resolver {
    file: Arc<ConfigurationFile>,
}

impl Default for Resolver {
    fn default() -> Self {
        Self { file: Arc::new(ConfigurationFile::new(RESOLV_CONF.into())) }
    }
}

#[derive(Debug)]
struct Servers {
    /// In the order of the file, each with the search list.
    resolvers: Vec<TokioResolver>,
    /// How often all servers are asked before a look-up fails: `options attempts:n`.
    rounds: usize,
}

impl Servers {
    fn new(config: &ResolverConfig, mut options: ResolverOpts) -> Result<Self, ResolveError> {
        let rounds = options.attempts.max(1);
        options.attempts = 0;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        // Without a cache, a new name is found at once.
        options.cache_size = 0;
        let one = |server: &hickory_resolver::config::NameServerConfig| {
            let config = ResolverConfig::from_parts(
                config.domain().cloned(),
                config.search().to_vec(),
                vec![server.clone()],
            );
            let provider = TokioRuntimeProvider::default();
            TokioResolver::builder_with_config(config, provider).with_options(options.clone()).build()
        };
        let resolvers: Result<Vec<_>, NetError> = config.name_servers().iter().map(one).collect();
        let resolvers = resolvers.map_err(|error| ResolveError::NoServer(error.to_string()))?;
        if resolvers.is_empty() {
            return Err(ResolveError::NoServer("it names no server".to_owned()));
        }
        Ok(Self { resolvers, rounds })
    }

    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let mut cause = None;
        for _ in 0..self.rounds {
            let mut all_deny_it = true;
            for resolver in &self.resolvers {
                let error = match resolver.lookup_ip(host).await {
                    Ok(found) => return Ok(found.iter().collect()),
                    Err(error) => error,
                };
                tracing::debug!(host, %error, "a name server did not resolve a name");
                all_deny_it &= error.is_nx_domain() || error.is_no_records_found();
                cause.get_or_insert(error.to_string());
            }
            if all_deny_it {
                break;
            }
        }
        Err(ResolveError::NoAddress { host: host.to_owned(), cause: cause.unwrap_or_default() })
    }
}

impl Resolver {
    /// Returns the addresses of a name, those of IPv4 first.
    ///
    /// # Errors
    /// No name server returned an address.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, ResolveError> {
        self.file.servers()?.addresses(host).await
    }

    async fn sockets(self, host: String) -> Result<std::vec::IntoIter<SocketAddr>, ResolveError> {
        let addresses = self.addresses(&host).await?;
        // The HTTP client sets the port of the URL.
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect::<Vec<_>>().into_iter())
    }
}

impl reqwest::dns::Resolve for Resolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let sockets = self.clone().sockets(name.as_str().to_owned());
        Box::pin(async move {
            let sockets: reqwest::dns::Addrs = Box::new(sockets.await?);
            Ok(sockets)
        })
    }
}

impl tower_service::Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = ResolveError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(self.clone().sockets(name.as_str().to_owned()))
    }
}

#[cfg(test)]
mod tests;
