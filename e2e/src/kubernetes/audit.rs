//! The audit log of an API server: who wrote what, in the order in which it was stored.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use serde_json::Value;

/// The user whom the manifests make.
const CONTROLLER: &str = "system:serviceaccount:kube-system:cloud-controller-manager";
/// The user as whom the load balancer controller of another cloud works.
const OWNER: &str = "system:serviceaccount:kube-system:owner";
pub(crate) const LEASE: &str = "cloud-controller-manager";
/// Somebody who looks at a cluster, with a ServiceAccount of that name in kube-system.
pub(crate) const ONLOOKER: &str = "onlooker";
/// Of elections and Services what was written, of the controller and of the onlooker what they did, of the load balancer
/// controller of another cloud what it wrote and what became of it.
const POLICY: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Request
    namespaces: [kube-system]
    verbs: [create, update, patch, delete]
    resources: [{group: coordination.k8s.io, resources: [leases]}]
  - level: Request
    users: ["system:serviceaccount:kube-system:cloud-controller-manager"]
    verbs: [patch]
    resources: [{group: "", resources: [services, services/status]}]
  - level: Metadata
    users:
      - system:serviceaccount:kube-system:cloud-controller-manager
      - system:serviceaccount:kube-system:onlooker
  - level: RequestResponse
    users: ["system:serviceaccount:kube-system:owner"]
    verbs: [update, patch]
    resources: [{group: "", resources: [services/status]}]
  - level: None
"#;

/// The log, which its server writes before it answers.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    log: PathBuf,
}

/// A request that was answered.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The token that it came with: each process has its own. Empty for others than pods.
    pub token: String,
    /// The pod that the token was made for.
    pub pod: String,
    user: String,
    /// Verb and resource, such as `patch services/status web`.
    pub what: String,
    verb: String,
    resource: String,
    name: String,
    status: u64,
    /// Whether the server was only asked what it would do.
    is_question: bool,
    /// When the request arrived.
    pub received: Timestamp,
    /// When it was answered.
    pub answered: Timestamp,
    /// The body, where it is kept.
    pub sent: Value,
    stored: Value,
}

/// A list of addresses that another cloud's controller wrote.
#[derive(Clone, Debug)]
pub(crate) struct Publication {
    pub service: String,
    pub sent: Value,
    /// What the API server made of it.
    pub stored: Value,
}

/// A write of the Lease that succeeded.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// As in [`Entry`].
    pub token: String,
    /// As in [`Entry`].
    pub pod: String,
    /// Whom the record names; empty when it was released.
    pub holder: String,
    /// `leaseTransitions`.
    pub transitions: u64,
    /// `leaseDurationSeconds`.
    pub seconds: u64,
    /// As in [`Entry`].
    pub received: Timestamp,
    /// As in [`Entry`].
    pub answered: Timestamp,
}

impl Audit {
    /// Writes the policy, and returns the flags of the server that go with it.
    pub(crate) fn prepare(folder: &Path) -> Result<(Self, Vec<String>)> {
        let (policy, log) = (folder.join("audit-policy.yaml"), folder.join("audit.log"));
        std::fs::write(&policy, POLICY)?;
        let flags = [
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", log.display()),
            "--audit-log-mode=blocking".to_owned(),
        ];
        Ok((Self { log }, flags.into()))
    }

