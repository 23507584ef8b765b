//! `--feature-gates`: name=true|false, comma separated.

use std::str::FromStr;

use super::value;

/// The gate of KEP-1860, `ipMode` in Service status.
pub const LOAD_BALANCER_IP_MODE: &str = "LoadBalancerIPMode";

/// The gates given. Platforms hand one list to all components, so that a gate of another one is no error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    /// `LoadBalancerIPMode`, where it was given: replaces the detection of the cluster's support.
    pub load_balancer_ip_mode: Option<bool>,
    /// Names of gates that were given and have no effect, each once.
    pub without_effect: Vec<String>,
}

impl FeatureGates {
    /// The gates of several flags together; where two name one gate the later decides.
    pub fn merged(flags: &[Self]) -> Self {
        flags.iter().fold(Self::default(), |mut merged, next| {
            merged.load_balancer_ip_mode = next.load_balancer_ip_mode.or(merged.load_balancer_ip_mode);
            next.without_effect.iter().for_each(|name| merged.add_without_effect(name));
            merged
        })
    }

    fn add_without_effect(&mut self, name: &str) {
        if !self.without_effect.iter().any(|known| known == name) {
            self.without_effect.push(name.to_owned());
        }
    }

    /// What whoever wrote the list should know, if anything.
    pub fn warning(&self) -> Option<String> {
        let names = (!self.without_effect.is_empty()).then(|| self.without_effect.join(", "))?;
        let mut warning = format!(
            "--feature-gates: these gates are accepted for compatibility and have no effect here: {names}"
        );
        if let Some(on) = self.load_balancer_ip_mode {
            warning.push_str(&format!(
                ". {LOAD_BALANCER_IP_MODE}={on} in the same list disables the detection of whether the cluster honours ipMode; remove it \
                 to enable the detection"
            ));
        }
        Some(warning)
    }
}

impl FromStr for FeatureGates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut gates = Self::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("{pair:?} has no value; write {pair}=true or {pair}=false"))?;
            let name = gate_name(name.trim())?;
            let value =
                value::boolean(value.trim()).map_err(|problem| format!("value of gate {name}: {problem}"))?;
            match name {
                LOAD_BALANCER_IP_MODE => gates.load_balancer_ip_mode = Some(value),
                misspelt if is_nearly_ours(misspelt) => {
                    return Err(format!("unknown gate {misspelt:?}; write {LOAD_BALANCER_IP_MODE}={value}"));
                }
                other => gates.add_without_effect(other),
            }
        }
        Ok(gates)
    }
}

/// The name without the component that newer Kubernetes versions write before it, as in `kube:Name`.
fn gate_name(text: &str) -> Result<&str, String> {
    let name = text.rsplit_once(':').map_or(text, |(_, name)| name);
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if name.is_empty() || !name.chars().all(is_word) {
        return Err(format!("{text:?} is not the name of a gate; write Name=true or Name=false"));
    }
    Ok(name)
}

/// Whether somebody meant the gate of this program and mistyped it.
fn is_nearly_ours(name: &str) -> bool {
    let plain = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
    strsim::osa_distance(&plain(name), &plain(LOAD_BALANCER_IP_MODE)) <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(flags: &[&str]) -> FeatureGates {
        let flags: Vec<FeatureGates> = flags.iter().map(|text| text.parse().unwrap()).collect();
        FeatureGates::merged(&flags)
    }

    #[test]
    fn the_gate_has_three_states() {
        let gate = |text: &str| FeatureGates::from_str(text).map(|gates| gates.load_balancer_ip_mode);
        assert_eq!(gate(""), Ok(None));
        assert_eq!(gate("LoadBalancerIPMode=true"), Ok(Some(true)));
        assert_eq!(gate("CloudControllerManagerWebhook=true, LoadBalancerIPMode=False"), Ok(Some(false)));
        assert_eq!(gate("kube:LoadBalancerIPMode=true"), Ok(Some(true)));
        let flags = ["LoadBalancerIPMode=true", "LoadBalancerIPMode=false", ""];
        assert_eq!(merged(&flags).load_balancer_ip_mode, Some(false));
    }

    #[test]
    fn wrong_gates_name_the_fix() {
        let error = |text: &str| FeatureGates::from_str(text).unwrap_err();
        assert!(error("LoadBalancerIPMode").contains("=true"));
        assert!(error("LoadBalancerIPMode=maybe").contains("maybe"));
        assert!(error("WatchListClient=maybe").contains("WatchListClient"));
        assert!(error("=true").contains("Name=true"));
        assert!(error("Watch List=true").contains("Watch List"));
    }

    #[test]
    fn a_misspelling_of_our_gate_is_an_error() {
        let misspelt = [
            "LoadBalancerIpMode",
            "load-balancer-ip-mode",
            "LOAD_BALANCER_IP_MODE",
            "LoadBalancerIPModes",
            "LoadBalancerIPMod",
            "LoadBalancerIPNode",
            "LoadBlaancerIPMode",
        ];
        for name in misspelt {
            let error = FeatureGates::from_str(&format!("AllAlpha=true,{name}=false")).unwrap_err();
            assert!(error.contains(name) && error.contains("LoadBalancerIPMode=false"), "{error}");
        }
    }

    /// Platforms hand one list of gates to every component.
    #[test]
    fn gates_of_other_components_are_named_in_one_warning() {
        let gates =
            merged(&["APIServerIdentity=true,WatchListClient=false", "WatchListClient=true,Newest=true"]);
        let warning = gates.warning().unwrap();
        assert!(warning.ends_with("no effect here: APIServerIdentity, WatchListClient, Newest"), "{warning}");
    }

    #[test]
    fn our_gate_in_a_list_for_all_components_switches_the_detection_off_and_the_warning_says_so() {
        let warning = merged(&["APIServerIdentity=true,LoadBalancerIPMode=true"]).warning().unwrap();
        assert!(
            warning.contains("LoadBalancerIPMode=true in the same list disables the detection"),
            "{warning}"
        );
        assert_eq!(merged(&["LoadBalancerIPMode=true"]).warning(), None, "whoever writes it alone means it");
    }
}
