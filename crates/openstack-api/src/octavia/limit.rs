//! The numbers among the attributes of a listener, as one table: what Octavia shows, what makes a listener and what changes
//! one carry them alike.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One number. Timeouts are in milliseconds and need Octavia 2.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenerLimit {
    /// Most connections at once; -1 is no limit.
    Connections,
    /// Longest silence of a client.
    ClientData,
    /// Longest time to connect to a member.
    MemberConnect,
    /// Longest silence of a member.
    MemberData,
    /// Longest time to wait for data to inspect.
    TcpInspect,
}

impl ListenerLimit {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Connections, Self::ClientData, Self::MemberConnect, Self::MemberData, Self::TcpInspect];

    /// Octavia's name.
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

/// The numbers of a listener. One that is absent is not shown, or not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListenerLimits([Option<i64>; ListenerLimit::ALL.len()]);

impl ListenerLimits {
    /// One of them.
    pub fn get(&self, limit: ListenerLimit) -> Option<i64> {
        self.0[limit as usize]
    }

    /// Sets one of them.
    pub fn set(&mut self, limit: ListenerLimit, value: i64) {
        self.0[limit as usize] = Some(value);
    }

    /// Those that are there.
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

/// Finds them among other attributes.
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
