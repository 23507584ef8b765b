//! Lists cut to a length that no meaningful object exceeds.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// The first `N` entries of a list.
#[derive(Clone, Debug)]
pub(super) struct AtMost<const N: usize, T>(pub(super) Vec<T>);

impl<'de, const N: usize, T: Deserialize<'de>> Deserialize<'de> for AtMost<N, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Entries(PhantomData))
    }
}

struct Entries<const N: usize, T>(PhantomData<T>);

impl<'de, const N: usize, T: Deserialize<'de>> Visitor<'de> for Entries<N, T> {
    type Value = AtMost<N, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < N {
            let Some(entry) = entries.next_element()? else { break };
            kept.push(entry);
        }
        while entries.next_element::<IgnoredAny>()?.is_some() {}
        Ok(AtMost(kept))
    }
}

/// Returns the kept entries of a list that may be absent.
pub(super) fn kept<const N: usize, T>(list: Option<AtMost<N, T>>) -> Option<Vec<T>> {
    list.map(|AtMost(kept)| kept)
}
