//! `--controllers`: which controllers run.

/// Canonical names and aliases of the controllers of a cloud-controller-manager.
const CONTROLLERS: [(&str, &str); 4] = [
    ("cloud-node-controller", "cloud-node"),
    ("cloud-node-lifecycle-controller", "cloud-node-lifecycle"),
    ("service-lb-controller", "service"),
    ("node-route-controller", "route"),
];

/// A name that is neither a controller nor an alias of one.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "--controllers: {name:?} is not a controller; known are cloud-node, cloud-node-lifecycle, service and route, each \
     optionally behind a '-', and '*'"
)]
pub struct UnknownController {
    name: String,
}

/// The controllers that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerSelection {
    entries: Vec<String>,
}

impl ControllerSelection {
    /// Reads the list; aliases become canonical names.
    ///
    /// # Errors
    /// Every name that is unknown.
    pub fn parse(entries: &[String]) -> Result<Self, Vec<UnknownController>> {
        let mut unknown = Vec::new();
        let mut canonical = Vec::new();
        for entry in entries.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()) {
            let (sign, name) = entry.strip_prefix('-').map_or(("", entry), |name| ("-", name));
            match CONTROLLERS.iter().find(|(full, alias)| name == *full || name == *alias) {
                Some((full, _)) => canonical.push(format!("{sign}{full}")),
                None if entry == "*" => canonical.push("*".to_owned()),
                None => unknown.push(UnknownController { name: entry.to_owned() }),
            }
        }
        if unknown.is_empty() { Ok(Self { entries: canonical }) } else { Err(unknown) }
    }

    /// Whether a controller runs: the first entry that names it decides, then `*`, else it does not run.
    pub fn enabled(&self, canonical: &str) -> bool {
        let named = self.entries.iter().find(|entry| entry.strip_prefix('-').unwrap_or(entry) == canonical);
        named.map_or_else(|| self.entries.iter().any(|entry| entry == "*"), |entry| !entry.starts_with('-'))
    }

    /// Whether the service controller runs.
    pub fn service(&self) -> bool {
        self.enabled("service-lb-controller")
    }

    /// Controllers that were asked for by name, with their aliases resolved.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(String::as_str).filter(|entry| !entry.starts_with('-') && *entry != "*")
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
    fn the_service_controller_is_chosen(#[case] list: &str, #[case] enabled: bool) {
        let entries: Vec<String> = list.split(',').map(str::to_owned).collect();
        assert_eq!(ControllerSelection::parse(&entries).unwrap().service(), enabled);
    }

    #[test]
    fn unknown_names_are_refused_and_named() {
        let errors = ControllerSelection::parse(&["foo".into(), "-bar".into()]).unwrap_err();
        assert_eq!(errors.len(), 2);
        assert!(errors[0].to_string().contains("\"foo\""));
    }
}
