//! Names that differ from run to run: ids, addresses, tokens. Recorded ones are bound to simulated ones as they appear.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"TOKEN-[A-Z]+|gAAAA\w+",
        r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        r"|\b[0-9a-f]{32}\b",
        r"|\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b",
        r"|\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b",
        r"|\bfd00:[0-9a-f:]+",
    ))
    .unwrap()
});

/// The bindings so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    simulated: BTreeMap<String, String>,
}

impl Names {
    /// Binds a recorded name; ambiguous ones stay unbound.
    pub(crate) fn bind(&mut self, recorded: &str, simulated: &str) {
        if recorded != "TOKEN-OTHER" {
            self.simulated.insert(recorded.to_owned(), simulated.to_owned());
        }
    }

    /// A recorded text as it would be in the simulated world; unknown names stay.
    pub(crate) fn translate(&self, text: &str) -> String {
        let replace = |found: &Captures<'_>| {
            let name = &found[0];
            self.simulated.get(name).cloned().unwrap_or_else(|| name.to_owned())
        };
        NAME.replace_all(text, replace).into_owned()
    }

    /// Whether two texts are the same up to names; unknown recorded names are bound.
    pub(crate) fn unify(&mut self, recorded: &str, simulated: &str) -> bool {
        if NAME.replace_all(recorded, "<name>") != NAME.replace_all(simulated, "<name>") {
            return false;
        }
        let of = |text: &str| NAME.find_iter(text).map(|found| found.as_str().to_owned()).collect::<Vec<_>>();
        let (recorded, simulated) = (of(recorded), of(simulated));
        let mut tried = self.clone();
        if recorded.iter().zip(&simulated).all(|(one, other)| tried.unify_name(one, other)) {
            *self = tried;
            return true;
        }
        // Some messages list ids in no fixed order.
        let mut expected: Vec<String> = recorded.iter().map(|name| self.translate(name)).collect();
        let mut actual = simulated;
        expected.sort();
        actual.sort();
        expected == actual
    }

    fn unify_name(&mut self, recorded: &str, simulated: &str) -> bool {
        match self.simulated.get(recorded) {
            Some(known) => known == simulated,
            // Addresses come back when their owner is gone; ids never do.
            None if !is_address(recorded) && self.simulated.values().any(|known| known == simulated) => {
                recorded == "TOKEN-OTHER"
            }
            None => {
                self.bind(recorded, simulated);
                true
            }
        }
    }
}

fn is_address(name: &str) -> bool {
    name.parse::<std::net::IpAddr>().is_ok()
}
