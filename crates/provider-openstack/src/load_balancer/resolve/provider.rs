//! What Octavia reports about its providers: their names to all users, and their flavor capabilities to administrators. All other
//! features follow from a provider's name ([`Features::of`]); if that is wrong, the user sees the provider's refusal.

use std::collections::BTreeSet;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::lock::lock;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::optional::OptionalPart;

use super::Resolver;
use crate::load_balancer::objects::{Features, OVN};
use crate::load_balancer::settings::Settings;

/// Octavia's status code if the driver does not support the query.
const NOT_IMPLEMENTED: u16 = 501;
/// Octavia's status code if the user may not send the query.
const FORBIDDEN: u16 = 403;

const AMPHORA: &str = "amphora";
/// The former name of amphora, which is listed as well.
const ALIAS_OF_AMPHORA: &str = "octavia";
const AMPHORA_V2: &str = "amphorav2";
const DOCUMENTED: [&str; 4] = [AMPHORA, ALIAS_OF_AMPHORA, AMPHORA_V2, OVN];

/// Returns whether the statistics of a provider count connections. Those of others may be zero always, as with ovn.
pub(crate) fn counts_connections(provider: &str) -> bool {
    [AMPHORA, ALIAS_OF_AMPHORA, AMPHORA_V2].contains(&provider)
}

impl Resolver {
    /// Returns Octavia's features for a new load balancer.
    pub(crate) async fn features_of_new(&self, settings: &Settings) -> Result<Features, Failure> {
        let provider = match &settings.provider {
            Some(provider) => Some(provider.clone()),
            None => self.only_provider().await.or_else(|| lock(&self.default_provider).clone()),
        };
        let mut features = self.features(provider.as_deref()).await?;
        let undocumented = provider.filter(|provider| !DOCUMENTED.contains(&provider.as_str()));
        if let Some(provider) = undocumented.filter(|_| settings.flavor_id.is_some()) {
            features.flavors &= self.has_flavors(&provider).await;
        }
        Ok(features)
    }

    /// Returns Octavia's provider for requests without one, if there is only one.
    async fn only_provider(&self) -> Option<String> {
        let mut names = self.provider_names().await;
        if names.contains(AMPHORA) {
            names.remove(ALIAS_OF_AMPHORA);
        }
        names.pop_first().filter(|_| names.is_empty())
    }

    /// Learns Octavia's default provider from its message when it refuses to create a load balancer. A provider that Octavia does
    /// not list is ignored. Returns whether the provider was not known before.
    pub(crate) async fn learn_default_provider(&self, refusal: &str) -> bool {
        let Some(name) = refusing_provider(refusal) else { return false };
        if !self.provider_names().await.contains(name) {
            return false;
        }
        let mut default = lock(&self.default_provider);
        default.replace(name.to_owned()).is_none_or(|before| before != name)
    }

    /// Returns the providers of the cloud; none if they cannot be listed.
    pub(super) async fn provider_names(&self) -> BTreeSet<String> {
        if self.openstack.client.lacks(OptionalPart::Providers) {
            return BTreeSet::new();
        }
        let listed = self.providers.get_or_fetch("", self.openstack.octavia.list_providers()).await;
        listed.unwrap_or_default().into_iter().map(|provider| provider.name).collect()
    }

    /// Returns whether a provider supports flavors. A provider without flavors reports that; if the query is not allowed, flavors
    /// are assumed.
    async fn has_flavors(&self, provider: &str) -> bool {
        let capabilities = async {
            let answer = self.openstack.octavia.list_flavor_capabilities(provider).await;
            match answer.as_ref().err().and_then(ApiError::status).map(|status| status.as_u16()) {
                Some(NOT_IMPLEMENTED) => Ok(false),
                Some(FORBIDDEN) => Ok(true),
                Some(_) | None => answer.map(|_| true),
            }
        };
        self.flavors_of_provider.get_or_fetch(provider, capabilities).await.unwrap_or(true)
    }
}

/// Returns the provider in Octavia's message about an unsupported option.
fn refusing_provider(refusal: &str) -> Option<&str> {
    let (name, _) =
        refusal.strip_prefix("Provider '")?.split_once("' does not support a requested option")?;
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_provider_that_made_it() {
        let text = "Provider 'ovn' does not support a requested option: OVN provider does not support ROUND_ROBIN algorithm";
        assert_eq!(refusing_provider(text), Some("ovn"));
        assert_eq!(refusing_provider(&format!("tag {text}")), None);
        assert_eq!(refusing_provider("Provider 'ovn' is not enabled."), None);
    }
}
