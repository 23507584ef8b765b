//! The output of `adopt` besides the plan: how much of everything that this program takes over stays as it is.

use std::fmt;
use std::time::Duration;

use openstack_ccm_provider_openstack::config::LoadBalancer;
use serde::Serialize;

use super::changes::Changes;
use super::forecast::{Forecast, State};
use super::rehearsal::{Item, Subject};
use crate::output::plural;

/// The counts of an adoption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Adoption {
    /// Published Services whose entries would stay.
    pub statuses_stay: usize,
    /// Published Services whose entries would change.
    pub statuses_change: usize,
    /// Services that would be published for the first time.
    pub statuses_new: usize,
    /// Services with a value that is wrong or means something else here; the lines of each show the cause.
    pub values: usize,
    /// Refused Services, for which the other counts may be wrong.
    pub refused: usize,
    /// Services that could not be planned, which the other counts leave out.
    #[serde(skip)]
    pub unknown: usize,
    /// Services whose load balancer and floating IP would get ownership tags.
    pub identity_tags: usize,
    /// The number of Services that get ownership tags per minute; 0 where none does.
    pub identity_tags_per_minute: u32,
    /// Nodes; absent where no controller for them runs.
    pub nodes: Option<Changes>,
    /// Routes of the router; absent where no controller for them runs.
    pub routes: Option<Changes>,
    /// Security groups and their rules; absent where no controller for them runs.
    pub security_groups: Option<Changes>,
}

impl Adoption {
    /// Counts the changes; `section` is the planned controllers' configuration.
    pub fn of(items: &[Item], forecasts: &[Forecast], section: &LoadBalancer) -> Self {
        let about = |wanted: &[Subject], kinds: &[&str]| {
            let all = items.iter().zip(forecasts);
            let chosen = all.filter(|(item, _)| wanted.is_empty() || wanted.contains(&item.subject));
            let changes = chosen.flat_map(|(_, forecast)| &forecast.changes);
            Changes::of(changes.filter(|one| kinds.is_empty() || kinds.contains(&one.kind.as_str())))
        };
        let has = |subject: &Subject| items.iter().any(|item| item.subject == *subject);
        let nodes = [Subject::Nodes, Subject::NodeLifecycle];
        let services =
            || items.iter().zip(forecasts).filter(|(item, _)| matches!(item.subject, Subject::Service(_)));
        let is_published = |forecast: &Forecast| !forecast.published.is_empty();
        let changes = |forecast: &Forecast| forecast.changes.iter().any(|one| one.kind == "status");
        let is_unknown = |forecast: &Forecast| matches!(forecast.state, State::Unknown(_));
        let count =
            |holds: &dyn Fn(&Forecast) -> bool| services().filter(|(_, forecast)| holds(forecast)).count();
        Self {
            statuses_stay: count(&|one| is_published(one) && !changes(one) && !is_unknown(one)),
            statuses_change: count(&|one| is_published(one) && changes(one)),
            statuses_new: count(&|one| !is_published(one) && changes(one)),
            values: count(&|one| matches!(one.state, State::Keeps(_)) || one.odd_values > 0),
            refused: count(&|one| matches!(one.state, State::Refused(_))),
            unknown: count(&is_unknown),
            identity_tags: services().filter(|(item, _)| item.awaits_identity_tags).count(),
            identity_tags_per_minute: section.identity_tags_per_minute,
            nodes: nodes.iter().any(has).then(|| about(&nodes, &["node"])),
            routes: has(&Subject::Routes).then(|| about(&[Subject::Routes], &[])),
            security_groups: section
                .manage_security_groups
                .then(|| about(&[], &["security group", "security group rule"])),
        }
    }

    /// Returns the time until the last Service has its ownership tags.
    fn tagging(&self) -> Option<Duration> {
        let pause = Duration::from_secs(60).checked_div(self.identity_tags_per_minute)?;
        let count = u32::try_from(self.identity_tags).unwrap_or(u32::MAX);
        Some(Duration::from_secs(60) + pause.saturating_mul(count.saturating_sub(1)))
    }
}

/// Returns `1 minute`, `16 minutes`.
fn minutes(time: Duration) -> String {
    let minutes = usize::try_from(time.as_secs().div_ceil(60)).unwrap_or(usize::MAX);
    plural(minutes, "minute")
}

