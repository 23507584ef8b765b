//! The microversion that a request asks for.

use std::fmt;

use http::StatusCode;

use super::fault;
use crate::reply::Reply;
use crate::request::Request;
use crate::world::World;

/// The newest that is simulated.
const NEWEST: Microversion = Microversion(104);

/// Version 2.x.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Microversion(pub(crate) u16);

impl fmt::Display for Microversion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "2.{}", self.0)
    }
}

impl Microversion {
    /// The newest that this deployment has.
    pub(crate) fn newest(world: &World) -> Self {
        world.compute.newest_microversion.map_or(NEWEST, Self)
    }

    /// What the headers ask for: 2.1 when they say nothing.
    ///
    /// # Errors
    /// The version does not exist: 406.
    pub(crate) fn of(world: &World, request: &Request) -> Result<Self, Reply> {
        let newest = Self::newest(world);
        let new = request.header("openstack-api-version").and_then(|text| text.strip_prefix("compute "));
        let asked = new.or_else(|| request.header("x-openstack-nova-api-version"));
        let Some(text) = asked else { return Ok(Self(1)) };
        if text.trim() == "latest" {
            return Ok(newest);
        }
        let minor = text.trim().strip_prefix("2.").and_then(|minor| minor.parse::<u16>().ok());
        match minor {
            Some(minor) if (1..=newest.0).contains(&minor) => Ok(Self(minor)),
            _ => {
                let message = format!(
                    "Version {text} is not supported by the API. Minimum is 2.1 and maximum is {newest}."
                );
                Err(fault(StatusCode::NOT_ACCEPTABLE, &message))
            }
        }
    }

    /// Whether this version has what came with 2.`minor`.
    pub(crate) fn has(self, minor: u16) -> bool {
        self.0 >= minor
    }
}
