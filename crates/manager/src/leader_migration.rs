//! Leader migration: it moved controllers from a kube-controller-manager with an in-tree cloud provider to this program, one Lease
//! for both. Kubernetes 1.26 removed the last release that had the one for OpenStack, so there is nothing to share with any more.

use anyhow::Context as _;
use kube::Client;
use openstack_ccm_advertise::node::Version;

/// The first minor version of Kubernetes without an in-tree provider for OpenStack.
const WITHOUT_IN_TREE_PROVIDER: Version = Version(1, 26, 0);

/// What `--enable-leader-migration` means beside this API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Migration {
    /// Nothing.
    NothingToShare,
    /// Another component may run the same controllers; this is why the program must not start.
    Refused(String),
}

impl Migration {
    /// Asks the API server for its version.
    ///
    /// # Errors
    /// The API server cannot be asked, or shows no version.
    pub async fn beside(client: &Client) -> anyhow::Result<Self> {
        let version =
            client.apiserver_version().await.context("the version of the API server cannot be read")?;
        Self::with(&version.git_version)
    }

    fn with(version: &str) -> anyhow::Result<Self> {
        let parsed = Version::parse(version)
            .with_context(|| format!("the API server shows {version:?} as its version, which is none"))?;
        if parsed >= WITHOUT_IN_TREE_PROVIDER {
            return Ok(Self::NothingToShare);
        }
        Ok(Self::Refused(format!(
            "--enable-leader-migration: Kubernetes {version} may still run the controllers of an in-tree cloud provider, with which this \
             program shares no Lease: start kube-controller-manager with --cloud-provider=external first, then remove the flag"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_1_26_on_there_is_nobody_to_share_controllers_with() {
        assert_eq!(Migration::with("v1.26.0").unwrap(), Migration::NothingToShare);
        let Migration::Refused(why) = Migration::with("v1.25.16").unwrap() else { panic!("it would start") };
        assert!(
            why.contains("--enable-leader-migration") && why.contains("--cloud-provider=external"),
            "{why}"
        );
        assert!(Migration::with("").is_err());
    }
}
