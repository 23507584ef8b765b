//! Flags of upstream cloud-controller-managers that have no effect in this program. They are accepted with one
//! warning that says why, so that the arguments of an existing Deployment keep working.

use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// The form of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `--flag` or `--flag=BOOL`.
    Switch,
    /// `--flag=VALUE`, may be repeated.
    Value,
}

use Form::{Switch, Value};

/// A flag without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedFlag {
    /// Name, without dashes.
    pub name: &'static str,
    /// The form of the flag.
    pub form: Form,
    /// The value that asks for what this program does in any case; it needs no warning.
    pub fulfilled: Option<&'static str>,
    /// Why the flag has no effect.
    pub reason: &'static str,
}

const fn flag(
    name: &'static str,
    form: Form,
    fulfilled: Option<&'static str>,
    reason: &'static str,
) -> AcceptedFlag {
    AcceptedFlag { name, form, fulfilled, reason }
}

const NO_WEBHOOKS: &str = "this program has no webhooks";
const NO_BUFFER: &str = "log records are written to standard error at once";
const NO_IPAM: &str = "kube-controller-manager assigns ranges of pod addresses to nodes";
const HTTP_1: &str = "the endpoints speak HTTP/1.1 only";
const TOKENS_ONLY: &str =
    "callers of the endpoints authenticate only with bearer tokens, which the API server checks";
const ONE_CERTIFICATE: &str = "the endpoints have one certificate, that of --tls-cert-file";
const NO_PROFILER: &str = "this program has no profiler";

/// Names and forms, as in k8s.io/cloud-provider 0.36.
pub const FLAGS: &[AcceptedFlag] = &[
    flag("allocate-node-cidrs", Switch, Some("false"), NO_IPAM),
    flag("allow-untagged-cloud", Switch, None, "every cloud object names its cluster"),
    flag("authentication-skip-lookup", Switch, Some("true"), TOKENS_ONLY),
    flag("authentication-tolerate-lookup-failure", Switch, Some("true"), TOKENS_ONLY),
    flag("cidr-allocator-type", Value, None, NO_IPAM),
    flag("client-ca-file", Value, Some(""), TOKENS_ONLY),
    flag("contention-profiling", Switch, Some("false"), NO_PROFILER),
    flag(
        "controller-start-interval",
        Value,
        Some("0s"),
        "controllers start together: they share their caches",
    ),
    flag("disable-http2-serving", Switch, Some("true"), HTTP_1),
    flag("external-cloud-volume-plugin", Value, Some(""), "volumes are the task of CSI drivers"),
    flag("http2-max-streams-per-connection", Value, Some("0"), HTTP_1),
    flag(
        "kube-api-content-type",
        Value,
        Some("application/json"),
        "requests to the API server are always JSON, because objects are changed by JSON patches",
    ),
    flag("log-flush-frequency", Value, None, NO_BUFFER),
    flag("log-json-info-buffer-size", Value, Some("0"), NO_BUFFER),
    flag("log-json-split-stream", Switch, Some("false"), NO_BUFFER),
    flag("log-text-info-buffer-size", Value, Some("0"), NO_BUFFER),
    flag("log-text-split-stream", Switch, Some("false"), NO_BUFFER),
    flag(
        "min-resync-period",
        Value,
        None,
        "caches follow the API server without re-reading; load balancers are compared with the cloud every 30 minutes",
    ),
    flag("node-sync-period", Value, None, "upstream does not use it either"),
    flag("permit-address-sharing", Switch, None, "the port can always be bound again after a restart"),
    flag("profiling", Switch, Some("false"), NO_PROFILER),
    flag("requestheader-allowed-names", Value, Some(""), TOKENS_ONLY),
    flag("requestheader-client-ca-file", Value, Some(""), TOKENS_ONLY),
    flag("requestheader-extra-headers-prefix", Value, Some(""), TOKENS_ONLY),
    flag("requestheader-group-headers", Value, Some(""), TOKENS_ONLY),
    flag("requestheader-uid-headers", Value, Some(""), TOKENS_ONLY),
    flag("requestheader-username-headers", Value, Some(""), TOKENS_ONLY),
    flag("tls-sni-cert-key", Value, Some(""), ONE_CERTIFICATE),
    flag(
        "vmodule",
        Value,
        Some(""),
        "it names source files of other programs; RUST_LOG sets levels by module",
    ),
    flag("webhook-bind-address", Value, None, NO_WEBHOOKS),
    flag("webhook-cert-dir", Value, Some(""), NO_WEBHOOKS),
    flag("webhook-disable-http2-serving", Switch, None, NO_WEBHOOKS),
    flag("webhook-secure-port", Value, None, NO_WEBHOOKS),
    flag("webhook-tls-cert-file", Value, Some(""), NO_WEBHOOKS),
    flag("webhook-tls-cipher-suites", Value, None, NO_WEBHOOKS),
    flag("webhook-tls-curve-preferences", Value, Some(""), NO_WEBHOOKS),
    flag("webhook-tls-min-version", Value, None, NO_WEBHOOKS),
    flag("webhook-tls-private-key-file", Value, Some(""), NO_WEBHOOKS),
    flag("webhook-tls-sni-cert-key", Value, Some(""), NO_WEBHOOKS),
    flag("webhooks", Value, Some(""), NO_WEBHOOKS),
];

/// The given flags without effect, with their last values.
#[derive(Clone, Debug, Default)]
pub struct AcceptedFlags {
    given: Vec<(&'static AcceptedFlag, String)>,
}

impl AcceptedFlags {
    /// Lists the given flags that ask for something that does not happen.
    pub fn unfulfilled(&self) -> impl Iterator<Item = &'static AcceptedFlag> {
        let unfulfilled = self.given.iter().filter(|(flag, value)| flag.fulfilled != Some(value.as_str()));
        unfulfilled.map(|(flag, _)| *flag)
    }

    /// Returns the value of a given flag.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(flag, _)| flag.name == name).map(|(_, value)| value.as_str())
    }
}

impl FromArgMatches for AcceptedFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let value = |flag: &AcceptedFlag| matches.get_many::<String>(flag.name)?.next_back().cloned();
        let given = FLAGS.iter().filter_map(|flag| Some((flag, value(flag)?))).collect();
        Ok(Self { given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for AcceptedFlags {
    fn augment_args(command: Command) -> Command {
        FLAGS.iter().fold(command, |command, flag| {
            let argument =
                Arg::new(flag.name).long(flag.name).hide(true).action(ArgAction::Append).value_name("VALUE");
            command.arg(match flag.form {
                Switch => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
                Value => argument.num_args(1).allow_hyphen_values(true),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
