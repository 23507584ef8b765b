//! Instance types: the names of flavors.

use std::collections::HashMap;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::label::is_value;
use openstack_ccm_openstack_api::nova::{Nova, ServerFlavor};
use tokio::sync::Mutex;

use super::topology;
use crate::load_balancer::failure::{Answered as _, present};

/// Maximum number of cached flavors.
const MAX_FLAVORS: usize = 1000;

/// Cached labels of flavors. A flavor never changes its name: it is deleted and recreated with another id.
#[derive(Debug, Default)]
pub(super) struct Flavors {
    /// Labels by flavor id.
    by_id: Mutex<HashMap<String, String>>,
    /// Labels by flavor name, for names that are not valid labels.
    by_name: Mutex<HashMap<String, String>>,
}

impl Flavors {
    /// Returns the instance type of a server: the name of its flavor if that is a valid label, else its id. `None` if Nova does not
    /// show the flavor.
    pub(super) async fn instance_type(
        &self,
        nova: &Nova,
        flavor: &ServerFlavor,
    ) -> Result<Option<String>, Failure> {
        match (&flavor.original_name, &flavor.id) {
            (Some(name), _) if is_label(name) => Ok(Some(name.clone())),
            (_, Some(id)) => self.label_of_id(nova, id).await.map(Some),
            (Some(name), None) => self.label_of_name(nova, name).await,
            (None, None) => Ok(None),
        }
    }

    async fn label_of_id(&self, nova: &Nova, id: &str) -> Result<String, Failure> {
        let mut known = self.by_id.lock().await;
        if let Some(label) = known.get(id) {
            return Ok(label.clone());
        }
        // A flavor may be deleted while servers use it.
        let flavor = present(nova.get_flavor(id).await);
        let name = flavor.while_doing(format_args!("reading the flavor {id}"))?.map(|flavor| flavor.name);
        let label = name.filter(|name| is_label(name)).unwrap_or_else(|| id.to_owned());
        remember(&mut known, id, &label);
        Ok(label)
    }

    /// Returns the label of a flavor whose name is not a valid label: the flavor's id or, if the flavor is deleted, the name
    /// without invalid characters.
    async fn label_of_name(&self, nova: &Nova, name: &str) -> Result<Option<String>, Failure> {
        let mut known = self.by_name.lock().await;
        if let Some(label) = known.get(name) {
            return Ok(Some(label.clone()));
        }
        let flavors = nova.list_flavors().await.while_doing("listing the flavors")?;
        let id = flavors.into_iter().find(|flavor| flavor.name == name).map(|flavor| flavor.id);
        let label = id.filter(|id| is_label(id)).or_else(|| topology::zone(name));
        if let Some(label) = &label {
            remember(&mut known, name, label);
        }
        Ok(label)
    }
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && is_value(text)
}

fn remember(known: &mut HashMap<String, String>, key: &str, label: &str) {
    if known.len() >= MAX_FLAVORS {
        known.clear();
    }
    known.insert(key.to_owned(), label.to_owned());
}
