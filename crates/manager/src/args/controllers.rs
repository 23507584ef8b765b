//! `--controllers`: which controllers run.

/// A controller of a cloud-controller-manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControllerName {
    /// Initialises nodes and keeps their addresses.
    CloudNode,
    /// Removes nodes whose server is gone, and marks those that are shut down.
    CloudNodeLifecycle,
    /// Gives Services of type `LoadBalancer` their load balancers.
    ServiceLb,
    /// Keeps the routes to the pods of each node.
    NodeRoute,
}

impl ControllerName {
    /// All controllers.
    pub const ALL: [Self; 4] = [Self::CloudNode, Self::CloudNodeLifecycle, Self::ServiceLb, Self::NodeRoute];

    /// Canonical name, alias and ServiceAccount.
    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::CloudNode => ("cloud-node-controller", "cloud-node", "node-controller"),
            Self::CloudNodeLifecycle => {
                ("cloud-node-lifecycle-controller", "cloud-node-lifecycle", "node-controller")
            }
            Self::ServiceLb => ("service-lb-controller", "service", "service-controller"),
            Self::NodeRoute => ("node-route-controller", "route", "route-controller"),
        }
    }

    /// The name in `--controllers` and of the health check: `service-lb-controller`.
    pub const fn canonical(self) -> &'static str {
        self.names().0
    }

    /// The short name, in `--controllers` and in the metric `running_managed_controllers`: `service`.
    pub const fn alias(self) -> &'static str {
        self.names().1
    }

    /// The ServiceAccount of its own that it has with `--use-service-account-credentials`. Kubernetes has a role for each
    /// (`system:controller:service-controller`, ...), bound to the account of this name in kube-system.
    pub const fn service_account(self) -> &'static str {
        self.names().2
    }
}

/// A name that is neither a controller's name nor an alias.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "--controllers: {name:?} is not a controller; known controllers are cloud-node, cloud-node-lifecycle, service and route, each \
     optionally behind a '-', and '*'"
)]
pub struct UnknownController {
    name: String,
}

/// The requested controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerSelection {
    entries: Vec<String>,
}

impl ControllerSelection {
    /// Reads the list; aliases become canonical names.
    ///
    /// # Errors
    /// All unknown names.
    pub fn parse(entries: &[String]) -> Result<Self, Vec<UnknownController>> {
        let mut unknown = Vec::new();
        let mut canonical = Vec::new();
        for entry in entries.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()) {
            let (sign, name) = entry.strip_prefix('-').map_or(("", entry), |name| ("-", name));
            match ControllerName::ALL.iter().find(|one| name == one.canonical() || name == one.alias()) {
                Some(controller) => canonical.push(format!("{sign}{}", controller.canonical())),
                None if entry == "*" => canonical.push("*".to_owned()),
                None => unknown.push(UnknownController { name: entry.to_owned() }),
            }
        }
        if unknown.is_empty() { Ok(Self { entries: canonical }) } else { Err(unknown) }
    }

    /// Returns the list with canonical names, signs kept.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Whether a controller runs: the first entry that names it decides, then `*`, else it does not run.
    pub fn runs(&self, controller: ControllerName) -> bool {
        let name = controller.canonical();
        let named = self.entries.iter().find(|entry| entry.strip_prefix('-').unwrap_or(entry) == name);
        named.map_or_else(|| self.entries.iter().any(|entry| entry == "*"), |entry| !entry.starts_with('-'))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("*", true)]
    #[case("service", true)]
    #[case("service-lb-controller", true)]
    #[case("-service,*", false)]
    #[case("*,-service-lb-controller", false)]
    #[case("cloud-node", false)]
    #[case("", false)]
    fn the_service_controller_is_chosen(#[case] list: &str, #[case] runs: bool) {
        let entries: Vec<String> = list.split(',').map(str::to_owned).collect();
        assert_eq!(ControllerSelection::parse(&entries).unwrap().runs(ControllerName::ServiceLb), runs);
    }

    #[test]
    fn unknown_names_are_refused_and_named() {
        let errors = ControllerSelection::parse(&["foo".into(), "-bar".into()]).unwrap_err();
        assert_eq!(errors.len(), 2);
        assert!(errors[0].to_string().contains("\"foo\""));
    }

    #[test]
    fn names_of_former_versions_are_unknown() {
        assert!(ControllerSelection::parse(&["route-controller".into()]).is_err());
    }
}
