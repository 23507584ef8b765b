//! Query parameters.

use std::time::Duration;

use crate::failure::{Failure, FieldError, Subject};
use crate::go_text;
use crate::kinds::Resource;
use crate::selector::Selectors;
use crate::verbs::{FieldValidation, ListOptions, VersionMatch, WriteOptions, parse_resource_version};
use crate::version::ApiVersion;
use crate::watch::WatchOptions;

/// The parameters of one request.
pub(crate) struct Parameters<'a> {
    query: &'a [(String, String)],
}

/// The subject of refusals of the options of a request.
fn options_subject(kind: &'static str) -> Subject<'static> {
    Subject { group: "meta.k8s.io", kind, name: "" }
}

impl<'a> Parameters<'a> {
    pub(crate) fn new(query: &'a [(String, String)]) -> Self {
        Self { query }
    }

    fn find(&self, name: &str) -> Option<&'a str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter; empty where there is none.
    pub(crate) fn get(&self, name: &str) -> &'a str {
        self.find(name).unwrap_or_default()
    }

    /// Whether a flag is on: `1`, `true`, or the bare name.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        matches!(self.find(name), Some("1" | "true" | ""))
    }

    fn selectors(&self, resource: &Resource, version: ApiVersion) -> Result<Selectors, Failure> {
        Selectors::parse(resource, version, self.get("labelSelector"), self.get("fieldSelector"))
    }

    pub(crate) fn list(&self, resource: &Resource, version: ApiVersion) -> Result<ListOptions, Failure> {
        let version_match = match self.get("resourceVersionMatch") {
            "Exact" => VersionMatch::Exact,
            _ => VersionMatch::NotOlderThan,
        };
        Ok(ListOptions {
            selectors: self.selectors(resource, version)?,
            resource_version: self.get("resourceVersion").to_owned(),
            version_match,
            limit: self.get("limit").parse().unwrap_or_default(),
            continue_token: self.get("continue").to_owned(),
        })
    }

    pub(crate) fn watch(&self, resource: &Resource, version: ApiVersion) -> Result<WatchOptions, Failure> {
        let send_initial_events = self.is_set("sendInitialEvents");
        if send_initial_events {
            check_initial_events(self.get("resourceVersionMatch"), version)?;
        }
        let after = parse_resource_version(self.get("resourceVersion")).map_err(Failure::internal)?;
        Ok(WatchOptions {
            selectors: self.selectors(resource, version)?,
            after,
            send_initial_events,
            bookmarks: self.is_set("allowWatchBookmarks"),
            duration: self
                .get("timeoutSeconds")
                .parse()
                .ok()
                .filter(|time| *time > 0)
                .map(Duration::from_secs),
            as_table: None,
        })
    }

    /// Options of a write; `kind` names them in refusals, the user agent is the writer unless it names itself.
    pub(crate) fn write(
        &self,
        kind: &'static str,
        user_agent: &str,
        version: ApiVersion,
    ) -> Result<WriteOptions, Failure> {
        let field_validation = match self.get("fieldValidation") {
            "Strict" => FieldValidation::Strict,
            "Warn" | "" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            other => {
                let value = go_text::quote(other);
                let problem =
                    FieldError::not_supported("fieldValidation", &value, &["Ignore", "Strict", "Warn"]);
                return Err(Failure::invalid(options_subject(kind), &[problem]));
            }
        };
        let manager = match self.get("fieldManager") {
            "" if user_agent.is_empty() => "unknown",
            "" => user_agent.split('/').next().unwrap_or_default(),
            name => name,
        };
        Ok(WriteOptions {
            dry_run: is_dry_run(self, kind, version)?,
            field_validation,
            manager: manager.to_owned(),
        })
    }
}

/// Whether a request is a dry run; `All` is the only way to ask for one.
pub(crate) fn is_dry_run(
    parameters: &Parameters<'_>,
    kind: &'static str,
    version: ApiVersion,
) -> Result<bool, Failure> {
    match parameters.find("dryRun") {
        None | Some("") => Ok(false),
        Some("All") => Ok(true),
        Some(other) => {
            let value = if version.writes_lists_as_json() {
                format!("[{}]", go_text::quote(other))
            } else {
                go_text::string_list(&[other])
            };
            let problem = FieldError::not_supported("dryRun", &value, &["All"]);
            Err(Failure::invalid(options_subject(kind), &[problem]))
        }
    }
}

fn check_initial_events(version_match: &str, version: ApiVersion) -> Result<(), Failure> {
    let problem = if !version.has_watch_list() {
        let detail = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        FieldError::forbidden("sendInitialEvents", detail)
    } else if version_match != "NotOlderThan" {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        FieldError::forbidden("resourceVersionMatch", detail)
    } else {
        return Ok(());
    };
    Err(Failure::invalid(options_subject("ListOptions"), &[problem]))
}
