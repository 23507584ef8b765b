//! Provider ids: `spec.providerID` of this provider's nodes, in every form that was ever written.
//!
//! | Form | Meaning |
//! | --- | --- |
//! | `openstack:///<server>` | the usual form |
//! | `openstack://<region>/<server>` | with `OS_CCM_REGIONAL=true` |
//! | `/<server>`, `<region>/<server>` | both forms without the scheme |

use std::fmt;

/// Scheme of the provider ids.
pub const SCHEME: &str = "openstack://";

/// Environment variable that adds the region to new provider ids.
pub const REGIONAL_VARIABLE: &str = "OS_CCM_REGIONAL";

/// The id of a server, and its region if included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderId {
    /// Region; absent in the usual form.
    pub region: Option<String>,
    pub server: String,
}

/// Why a provider id is not one of this provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderIdError {
    /// Another scheme.
    #[error("the provider id {0:?} belongs to another provider")]
    OtherProvider(String),
    /// This scheme with a malformed rest.
    #[error(
        "the provider id {0:?} has none of the forms openstack:///SERVER and openstack://REGION/SERVER; a provider id cannot be changed, \
         so the Node has to be deleted and registered again"
    )]
    Form(String),
}

impl ProviderId {
    /// Parses a provider id.
    ///
    /// # Errors
    /// Another scheme, or not exactly one `/` after the scheme.
    pub fn parse(text: &str) -> Result<Self, ProviderIdError> {
        let rest = match text.split_once("://") {
            Some(("openstack", rest)) => rest,
            Some(_) => return Err(ProviderIdError::OtherProvider(text.to_owned())),
            None => text,
        };
        match rest.split_once('/') {
            Some((region, server)) if !server.is_empty() && !server.contains('/') => Ok(Self {
                region: (!region.is_empty()).then(|| region.to_owned()),
                server: server.to_owned(),
            }),
            Some(_) | None => Err(ProviderIdError::Form(text.to_owned())),
        }
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.region.as_deref().unwrap_or_default(), self.server)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// Provider ids are read in every form that was ever written; what has no such form is refused.
    ///
    /// Contract: N12, same.
    #[rstest]
    #[case::usual("openstack:///x", None)]
    #[case::regional("openstack://r/x", Some("r"))]
    #[case::usual_without_scheme("/x", None)]
    #[case::regional_without_scheme("r/x", Some("r"))]
    fn n12_every_form_of_a_provider_id_is_read(#[case] text: &str, #[case] region: Option<&str>) {
        let expected = ProviderId { region: region.map(str::to_owned), server: "x".to_owned() };
        assert_eq!(ProviderId::parse(text), Ok(expected));
    }

    #[rstest]
    #[case::no_slash("openstack://x", false)]
    #[case::bare("x", false)]
    #[case::two_slashes("openstack:///a/b", false)]
    #[case::no_server("openstack:///", false)]
    #[case::aws("aws:///x", true)]
    #[case::aws_zone("aws:///eu-central-1a/i-1", true)]
    fn what_is_no_provider_id_of_ours_is_refused(#[case] text: &str, #[case] foreign: bool) {
        let error = ProviderId::parse(text).unwrap_err();
        assert_eq!(matches!(error, ProviderIdError::OtherProvider(_)), foreign, "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(region in proptest::option::of("[A-Za-z0-9_-]{1,9}"), server in "[0-9a-f-]{1,36}") {
            let id = ProviderId { region, server };
            prop_assert_eq!(ProviderId::parse(&id.to_string()), Ok(id));
        }
    }
}
