//! Reads the value under one name of an answer.
//!
//! The text is deserialized directly into the types: for a list of thousands of objects a tree of JSON values would take ten times
//! the memory of the text, all at once.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The parts of an answer that are read.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    /// The value under the name; absent where the answer does not have it.
    pub(crate) value: Option<T>,
    /// The value under `<name>_links`.
    pub(crate) links: Value,
}

/// Reads the value under `root`.
///
/// # Errors
/// The text is not a JSON object, or the value has another type.
pub(crate) fn read<'de, T: Deserialize<'de>>(
    root: &str,
    text: &'de [u8],
) -> Result<Answer<T>, serde_json::Error> {
    read_seeded(root, text, PhantomData)
}

/// Reads the list under `root` into a collection, which gets each item as soon as the item is read.
///
/// # Errors
/// As for [`read`]; the collection may have got items before the error.
pub(super) fn read_list<'de, T: Deserialize<'de>, C: Extend<T>>(
    root: &str,
    text: &'de [u8],
    items: &mut C,
) -> Result<Answer<()>, serde_json::Error> {
    read_seeded(root, text, Items { items, item: PhantomData })
}

fn read_seeded<'de, S: DeserializeSeed<'de>>(
    root: &str,
    text: &'de [u8],
    seed: S,
) -> Result<Answer<S::Value>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let answer = deserializer.deserialize_map(Under { root, seed })?;
    deserializer.end()?;
    Ok(answer)
}

struct Items<'a, T, C> {
    items: &'a mut C,
    item: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>, C: Extend<T>> DeserializeSeed<'de> for Items<'_, T, C> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, C: Extend<T>> Visitor<'de> for Items<'_, T, C> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(item) = list.next_element()? {
            self.items.extend([item]);
        }
        Ok(())
    }
}

struct Under<'a, S> {
    root: &'a str,
    seed: S,
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Under<'_, S> {
    type Value = Answer<S::Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an object with {}", self.root)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut answer = Answer { value: None, links: Value::Null };
        let mut seed = Some(self.seed);
        while let Some(key) = map.next_key::<String>()? {
            if let Some(seed) = seed.take_if(|_| key == self.root) {
                answer.value = Some(map.next_value_seed(seed)?);
            } else if key.strip_prefix(self.root) == Some("_links") {
                answer.links = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn what_is_under_the_name_is_read_with_its_links() {
        let text = br#"{"other": [{"a": 1}], "ports": [1, 2], "ports_links": [{"rel": "next"}]}"#;
        let answer = read::<Vec<u8>>("ports", text).unwrap();
        assert_eq!(answer.value, Some(vec![1, 2]));
        assert_eq!(answer.links[0]["rel"].as_str(), Some("next"));
    }

    #[test]
    fn a_list_goes_into_the_collection_of_the_caller() {
        let mut ports = vec![0];
        let text = br#"{"ports": [1, 2], "ports_links": []}"#;
        let answer = read_list::<i32, _>("ports", text, &mut ports).unwrap();
        assert_eq!((answer.value, ports), (Some(()), vec![0, 1, 2]));
    }

    #[test]
    fn that_the_name_is_missing_is_no_error_of_the_text() {
        assert_eq!(read::<Vec<u8>>("ports", br#"{"port": []}"#).unwrap().value, None);
    }

    #[rstest]
    #[case::no_object("[]")]
    #[case::no_json("<html>")]
    #[case::cut_off(r#"{"ports": [1"#)]
    #[case::something_behind(r#"{"ports": []} x"#)]
    #[case::null(r#"{"ports": null}"#)]
    #[case::another_type(r#"{"ports": {}}"#)]
    fn anything_else_is_an_error(#[case] text: &str) {
        assert!(read::<Vec<u8>>("ports", text.as_bytes()).is_err());
        assert!(read_list::<u8, Vec<_>>("ports", text.as_bytes(), &mut Vec::new()).is_err());
    }
}
