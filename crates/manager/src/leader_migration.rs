//! Leader migration: controllers that another controller manager may run as well are only run under a second lease,
//! which both share. The file is upstream's `LeaderMigrationConfiguration`.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

use crate::args::controllers::ControllerName;

const GROUP: &str = "controllermanager.config.k8s.io/";
const VERSIONS: [&str; 3] = ["v1alpha1", "v1beta1", "v1"];
const KIND: &str = "LeaderMigrationConfiguration";
/// Name of this program in such a file.
const COMPONENT: &str = "cloud-controller-manager";
/// Any component.
const ANY: &str = "*";
/// Name of the lease without a file.
const DEFAULT_LEASE: &str = "cloud-provider-extraction-migration";

/// Which controllers wait for a second lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Name of the lease.
    pub lease: String,
    leaders: Vec<(ControllerName, Place)>,
}

/// Under which lease a controller runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The Lease of this program.
    Main,
    /// The second Lease.
    Migrated,
    /// None: another component runs the controller.
    Elsewhere,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    leader_name: String,
    #[serde(default)]
    resource_lock: String,
    #[serde(default)]
    controller_leaders: Vec<Leader>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Leader {
    name: String,
    component: String,
}

impl Migration {
    /// Reads a file; without a file, returns upstream's default.
    ///
    /// # Errors
    /// A file that cannot be read or is not such a configuration; the text says what to change.
    pub fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let Some(file) = file else { return Ok(Self::default()) };
        let problem = || format!("--leader-migration-config={}", file.display());
        let text = std::fs::read_to_string(file).with_context(problem)?;
        Self::parse(&text).with_context(problem)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| anyhow::anyhow!("{error}"))?;
        let version = file.api_version.strip_prefix(GROUP).filter(|version| VERSIONS.contains(version));
        anyhow::ensure!(
            version.is_some() && file.kind == KIND,
            "{} {} is not a configuration of leader migration; write apiVersion {GROUP}v1 and kind {KIND}",
            file.api_version,
            file.kind,
        );
        anyhow::ensure!(
            !file.leader_name.is_empty(),
            "leaderName is missing: set it to the name of the lease"
        );
        anyhow::ensure!(
            ["", "leases", "endpoints"].contains(&file.resource_lock.as_str()),
            "resourceLock: {:?} is not known; write leases",
            file.resource_lock,
        );
        if file.resource_lock == "endpoints" {
            tracing::warn!("resourceLock: endpoints is not supported by current clusters; a lease is used");
        }
        Ok(Self { lease: file.leader_name, leaders: leaders(file.controller_leaders)? })
    }

    /// Returns the Lease under which a controller runs.
    pub fn place(&self, controller: ControllerName) -> Place {
        let known = self.leaders.iter().find(|(name, _)| *name == controller);
        known.map_or(Place::Main, |(_, place)| *place)
    }
}

/// Returns the entries for this program's controllers; other components have more.
fn leaders(given: Vec<Leader>) -> anyhow::Result<Vec<(ControllerName, Place)>> {
    let mut leaders = Vec::new();
    for leader in given {
        anyhow::ensure!(!leader.name.is_empty(), "controllerLeaders: an entry has no name");
        anyhow::ensure!(!leader.component.is_empty(), "controllerLeaders: {} has no component", leader.name);
        if let Some(controller) = ControllerName::named(&leader.name) {
            let is_ours = [ANY, COMPONENT].contains(&leader.component.as_str());
            leaders.push((controller, if is_ours { Place::Migrated } else { Place::Elsewhere }));
        }
    }
    Ok(leaders)
}

impl Default for Migration {
    fn default() -> Self {
        let controllers =
            [ControllerName::NodeRoute, ControllerName::ServiceLb, ControllerName::CloudNodeLifecycle];
        Self {
            lease: DEFAULT_LEASE.to_owned(),
            leaders: controllers.map(|controller| (controller, Place::Migrated)).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const FILE: &str = "apiVersion: controllermanager.config.k8s.io/v1\n\
        kind: LeaderMigrationConfiguration\n\
        leaderName: 1-20-to-1-21\n\
        resourceLock: leases\n\
        controllerLeaders:\n\
        - {name: service, component: '*'}\n\
        - {name: route-controller, component: cloud-controller-manager}\n\
        - {name: cloud-node-lifecycle-controller, component: kube-controller-manager}\n\
        - {name: nodeipam, component: kube-controller-manager}\n";

    #[test]
    fn old_and_new_names_of_controllers_are_understood() {
        let migration = Migration::parse(FILE).unwrap();
        assert_eq!(migration.lease, "1-20-to-1-21");
        assert_eq!(migration.place(ControllerName::ServiceLb), Place::Migrated);
        assert_eq!(migration.place(ControllerName::NodeRoute), Place::Migrated);
        assert_eq!(migration.place(ControllerName::CloudNodeLifecycle), Place::Elsewhere);
        assert_eq!(migration.place(ControllerName::CloudNode), Place::Main);
    }

    #[test]
    fn without_a_file_the_default_names_the_controllers_by_what_they_are_called_now() {
        let migration = Migration::load(None).unwrap();
        assert_eq!(migration.place(ControllerName::ServiceLb), Place::Migrated);
        assert_eq!(migration.place(ControllerName::NodeRoute), Place::Migrated);
        assert_eq!(migration.place(ControllerName::CloudNode), Place::Main);
    }

    #[rstest]
    #[case::field("leaderName", "leaderNme", "leaderNme")]
    #[case::version("io/v1", "io/v7", "io/v7")]
    #[case::lock("resourceLock: leases", "resourceLock: files", "files")]
    #[case::component("component: '*'", "component: ''", "service has no component")]
    fn what_is_wrong_is_named(#[case] from: &str, #[case] to: &str, #[case] named: &str) {
        let error = Migration::parse(&FILE.replacen(from, to, 1)).unwrap_err();
        assert!(format!("{error:#}").contains(named), "{error:#}");
    }
}
