//! The origin of a value.

use std::fmt;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An annotation, by key.
    Annotation(&'static str),
    /// A field of the Service, for example `spec.loadBalancerIP`.
    Field(&'static str),
    /// A key of `[LoadBalancer]` in cloud.conf.
    Config(&'static str),
    /// A key of a class in cloud.conf.
    Class {
        /// Name of the class.
        class: String,
        key: &'static str,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Annotation(key) => write!(f, "annotation {key}"),
            Self::Field(field) => f.write_str(field),
            Self::Config(key) => write!(f, "{key} in [LoadBalancer] of cloud.conf"),
            Self::Class { class, key } => write!(f, "{key} in [LoadBalancerClass {class:?}] of cloud.conf"),
        }
    }
}