    /// All requests so far.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        let text = std::fs::read_to_string(&self.log).context("the audit log cannot be read")?;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(entry).collect()
    }

    /// All writes of the Lease so far.
    pub(crate) fn claims(&self) -> Result<Vec<Claim>> {
        Ok(claims(&self.entries()?))
    }

    /// What pods of the controller have written, other than leases, events and questions about callers.
    pub(crate) fn writes(&self) -> Result<Vec<Entry>> {
        Ok(self.entries()?.into_iter().filter(Entry::is_work).collect())
    }

    /// What the onlooker did: nothing but reads, and questions what a write would do.
    pub(crate) fn onlooker_only_looked(&self) -> Result<String> {
        let user = format!("system:serviceaccount:kube-system:{ONLOOKER}");
        let entries: Vec<Entry> = self.entries()?.into_iter().filter(|entry| entry.user == user).collect();
        let looks = ["get", "list", "watch"];
        let other = entries.iter().find(|one| !looks.contains(&one.verb.as_str()) && !one.is_question);
        ensure!(other.is_none(), "{}", other.map_or("", |one| &one.what));
        ensure!(!entries.is_empty(), "the log shows no request of the onlooker");
        let questions = entries.iter().filter(|one| one.is_question).count();
        Ok(format!("{} requests, of which {questions} ask what a write would do", entries.len()))
    }

    /// All addresses that another cloud's controller has published.
    pub(crate) fn publications(&self) -> Result<Vec<Publication>> {
        Ok(self.entries()?.iter().filter_map(Entry::publication).collect())
    }

    /// Every write of a pod lies within the time for which the Lease was its own: nobody else had it in between, and it
    /// had not lapsed.
    pub(crate) fn one_at_a_time(&self) -> Result<String> {
        let entries = self.entries()?;
        let (writes, leaders) = one_at_a_time(&entries)?;
        ensure!(writes > 0, "nobody wrote anything");
        Ok(format!("{writes} writes by {leaders} leaders one after another, each under its own lease"))
    }

    /// No request of the controller was refused for want of a right.
    pub(crate) fn nothing_forbidden(&self) -> Result<String> {
        let entries = self.entries()?;
        let own: Vec<&Entry> = entries.iter().filter(|entry| entry.user == CONTROLLER).collect();
        if let Some(refused) = own.iter().find(|entry| entry.status == 403) {
            bail!("{}: 403", refused.what);
        }
        ensure!(!own.is_empty(), "the log shows no request");
        Ok(format!("{} requests, none forbidden", own.len()))
    }
}

impl Entry {
    fn is_work(&self) -> bool {
        let beside = ["leases", "events", "tokenreviews", "subjectaccessreviews"];
        self.user == CONTROLLER && self.is_stored() && !beside.contains(&self.resource.as_str())
    }

    /// Whether it changed something.
    fn is_stored(&self) -> bool {
        let writes = ["create", "update", "patch", "delete", "deletecollection"];
        let is_write = writes.contains(&self.verb.as_str()) && !self.is_question;
        is_write && (200..300).contains(&self.status)
    }

    /// Other writes of a status are about finalizers.
    fn publication(&self) -> Option<Publication> {
        let list = |object: &Value| object["status"]["loadBalancer"]["ingress"].clone();
        let (sent, stored) = (list(&self.sent), list(&self.stored));
        let publishes = self.user == OWNER && self.is_stored() && sent.is_array();
        publishes.then(|| Publication { service: self.name.clone(), sent, stored })
    }

    fn claim(&self) -> Option<Claim> {
        if self.resource != "leases" || self.name != LEASE || !self.is_stored() {
            return None;
        }
        let spec = &self.sent["spec"];
        Some(Claim {
            token: self.token.clone(),
            pod: self.pod.clone(),
            holder: text(&spec["holderIdentity"]),
            transitions: spec["leaseTransitions"].as_u64().unwrap_or_default(),
            seconds: spec["leaseDurationSeconds"].as_u64().unwrap_or_default(),
            received: self.received,
            answered: self.answered,
        })
    }
}

fn claims(entries: &[Entry]) -> Vec<Claim> {
    let mut claims: Vec<Claim> = entries.iter().filter_map(Entry::claim).collect();
    claims.sort_by_key(|claim| claim.received);
    claims
}

/// How many writes there were, and under how many leaderships.
fn one_at_a_time(entries: &[Entry]) -> Result<(usize, usize)> {
    let claims = claims(entries);
    let mut leaders: Vec<&str> = Vec::new();
    let writes: Vec<&Entry> = entries.iter().filter(|entry| entry.is_work()).collect();
    for write in &writes {
        let before = claims.iter().rfind(|claim| claim.received <= write.received);
        let claim = before.with_context(|| format!("{} by {} without a lease", write.what, write.pod))?;
        let (what, pod) = (&write.what, &write.pod);
        ensure!(
            claim.token == write.token && !claim.holder.is_empty(),
            "{what} by {pod} while the lease named {:?} ({})",
            claim.holder,
            claim.pod
        );
        let age = write.received.duration_since(claim.received);
        let lasts = i64::try_from(claim.seconds)?;
        ensure!(
            age.as_secs() < lasts,
            "{what} by {pod} {age:#} after its last renewal, which lasts {lasts} s"
        );
        if leaders.last() != Some(&claim.holder.as_str()) {
            leaders.push(&claim.holder);
        }
    }
    Ok((writes.len(), leaders.len()))
}

