//! Reading what an answer has under one name.
//!
//! Straight from the text into the types: a list of thousands of objects as a tree of JSON values is ten times as large
//! as its text, and all of it would be there at once.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// An answer, as far as it is read.
#[derive(Debug)]
pub(super) struct Answer<T> {
    /// What is under the name; absent where the answer does not have it.
    pub(super) value: Option<T>,
    /// What is under `<name>_links`.
    pub(super) links: Value,
}

/// Reads what is under `root`.
///
/// # Errors
/// The text is no JSON object, or what is under the name is something else than wanted.
pub(super) fn read<'de, T: Deserialize<'de>>(
    root: &str,
    text: &'de [u8],
) -> Result<Answer<T>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let answer = Under { root, value: PhantomData }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(answer)
}

struct Under<'a, T> {
    root: &'a str,
    value: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Under<'_, T> {
    type Value = Answer<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Under<'_, T> {
    type Value = Answer<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an object with {}", self.root)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut answer = Answer { value: None, links: Value::Null };
        while let Some(key) = map.next_key::<String>()? {
            if key == self.root {
                answer.value = Some(map.next_value()?);
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
    }
}