impl fmt::Display for Adoption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            statuses_stay,
            statuses_change,
            statuses_new,
            values,
            refused,
            unknown,
            identity_tags,
            ..
        } = self;
        write!(f, "Statuses: {statuses_stay} stay, {statuses_change} change, {statuses_new} are new.")?;
        if *refused > 0 {
            write!(f, "\nRefused: {}; see the lines with !.", plural(*refused, "Service"))?;
        }
        if *unknown > 0 {
            write!(f, "\nNot planned: {}; nothing here is about them.", plural(*unknown, "Service"))?;
        }
        match values {
            0 if *unknown > 0 && statuses_stay + statuses_change + statuses_new + refused == 0 => {
                f.write_str("\nValues: not known.")?;
            }
            0 => f.write_str("\nValues: none is invalid or means something else here.")?,
            1 => f.write_str("\nValues: 1 Service has values that are invalid or mean something else here; see the lines with !.")?,
            _ => write!(
                f,
                "\nValues: {values} Services have values that are invalid or mean something else here; see the lines with !."
            )?,
        }
        f.write_str("\nIdentity tags: ")?;
        match (identity_tags, self.tagging()) {
            (_, None) => f.write_str("none, because identity-tags-per-minute in [LoadBalancer] is 0.")?,
            (0, Some(_)) if *refused + *unknown > 0 => {
                f.write_str(
                    "not known for the Services that are refused or not planned; all others have them.",
                )?;
            }
            (0, Some(_)) => f.write_str("all are there.")?,
            (_, Some(time)) => write!(
                f,
                "the load balancers and floating IPs of {} are tagged after the switch, {} a minute; all done after about {}.",
                plural(*identity_tags, "Service"),
                self.identity_tags_per_minute,
                minutes(time),
            )?,
        }
        let rest = [
            ("Nodes", &self.nodes, "the node controllers do not run"),
            ("Routes", &self.routes, "the route controller does not run"),
            ("Security groups", &self.security_groups, "manage-security-groups is off"),
        ];
        rest.into_iter().try_for_each(|(what, changes, without)| match changes {
            Some(changes) if *changes == Changes::default() => write!(f, "\n{what}: nothing changes."),
            Some(changes) => write!(f, "\n{what}: {changes}."),
            None => write!(f, "\n{what}: not looked after, because {without}."),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adoption() -> Adoption {
        Adoption {
            statuses_stay: 180,
            statuses_change: 3,
            statuses_new: 0,
            values: 2,
            refused: 0,
            unknown: 0,
            identity_tags: 181,
            identity_tags_per_minute: 12,
            nodes: Some(Changes::default()),
            routes: Some(Changes { change: 1, ..Changes::default() }),
            security_groups: None,
        }
    }

    #[test]
    fn who_takes_over_reads_how_much_stays_and_when_the_last_tag_is_written() {
        let text = adoption().to_string();
        assert!(
            text.starts_with("Statuses: 180 stay, 3 change, 0 are new.\nValues: 2 Services have values"),
            "{text}"
        );
        assert!(text.contains("after the switch, 12 a minute; all done after about 16 minutes."), "{text}");
        assert!(
            text.contains("\nNodes: nothing changes.\nRoutes: 0 to add, 1 to change, 0 to destroy.\n"),
            "{text}"
        );
        assert!(
            text.ends_with("Security groups: not looked after, because manage-security-groups is off."),
            "{text}"
        );
    }

    #[test]
    fn what_could_not_be_planned_is_no_good_news() {
        let nothing = Adoption {
            statuses_stay: 0,
            statuses_change: 0,
            values: 0,
            unknown: 1,
            identity_tags: 0,
            ..adoption()
        };
        let text = nothing.to_string();
        assert!(
            text.contains("\nNot planned: 1 Service; nothing here is about them.\nValues: not known.\n"),
            "{text}"
        );
        assert!(!text.contains("none is invalid") && !text.contains("all are there"), "{text}");
    }

    #[test]
    fn who_does_not_want_tags_gets_none() {
        let text = Adoption { identity_tags_per_minute: 0, ..adoption() }.to_string();
        assert!(text.contains("none, because identity-tags-per-minute"), "{text}");
    }
}
