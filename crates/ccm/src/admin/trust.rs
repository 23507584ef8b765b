//! Who is trusted about callers: authorities of client certificates and of proxies, from files or from the
//! ConfigMap in which the API server publishes its own. Both are read again from time to time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use openstack_ccm_runtime::lock::lock;

use super::client_certificate::Authorities;
use super::request_header::HeaderNames;
use crate::args::AuthenticationArgs;
use crate::args::path::given;
use crate::error_text::said_once;
use crate::kubernetes::Unanswered;

/// Where the API server publishes its authorities.
const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// What gives the right to read it.
const ROLE: &str =
    "bind the service account to the Role extension-apiserver-authentication-reader in kube-system";

/// Time between two checks.
const LOOK: Duration = Duration::from_secs(60);
/// Time between two checks while the API server cannot be reached at the start.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Longest wait for one look.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// Who is trusted now.
#[derive(Clone, Debug, Default)]
pub(super) struct Trusted {
    /// They sign client certificates.
    pub(super) clients: Option<Authorities>,
    /// They sign the certificates of proxies, which are asked in these headers.
    pub(super) proxies: Option<(Authorities, HeaderNames)>,
}

/// Keeps [`Trusted`] up to date.
pub(super) struct Trust {
    client_ca: Option<PathBuf>,
    proxy_ca: Option<(PathBuf, HeaderNames)>,
    /// Absent where the ConfigMap is not to be read.
    published: Option<Client>,
    current: Mutex<Arc<Trusted>>,
}

impl Trust {
    /// Nobody is trusted before [`Trust::look`].
    pub(super) fn new(arguments: &AuthenticationArgs, client: Client) -> Self {
        let headers = HeaderNames {
            user: arguments.requestheader_username_headers.clone(),
            uid: arguments.requestheader_uid_headers.clone(),
            group: arguments.requestheader_group_headers.clone(),
            extra: arguments.requestheader_extra_headers_prefix.clone(),
            allowed: arguments.requestheader_allowed_names.clone(),
        };
        let proxy_ca = given(arguments.requestheader_client_ca_file.as_ref());
        Self {
            client_ca: given(arguments.client_ca_file.as_ref()).map(ToOwned::to_owned),
            proxy_ca: proxy_ca.map(|file| (file.to_owned(), headers)),
            published: (!arguments.authentication_skip_lookup).then_some(client),
            current: Mutex::default(),
        }
    }

    pub(super) fn current(&self) -> Arc<Trusted> {
        Arc::clone(&lock(&self.current))
    }

    /// Looks until there is an answer, whatever it is. That the API server cannot be reached is told elsewhere: nothing
    /// works without it.
    pub(super) async fn first_look(&self) {
        loop {
            match self.look().await {
                Ok(()) => return,
                Err(error) if is_unanswered(&error) => {
                    tracing::debug!("client certificates cannot be verified yet: {}", said_once(&error));
                }
                Err(error) => {
                    tracing::warn!("client certificates cannot be verified yet: {}", said_once(&error));
                    return;
                }
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Looks again for ever.
    pub(super) async fn follow(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            if let Err(error) = self.look().await {
                tracing::warn!("the client CAs could not be reloaded and stay in use: {}", said_once(&error));
            }
        }
    }

    /// Reads files and ConfigMap once. What could be read counts, also when something else could not.
    ///
    /// # Errors
    /// Files or a ConfigMap that cannot be read.
    pub(super) async fn look(&self) -> anyhow::Result<()> {
        let mut problem = None;
        let mut read = |result: anyhow::Result<Trusted>| {
            result.unwrap_or_else(|error| {
                problem.get_or_insert(error);
                Trusted::default()
            })
        };
        let files = read(self.read_files());
        let wanted = self.client_ca.is_none() || self.proxy_ca.is_none();
        let published = match self.published.as_ref().filter(|_| wanted) {
            Some(client) => read(published(client).await),
            None => Trusted::default(),
        };
        let before = self.current();
        let trusted = Trusted {
            clients: files.clients.or(published.clients).or_else(|| before.clients.clone()),
            proxies: files.proxies.or(published.proxies).or_else(|| before.proxies.clone()),
        };
        *lock(&self.current) = Arc::new(trusted);
        problem.map_or(Ok(()), Err)
    }

    fn read_files(&self) -> anyhow::Result<Trusted> {
        let read = |flag: &str, file: &PathBuf| {
            let problem = || format!("{flag}={}: the file cannot be used", file.display());
            let pem = std::fs::read(file).with_context(problem)?;
            Authorities::from_pem(&pem).with_context(problem)
        };
        let clients = self.client_ca.as_ref().map(|file| read("--client-ca-file", file)).transpose()?;
        let proxies = self
            .proxy_ca
            .as_ref()
            .map(|(file, names)| anyhow::Ok((read("--requestheader-client-ca-file", file)?, names.clone())));
        let proxies = proxies.transpose()?;
        Ok(Trusted { clients, proxies })
    }
}

async fn published(client: &Client) -> anyhow::Result<Trusted> {
    let api = Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE);
    let found = tokio::time::timeout(LOOK_TIMEOUT, api.get_opt(NAME)).await;
    let problem = "the ConfigMap kube-system/extension-apiserver-authentication cannot be read";
    let found = match found {
        Ok(Err(error)) if is_refused(&error) => {
            return Err(anyhow::Error::new(error).context(format!("{problem}; {ROLE}")));
        }
        Ok(found) => found.context(problem)?,
        Err(_) => anyhow::bail!("{problem}: the API server did not answer within {LOOK_TIMEOUT:?}"),
    };
    // Without one nobody but the bearers of tokens is known, which is how such an API server wants it.
    found.map_or_else(|| Ok(Trusted::default()), |found| from_config_map(&found))
}

/// Whether rights are missing.
fn is_refused(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if [401, 403].contains(&status.code))
}

fn is_unanswered(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref().is_some_and(Unanswered::is_cause_of))
}

fn from_config_map(found: &ConfigMap) -> anyhow::Result<Trusted> {
    let value =
        |key: &str| found.data.as_ref().and_then(|data| data.get(key)).filter(|text| !text.is_empty());
    let authorities = |key: &str| {
        let problem = || format!("{key} in the ConfigMap kube-system/{NAME} cannot be used");
        value(key).map(|pem| Authorities::from_pem(pem.as_bytes()).with_context(problem)).transpose()
    };
    let list = |key: &str| -> anyhow::Result<Vec<String>> {
        let problem = || format!("{key} in the ConfigMap kube-system/{NAME} is not a list of texts");
        value(key).map_or_else(|| Ok(Vec::new()), |json| serde_json::from_str(json).with_context(problem))
    };
    let names = HeaderNames {
        user: list("requestheader-username-headers")?,
        uid: list("requestheader-uid-headers")?,
        group: list("requestheader-group-headers")?,
        extra: list("requestheader-extra-headers-prefix")?,
        allowed: list("requestheader-allowed-names")?,
    };
    let proxies = authorities("requestheader-client-ca-file")?.map(|authorities| (authorities, names));
    Ok(Trusted { clients: authorities("client-ca-file")?, proxies })
}
