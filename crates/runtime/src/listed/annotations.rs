//! Annotations and labels.

use std::collections::BTreeMap;
use std::fmt;

use openstack_ccm_core::provider::AnnotationUse;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::interest::Interest;
use super::limits::{MAX_SIZE, MAX_VALUES_SIZE};

/// Characters shown of a longer value.
const MAX_SHOWN_LENGTH: usize = 20;

/// Shortens a value that is too long, for a message to the user.
pub fn shortened(value: &str) -> String {
    let begin: String = value.chars().take(MAX_SHOWN_LENGTH).collect();
    format!("{begin}… ({} bytes; limit {MAX_VALUES_SIZE} for all annotations)", value.len())
}

/// The annotations that are used or reported.
#[derive(Clone, Debug)]
pub(super) struct Annotations(pub(super) BTreeMap<String, String>);

/// The labels, cut at `MAX_SIZE` bytes.
#[derive(Clone, Debug)]
pub(super) struct KeptLabels(pub(super) BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AnnotationVisitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for KeptLabels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LabelVisitor).map(Self)
    }
}

struct AnnotationVisitor;

impl<'de> Visitor<'de> for AnnotationVisitor {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("annotations")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let (mut kept, mut room, mut room_for_messages) = (BTreeMap::new(), MAX_SIZE, MAX_VALUES_SIZE);
        while let Some(key) = entries.next_key::<String>()? {
            let is_kept = match Interest::use_of(&key) {
                AnnotationUse::Meaning => true,
                AnnotationUse::Message => match room_for_messages.checked_sub(key.len()) {
                    Some(left) => {
                        room_for_messages = left;
                        true
                    }
                    None => false,
                },
                AnnotationUse::None => false,
            };
            if !is_kept {
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            let mut value: String = entries.next_value()?;
            if value.len() > MAX_VALUES_SIZE || key.len() + value.len() > room {
                let short = shortened(&value);
                if short.len() < value.len() {
                    value = short;
                }
            }
            room = room.saturating_sub(key.len() + value.len());
            kept.insert(key, value);
        }
        Ok(kept)
    }
}

struct LabelVisitor;

impl<'de> Visitor<'de> for LabelVisitor {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("labels")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let (mut kept, mut room) = (BTreeMap::new(), MAX_SIZE);
        while let Some((key, value)) = entries.next_entry::<String, String>()? {
            room = room.saturating_sub(key.len() + value.len());
            if room > 0 {
                kept.insert(key, value);
            }
        }
        Ok(kept)
    }
}