fn entry(line: &str) -> Result<Entry> {
    let event: Value =
        serde_json::from_str(line).with_context(|| format!("no event of an audit log: {line}"))?;
    let (user, object) = (&event["user"], &event["objectRef"]);
    let extra = |key: &str| text(&user["extra"][format!("authentication.kubernetes.io/{key}")][0]);
    let time = |key: &str| -> Result<Timestamp> {
        text(&event[key]).parse().with_context(|| format!("{key} of an audit event: {}", event[key]))
    };
    let (verb, resource, name) = (text(&event["verb"]), text(&object["resource"]), text(&object["name"]));
    let whole = object["subresource"].as_str().map_or(resource.clone(), |part| format!("{resource}/{part}"));
    Ok(Entry {
        token: extra("credential-id"),
        pod: extra("pod-name"),
        user: text(&user["username"]),
        what: format!("{verb} {whole} {name}"),
        verb,
        resource,
        name,
        status: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
        is_question: text(&event["requestURI"]).contains("dryRun=All"),
        received: time("requestReceivedTimestamp")?,
        answered: time("stageTimestamp")?,
        sent: event["requestObject"].clone(),
        stored: event["responseObject"].clone(),
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A request of a process, so many seconds after the beginning.
    fn event(process: &str, seconds: u32, verb: &str, object: &Value, sent: &Value) -> Entry {
        let time = format!("2026-01-01T00:00:{seconds:02}.000001Z");
        let extra = json!({
            "authentication.kubernetes.io/credential-id": [process],
            "authentication.kubernetes.io/pod-name": [format!("pod-{process}")],
        });
        let event = json!({
            "user": {"username": CONTROLLER, "extra": extra}, "verb": verb, "objectRef": object,
            "responseStatus": {"code": 200}, "requestObject": sent,
            "requestReceivedTimestamp": time, "stageTimestamp": time,
        });
        entry(&event.to_string()).unwrap()
    }

    fn holds(process: &str, seconds: u32) -> Entry {
        named(process, seconds, process)
    }

    fn named(process: &str, seconds: u32, holder: &str) -> Entry {
        let sent =
            json!({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 1}});
        event(process, seconds, "update", &json!({"resource": "leases", "name": LEASE}), &sent)
    }

    fn writes(process: &str, seconds: u32) -> Entry {
        let object = json!({"resource": "services", "subresource": "status", "name": "web"});
        event(process, seconds, "patch", &object, &Value::Null)
    }

    #[test]
    fn who_only_looks_at_the_lease_claims_nothing() {
        let look = event("b", 2, "get", &json!({"resource": "leases", "name": LEASE}), &Value::Null);
        assert_eq!(claims(&[holds("a", 1), look]).len(), 1);
    }

    #[test]
    fn a_dry_run_writes_nothing() {
        let line = |path: &str| {
            let event = json!({
                "user": {"username": CONTROLLER}, "verb": "patch", "requestURI": path, "responseStatus": {"code": 200},
                "objectRef": {"resource": "services", "subresource": "status", "name": "web"},
                "requestReceivedTimestamp": "2026-01-01T00:00:00.000001Z", "stageTimestamp": "2026-01-01T00:00:00.000001Z",
            });
            entry(&event.to_string()).unwrap()
        };
        assert!(line("/api/v1/namespaces/default/services/web/status?fieldManager=x").is_work());
        assert!(!line("/api/v1/namespaces/default/services/web/status?dryRun=All&fieldManager=x").is_work());
    }

    #[test]
    fn leaders_may_follow_each_other() {
        let story = [holds("a", 1), writes("a", 2), named("a", 3, ""), holds("b", 4), writes("b", 5)];
        assert_eq!(one_at_a_time(&story).unwrap(), (2, 2));
    }

    #[test]
    fn a_write_outside_of_the_own_lease_is_found() {
        for story in [
            vec![writes("a", 1)],
            vec![holds("a", 1), writes("b", 2)],
            vec![holds("a", 1), named("a", 2, ""), writes("a", 3)],
            vec![holds("a", 1), holds("b", 2), writes("a", 3)],
            vec![holds("a", 1), writes("a", 17)],
        ] {
            assert!(one_at_a_time(&story).is_err(), "{story:#?}");
        }
    }
}
