//! The numeric attributes of a listener, as one table: an existing listener, a new one and a change all have the same.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A numeric attribute. Timeouts are in milliseconds and need Octavia 2.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenerLimit {
    /// The most concurrent connections; -1 for no limit.
    Connections,
    /// The inactivity timeout of a client.
    ClientData,
    /// The timeout of connecting to a member.
    MemberConnect,
    /// The inactivity timeout of a member.
    MemberData,
    /// The timeout of waiting for data to inspect.
    TcpInspect,
}

impl ListenerLimit {
    /// All numeric attributes.
    pub const ALL: [Self; 5] =
        [Self::Connections, Self::ClientData, Self::MemberConnect, Self::MemberData, Self::TcpInspect];

    /// Returns Octavia's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connection_limit",
            Self::ClientData => "timeout_client_data",
            Self::MemberConnect => "timeout_member_connect",
            Self::MemberData => "timeout_member_data",
            Self::TcpInspect => "timeout_tcp_inspect",
        }
    }

    pub fn is_timeout(self) -> bool {
        self != Self::Connections
    }
}

/// The numeric attributes of a listener. An absent one is not shown, or not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListenerLimits([Option<i64>; ListenerLimit::ALL.len()]);

impl ListenerLimits {
    /// Returns one of the attributes.
    pub fn get(&self, limit: ListenerLimit) -> Option<i64> {
        self.0[limit as usize]
    }

    /// Sets one of the attributes.
    pub fn set(&mut self, limit: ListenerLimit, value: i64) {
        self.0[limit as usize] = Some(value);
    }

    /// Lists the attributes that are set.
    pub fn iter(&self) -> impl Iterator<Item = (ListenerLimit, i64)> {
        ListenerLimit::ALL.into_iter().zip(self.0).filter_map(|(limit, value)| Some((limit, value?)))
    }
}

impl FromIterator<(ListenerLimit, i64)> for ListenerLimits {
    fn from_iter<T: IntoIterator<Item = (ListenerLimit, i64)>>(items: T) -> Self {
        let mut limits = Self::default();
        items.into_iter().for_each(|(limit, value)| limits.set(limit, value));
        limits
    }
}

impl Serialize for ListenerLimits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(limit, value)| (limit.name(), value)))
    }
}

impl<'de> Deserialize<'de> for ListenerLimits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Among)
    }
}

/// Finds the numeric attributes among others.
struct Among;

impl<'de> Visitor<'de> for Among {
    type Value = ListenerLimits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("attributes of a listener")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ListenerLimits, A::Error> {
        let mut limits = ListenerLimits::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match ListenerLimit::ALL.into_iter().find(|limit| limit.name() == key) {
                Some(limit) => limits.0[limit as usize] = map.next_value()?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(limits)
    }
}
