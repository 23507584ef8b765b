//! One entry of clouds.yaml.

use std::collections::BTreeMap;

use openstack_ccm_openstack_api::transport::Service;
use secrecy::{ExposeSecret, SecretString};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// One entry. Fields that only OpenStack's tools use are ignored.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct CloudEntry {
    #[serde(default)]
    pub(super) auth: Option<Auth>,
    pub(super) auth_type: Option<String>,
    pub(super) region_name: Option<String>,
    pub(super) load_balancer_endpoint_override: Option<String>,
    pub(super) network_endpoint_override: Option<String>,
    pub(super) compute_endpoint_override: Option<String>,
    pub(super) identity_endpoint_override: Option<String>,
    pub(super) endpoint_type: Option<String>,
    pub(super) interface: Option<String>,
    pub(super) verify: Option<bool>,
    pub(super) cacert: Option<String>,
    pub(super) cert: Option<String>,
    pub(super) key: Option<String>,
    profile: Option<String>,
    cloud: Option<String>,
    /// Fields without effect here.
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

/// The part with the credentials.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Auth {
    pub(super) auth_url: Option<String>,
    pub(super) username: Option<String>,
    pub(super) user_id: Option<String>,
    #[serde(default, deserialize_with = "secret")]
    pub(super) password: Option<SecretString>,
    pub(super) project_id: Option<String>,
    pub(super) project_name: Option<String>,
    tenant_id: Option<String>,
    tenant_name: Option<String>,
    pub(super) project_domain_id: Option<String>,
    pub(super) project_domain_name: Option<String>,
    pub(super) user_domain_id: Option<String>,
    pub(super) user_domain_name: Option<String>,
    pub(super) domain_id: Option<String>,
    pub(super) domain_name: Option<String>,
    pub(super) application_credential_id: Option<String>,
    pub(super) application_credential_name: Option<String>,
    #[serde(default, deserialize_with = "secret")]
    pub(super) application_credential_secret: Option<SecretString>,
    #[serde(default, deserialize_with = "secret")]
    pub(super) token: Option<SecretString>,
    pub(super) system_scope: Option<String>,
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(SecretString::from))
}

/// A setting that may be present but empty.
trait Setting {
    fn says_something(&self) -> bool;
}

impl Setting for String {
    fn says_something(&self) -> bool {
        !self.is_empty()
    }
}

impl Setting for SecretString {
    fn says_something(&self) -> bool {
        !self.expose_secret().is_empty()
    }
}

/// Takes the named fields from `lower` where `upper` has none.
macro_rules! put_under {
    ($upper:ident, $lower:ident: $($field:ident),+ $(,)?) => {
        $(if $upper.$field.is_none() {
            $upper.$field = $lower.$field.clone().filter(Setting::says_something);
        })+
    };
}

impl CloudEntry {
    /// Returns the entry of clouds-public.yaml that this one extends.
    pub(super) fn public_profile(&self) -> Option<&str> {
        self.profile.as_deref().or(self.cloud.as_deref()).filter(|name| !name.is_empty())
    }

    /// Fills missing fields from an entry of lower rank.
    pub(super) fn put_under(&mut self, lower: &Self) {
        put_under!(self, lower: auth_type, region_name, cacert, cert, key);
        put_under!(
            self, lower: load_balancer_endpoint_override, network_endpoint_override, compute_endpoint_override,
            identity_endpoint_override,
        );
        self.verify = self.verify.or(lower.verify);
        // These are two names of one setting.
        if self.endpoint_type.is_none() && self.interface.is_none() {
            put_under!(self, lower: endpoint_type, interface);
        }
        if let Some(lower) = &lower.auth {
            self.auth.get_or_insert_default().put_under(lower);
        }
        self.others.extend(lower.others.clone());
    }

    /// Returns the endpoints of services, with the equivalent keys of cloud.conf.
    pub(super) fn endpoints(&self) -> [(&'static str, Service, Option<&str>); 4] {
        [
            (
                "endpoint-load-balancer",
                Service::LoadBalancer,
                self.load_balancer_endpoint_override.as_deref(),
            ),
            ("endpoint-network", Service::Network, self.network_endpoint_override.as_deref()),
            ("endpoint-compute", Service::Compute, self.compute_endpoint_override.as_deref()),
            ("endpoint-identity", Service::Identity, self.identity_endpoint_override.as_deref()),
        ]
    }

    /// Returns the endpoint settings of other services, which have no effect here.
    pub(super) fn endpoint_overrides(&self) -> impl Iterator<Item = &str> {
        self.others.keys().map(String::as_str).filter(|key| key.ends_with("_endpoint_override"))
    }

    /// Returns the interface type of the endpoints, under either name.
    pub(super) fn endpoint_type(&self) -> Option<&str> {
        let both = [self.endpoint_type.as_deref(), self.interface.as_deref()];
        both.into_iter().flatten().find(|text| !text.is_empty())
    }
}

impl Auth {
    fn put_under(&mut self, lower: &Self) {
        // The former names of project settings, which OpenStack's tools still accept.
        let lower = &Self {
            project_id: lower.project_id.clone().or_else(|| lower.tenant_id.clone()),
            project_name: lower.project_name.clone().or_else(|| lower.tenant_name.clone()),
            ..lower.clone()
        };
        put_under!(
            self, lower: auth_url, username, user_id, password, project_id, project_name, project_domain_id,
            project_domain_name, user_domain_id, user_domain_name, domain_id, domain_name,
            application_credential_id, application_credential_name, application_credential_secret, token,
            system_scope,
        );
    }
}
