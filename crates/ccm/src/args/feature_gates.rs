//! `--feature-gates`: name=true|false, comma separated.

use std::str::FromStr;

use super::boolean;

/// The gate of KEP-1860, `ipMode` in Service status.
pub const LOAD_BALANCER_IP_MODE: &str = "LoadBalancerIPMode";

/// Gates of the upstream framework that are accepted and have no effect here.
const WITHOUT_EFFECT: [&str; 9] = [
    "CloudControllerManagerWatchBasedRoutesReconciliation",
    "CloudControllerManagerWebhook",
    "ControllerManagerReleaseLeaderElectionLockOnExit",
    "StableLoadBalancerNodeSet",
    "CloudDualStackNodeIPs",
    "AllAlpha",
    "AllBeta",
    "ContextualLogging",
    "ComponentSLIs",
];

/// The gates given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    /// `LoadBalancerIPMode`, where it was given: replaces the detection of the cluster's support.
    pub load_balancer_ip_mode: Option<bool>,
    /// Names of gates that were given and have no effect.
    pub without_effect: Vec<String>,
}

impl FeatureGates {
    /// The gates of several flags together; where two name one gate the later decides.
    pub fn merged(flags: &[Self]) -> Self {
        flags.iter().fold(Self::default(), |mut merged, next| {
            merged.load_balancer_ip_mode = next.load_balancer_ip_mode.or(merged.load_balancer_ip_mode);
            merged.without_effect.extend(next.without_effect.iter().cloned());
            merged
        })
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
            let value =
                boolean::parse(value.trim()).map_err(|problem| format!("value of gate {name}: {problem}"))?;
            match name.trim() {
                LOAD_BALANCER_IP_MODE => gates.load_balancer_ip_mode = Some(value),
                known if WITHOUT_EFFECT.contains(&known) => gates.without_effect.push(known.to_owned()),
                unknown => {
                    return Err(format!(
                        "unknown gate {unknown:?}; the gate of this program is {LOAD_BALANCER_IP_MODE}"
                    ));
                }
            }
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_has_three_states() {
        let gate = |text: &str| FeatureGates::from_str(text).map(|gates| gates.load_balancer_ip_mode);
        assert_eq!(gate(""), Ok(None));
        assert_eq!(gate("LoadBalancerIPMode=true"), Ok(Some(true)));
        assert_eq!(gate("CloudControllerManagerWebhook=true, LoadBalancerIPMode=False"), Ok(Some(false)));
        let flags =
            ["LoadBalancerIPMode=true", "LoadBalancerIPMode=false", ""].map(|text| text.parse().unwrap());
        assert_eq!(FeatureGates::merged(&flags).load_balancer_ip_mode, Some(false));
    }

    #[test]
    fn wrong_gates_name_the_fix() {
        assert!(FeatureGates::from_str("LoadBalancerIPMode").unwrap_err().contains("=true"));
        assert!(FeatureGates::from_str("LoadBalancerIPMode=maybe").unwrap_err().contains("maybe"));
        assert!(
            FeatureGates::from_str("LoadBalancerIpMode=true").unwrap_err().contains("LoadBalancerIPMode")
        );
    }
}
