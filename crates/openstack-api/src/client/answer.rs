//! Reads the value under one name of an answer.
//!
//! The text is deserialized directly into the types: for a list of thousands of objects a tree of JSON values would take ten times
//! the memory of the text, all at once.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::filter::Filters;

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

/// Reads the list under `root` into a collection, which gets each item that matches the filters as soon as the item is read. The
/// value is the filter that an item did not match.
///
/// # Errors
/// As for [`read`]; the collection may have got items before the error.
pub(super) fn read_list<'de, T: Deserialize<'de>, C: Extend<T>>(
    root: &str,
    text: &'de [u8],
    filters: &Filters,
    items: &mut C,
) -> Result<Answer<Option<String>>, serde_json::Error> {
    read_seeded(root, text, Items { filters, items, item: PhantomData })
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
    filters: &'a Filters,
    items: &'a mut C,
    item: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>, C: Extend<T>> DeserializeSeed<'de> for Items<'_, T, C> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, C: Extend<T>> Visitor<'de> for Items<'_, T, C> {
    type Value = Option<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut unmet = None;
        if self.filters.is_empty() {
            while let Some(item) = list.next_element()? {
                self.items.extend([item]);
            }
        }
        while let Some(item) = list.next_element::<&RawValue>()? {
            match unmet_by(item, self.filters) {
                Some(filter) => unmet = Some(filter.to_owned()),
                None => self.items.extend([serde_json::from_str(item.get()).map_err(A::Error::custom)?]),
            }
        }
        Ok(unmet)
    }
}

/// Returns the filter that an object does not match. Only the attributes in question are decoded.
fn unmet_by<'a>(object: &RawValue, filters: &'a Filters) -> Option<&'a str> {
    let attributes: HashMap<String, &RawValue> = serde_json::from_str(object.get()).ok()?;
    filters.unmet(|name| serde_json::from_str(attributes.get(name)?.get()).ok())
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
        let answer = read_list::<i32, _>("ports", text, &Filters::default(), &mut ports).unwrap();
        assert_eq!((answer.value, ports), (Some(None), vec![0, 1, 2]));
    }

    #[test]
    fn what_does_not_match_is_left_out_and_told() {
        let text = br#"{"ports": [{"id": "a", "name": "web"}, {"id": "b", "name": "other"}, {"id": "c"}]}"#;
        let (filters, mut ports) = (Filters::of(&[("name".to_owned(), "web".to_owned())]), Vec::new());
        let answer = read_list::<Value, _>("ports", text, &filters, &mut ports).unwrap();
        assert_eq!(answer.value, Some(Some("name".to_owned())));
        let ids: Vec<_> = ports.iter().map(|port| port["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["a", "c"]);
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
        assert!(
            read_list::<u8, Vec<_>>("ports", text.as_bytes(), &Filters::default(), &mut Vec::new()).is_err()
        );
    }
}
