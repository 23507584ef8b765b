//! A cause is told once: after a case that ran into its time, the other cases of its scenario wait for the same thing.

/// The case that ran into its time, if the group's present scenario has one.
#[derive(Debug, Default)]
pub(crate) struct Spent(Option<(String, String)>);

impl Spent {
    /// A case ran into its time.
    pub(super) fn note(&mut self, scenario: &str, case: &str) {
        self.0 = Some((scenario.to_owned(), case.to_owned()));
    }

    /// Why a case is left out; nothing if it is looked at. What cleans up is needed all the more.
    pub(super) fn reason(&self, scenario: &str, case: &str) -> Option<String> {
        let (_, cause) = self.0.as_ref().filter(|(known, _)| known == scenario)?;
        (!case.ends_with("clean-up"))
            .then(|| format!("left out because of \"{cause}\", which ran into its time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_leaves_out_the_rest_of_its_scenario_and_nothing_else() {
        let mut spent = Spent::default();
        assert_eq!(spent.reason("8 life", "a node joins"), None);
        spent.note("8 life", "create");
        assert!(spent.reason("8 life", "a node joins").unwrap().contains("\"create\""));
        assert_eq!(spent.reason("8 faults", "token revoked"), None);
        assert_eq!(spent.reason("8 life", "clean-up"), None);
        assert_eq!(spent.reason("8 life", "1.29 gate off, clean-up"), None);
    }
}
