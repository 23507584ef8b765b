//! What a leader writes about itself on its Lease, so that everybody who may read Leases can see who works there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The annotation of the Lease.
pub const ANNOTATION: &str = "cloud-controller-manager.openstack.org/leader";

/// What a leader publishes about itself. A later holder of another program leaves it there, so it counts only together with the
/// identity in the Lease itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderRecord {
    /// `spec.holderIdentity` of the Lease while it holds.
    pub identity: String,
    /// Version of the program, with the commit where it is known.
    pub version: String,
    /// Controllers that it runs, by their canonical names.
    #[serde(default)]
    pub controllers: Vec<String>,
}

impl LeaderRecord {
    /// As annotations of the Lease.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        // Texts can always be written.
        let text = serde_json::to_string(self).unwrap_or_default();
        BTreeMap::from([(ANNOTATION.to_owned(), text)])
    }

    /// Reads it from the annotations of a Lease, if the holder wrote it.
    pub fn of_holder(annotations: &BTreeMap<String, String>, holder: &str) -> Option<Self> {
        let record: Self = serde_json::from_str(annotations.get(ANNOTATION)?).ok()?;
        (record.identity == holder).then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_an_earlier_holder_does_not_count() {
        let record = LeaderRecord {
            identity: "cp-1_a".to_owned(),
            version: "0.1.0".to_owned(),
            controllers: vec!["service-lb-controller".to_owned()],
        };
        assert_eq!(LeaderRecord::of_holder(&record.annotations(), "cp-1_a"), Some(record.clone()));
        assert_eq!(LeaderRecord::of_holder(&record.annotations(), "occm_b"), None);
        assert_eq!(LeaderRecord::of_holder(&BTreeMap::new(), "cp-1_a"), None);
    }
}
