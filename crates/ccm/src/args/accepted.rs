//! Flags of upstream cloud-controller-managers that have no effect in this program. They are accepted with one
//! warning, so that the arguments of an existing Deployment keep working.

use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// What follows a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// `--flag` or `--flag=BOOL`.
    Optional,
    /// `--flag=VALUE`, may be repeated.
    Required,
}

use Value::{Optional, Required};

/// Names and forms, as in k8s.io/cloud-provider 0.36.
const FLAGS: &[(&str, Value)] = &[
    ("allocate-node-cidrs", Optional),
    ("allow-untagged-cloud", Optional),
    ("authentication-kubeconfig", Required),
    ("authentication-skip-lookup", Optional),
    ("authentication-token-webhook-cache-ttl", Required),
    ("authentication-tolerate-lookup-failure", Optional),
    ("authorization-kubeconfig", Required),
    ("authorization-webhook-cache-authorized-ttl", Required),
    ("authorization-webhook-cache-unauthorized-ttl", Required),
    ("cert-dir", Required),
    ("cidr-allocator-type", Required),
    ("client-ca-file", Required),
    ("cluster-cidr", Required),
    ("concurrent-node-status-updates", Required),
    ("concurrent-node-syncs", Required),
    ("configure-cloud-routes", Optional),
    ("contention-profiling", Optional),
    ("controller-start-interval", Required),
    ("disable-http2-serving", Optional),
    ("enable-leader-migration", Optional),
    ("external-cloud-volume-plugin", Required),
    ("http2-max-streams-per-connection", Required),
    ("kube-api-burst", Required),
    ("kube-api-content-type", Required),
    ("kube-api-qps", Required),
    ("leader-migration-config", Required),
    ("log-flush-frequency", Required),
    ("log-json-info-buffer-size", Required),
    ("log-json-split-stream", Optional),
    ("log-text-info-buffer-size", Required),
    ("log-text-split-stream", Optional),
    ("min-resync-period", Required),
    ("node-monitor-period", Required),
    ("node-status-update-frequency", Required),
    ("node-sync-period", Required),
    ("permit-address-sharing", Optional),
    ("permit-port-sharing", Optional),
    ("profiling", Optional),
    ("requestheader-allowed-names", Required),
    ("requestheader-client-ca-file", Required),
    ("requestheader-extra-headers-prefix", Required),
    ("requestheader-group-headers", Required),
    ("requestheader-uid-headers", Required),
    ("requestheader-username-headers", Required),
    ("route-reconciliation-period", Required),
    ("tls-cipher-suites", Required),
    ("tls-curve-preferences", Required),
    ("tls-min-version", Required),
    ("tls-sni-cert-key", Required),
    ("use-service-account-credentials", Optional),
    ("vmodule", Required),
    ("webhook-bind-address", Required),
    ("webhook-cert-dir", Required),
    ("webhook-disable-http2-serving", Optional),
    ("webhook-secure-port", Required),
    ("webhooks", Required),
];

/// The flags of this kind that were given.
#[derive(Clone, Debug, Default)]
pub struct AcceptedFlags {
    given: Vec<&'static str>,
}

impl AcceptedFlags {
    /// Their names, without dashes.
    pub fn given(&self) -> &[&'static str] {
        &self.given
    }
}

impl FromArgMatches for AcceptedFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = FLAGS.iter().map(|(name, _)| *name).filter(|name| matches.contains_id(name)).collect();
        Ok(Self { given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for AcceptedFlags {
    fn augment_args(command: Command) -> Command {
        FLAGS.iter().fold(command, |command, (name, value)| {
            let flag = Arg::new(*name).long(*name).hide(true).action(ArgAction::Append).value_name("VALUE");
            command.arg(match value {
                Optional => flag.num_args(0..=1).require_equals(true).default_missing_value("true"),
                Required => flag.num_args(1).allow_hyphen_values(true),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
