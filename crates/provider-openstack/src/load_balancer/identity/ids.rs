//! Ids of load balancers, by how far they can be trusted.

use std::fmt;
use std::ops::Deref;

use openstack_ccm_core::service::Service;

use super::outputs;
use crate::load_balancer::annotations::{LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID};

/// An id that any user may have written into a Service. If it is wrong, only that Service fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenId(String);

impl WrittenId {
    pub(crate) fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }
}

impl Deref for WrittenId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WrittenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a load balancer that was made for a Service, written into it by a controller that has published it. Decisions for the
/// whole cluster use only such ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublishedId(String);

impl PublishedId {
    /// Returns the published id of a Service, if it has one. Users cannot write a status. The status stays while a broken load balancer is
    /// deleted to be recreated; the annotation with its address is then removed.
    pub(crate) fn of(service: &Service) -> Option<Self> {
        let has_address = service.annotations.contains_key(LOAD_BALANCER_ADDRESS.key);
        if !service.is_published || !has_address || !outputs::is_written_by_us(service) {
            return None;
        }
        service.annotations.get(LOAD_BALANCER_ID.key).map(|id| Self(id.clone()))
    }

    #[cfg(test)]
    pub(crate) fn in_test(id: &str) -> Self {
        Self(id.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use openstack_ccm_core::service::ServiceKey;
    use rstest::rstest;

    use super::*;
    use crate::load_balancer::annotations::OWNED_LOAD_BALANCER_ID;

    /// A tenant can write annotations, and no status.
    #[rstest]
    #[case::published(true, Some("lb"), Some("203.0.113.1"), true)]
    #[case::published_by_occm(true, None, Some("203.0.113.1"), true)]
    #[case::written_by_a_tenant(false, Some("lb"), Some("203.0.113.1"), false)]
    #[case::deleted_to_be_recreated(true, Some("lb"), None, false)]
    #[case::of_a_guest(true, None, None, false)]
    #[case::changed_since(true, Some("another"), Some("203.0.113.1"), false)]
    fn only_what_a_controller_published_counts_for_the_cluster(
        #[case] is_published: bool,
        #[case] owned: Option<&str>,
        #[case] address: Option<&str>,
        #[case] expected: bool,
    ) {
        let written = [
            (LOAD_BALANCER_ID, Some("lb")),
            (OWNED_LOAD_BALANCER_ID, owned),
            (LOAD_BALANCER_ADDRESS, address),
        ];
        let annotations =
            written.into_iter().filter_map(|(key, value)| Some((key.key.to_owned(), value?.to_owned())));
        let new = Service::new(ServiceKey::new("default", "web"), "uid".to_owned());
        let service = Service { annotations: annotations.collect(), is_published, ..new };
        assert_eq!(PublishedId::of(&service).is_some(), expected);
    }
}
