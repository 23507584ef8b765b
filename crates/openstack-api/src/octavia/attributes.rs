//! The attributes of an object that can be changed. A struct is the only place with their names and types: serde reads and writes
//! it, and what is here compares, changes and keeps all of its fields alike.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Values by Octavia's names, in the order of their struct, for a request. Null clears.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(Vec<(String, Value)>);

impl Values {
    /// Lists names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the value with this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(one, _)| *one == name).map(|(_, value)| value)
    }

    /// Sets a value, or adds it.
    pub fn set(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|(one, _)| one == name) {
            Some((_, before)) => *before = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Leaves only the values with these names.
    pub fn retain(&mut self, named: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| named(name));
    }

    /// Returns what Octavia means by these values.
    fn shown(self) -> Self {
        let value = |value: Value| if is_nothing(&value) { Value::Null } else { value };
        Self(self.0.into_iter().map(|(name, one)| (name, value(one))).collect())
    }

    /// Returns the attributes with these values.
    pub fn read<A: Fields>(self) -> Option<A> {
        serde_json::from_value(Value::Object(self.0.into_iter().collect())).ok()
    }
}

/// Attributes whose absence is null.
pub trait Fields: Clone + Serialize + DeserializeOwned {
    /// Returns all values, null where there is none.
    fn all(&self) -> Values {
        let written = serde_json::to_string(self);
        written.and_then(|text| serde_json::from_str(&text)).unwrap_or_default()
    }

    /// Returns the values that are there.
    fn values(&self) -> Values {
        Values(self.all().0.into_iter().filter(|(_, value)| !value.is_null()).collect())
    }

    /// Returns the values that a creation sends.
    fn to_create(&self) -> Values {
        let is_sent = |value: &Value| !is_nothing(value) && !value.as_object().is_some_and(Map::is_empty);
        Values(self.all().0.into_iter().filter(|(_, value)| is_sent(value)).collect())
    }

    /// Returns what Octavia means.
    #[must_use]
    fn shown(&self) -> Self {
        self.all().shown().read().unwrap_or_else(|| self.clone())
    }

    /// Returns the changes to what is wanted; with `whole` all of that, changed or not. What is not wanted stays. `rule` decides in
    /// place of this about some names with their wanted values.
    fn changes(&self, wanted: &Self, whole: bool, rule: impl Fn(&str, &Value) -> Option<bool>) -> Values {
        let is = self.all();
        let differs = |name: &str, value: &Value| !value.is_null() && (whole || is.get(name) != Some(value));
        let mut changes = wanted.all();
        changes.0.retain(|(name, value)| rule(name, value).unwrap_or_else(|| differs(name, value)));
        changes
    }

    /// Makes the changes.
    fn apply(&mut self, changes: &Values) {
        let mut values = self.all();
        for (name, value) in changes.iter() {
            values.set(name, value.clone());
        }
        *self = values.shown().read().unwrap_or_else(|| self.clone());
    }

    /// Takes over the values with these names, or their absence.
    fn keep(&mut self, there: &Self, named: impl Fn(&str) -> bool) {
        let mut values = self.all();
        for (name, value) in there.all().0.into_iter().filter(|(name, _)| named(name)) {
            values.set(&name, value);
        }
        *self = values.read().unwrap_or_else(|| self.clone());
    }

    /// Replaces those of the values with these names by the one that all others have. Returns whether there is one for each.
    fn follow(&mut self, others: &[&Self], named: impl Fn(&str) -> bool) -> bool {
        let others: Vec<Values> = others.iter().map(|other| other.values()).collect();
        let mut values = self.all();
        let mut complete = true;
        for (name, value) in values.0.iter_mut().filter(|(name, value)| !value.is_null() && named(name)) {
            let mut theirs = others.iter().filter_map(|other| other.get(name));
            match theirs.next().filter(|first| theirs.all(|one| one == *first)) {
                Some(first) => value.clone_from(first),
                None => complete = false,
            }
        }
        *self = values.read().unwrap_or_else(|| self.clone());
        complete
    }
}

impl<T: Clone + Serialize + DeserializeOwned> Fields for T {}

/// Octavia has an empty list where there is no value.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Changes of a listener, a pool or a health monitor. Only what is set is sent. Some attributes cannot be changed, such as
/// protocols, ports and types.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UpdateChild {
    /// New name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(flatten)]
    pub attributes: Values,
    /// All tags after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeSet<String>>,
}

impl UpdateChild {
    /// Returns the change of one attribute.
    pub fn of(name: &str, value: impl Into<Value>) -> Self {
        let mut update = Self::default();
        update.attributes.set(name, value.into());
        update
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("attributes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = map.next_entry()? {
            values.push(value);
        }
        Ok(Values(values))
    }
}
