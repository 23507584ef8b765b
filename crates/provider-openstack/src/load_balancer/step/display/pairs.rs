//! `key=value` pairs and lists.

use std::fmt::{self, Display, Formatter};

use openstack_ccm_openstack_api::octavia::ListenerLimits;

use crate::load_balancer::model::Tags;

/// `key=value` pairs of what is set.
#[derive(Default)]
pub(super) struct Pairs(Vec<String>);

impl Pairs {
    pub(super) fn add(mut self, key: &str, value: Option<impl Display>) -> Self {
        self.0.extend(value.map(|value| format!("{key}={value}")));
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the pairs behind something else.
    pub(super) fn append(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_empty() { Ok(()) } else { write!(f, " {self}") }
    }

    pub(super) fn limits(self, limits: &ListenerLimits) -> Self {
        limits.iter().fold(self, |pairs, (limit, value)| pairs.add(limit.name(), Some(value)))
    }

    pub(super) fn tags(self, tags: &Tags) -> Self {
        self.add("tags", (!tags.is_empty()).then(|| list(tags)))
    }
}

impl Display for Pairs {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

pub(super) fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}
