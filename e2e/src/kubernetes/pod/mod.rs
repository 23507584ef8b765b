//! Pods of the controller, run as a kubelet and a container runtime run them: with the arguments, variables, volumes and
//! the security context of the Pod that the cluster made from the manifests. A seccomp profile needs a container runtime
//! and is left out.

mod sandbox;
mod volumes;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::blocking::Client;
use serde_json::{Value, json};

use super::api::Kubernetes;
use crate::machine::process::Daemon;
use crate::machine::wait::until;
use crate::network::{API_SERVER, NodePlace};
use sandbox::Sandbox;

/// Longest time until a pod is ready; a kubelet waits longer.
const START: Duration = Duration::from_secs(90);

/// A pod of one container on the network of its host.
pub(crate) struct Pod {
    pub name: String,
    /// Where it runs.
    pub place: NodePlace,
    api: Kubernetes,
    object: Value,
    program: PathBuf,
    folder: PathBuf,
    logs: PathBuf,
    process: Option<Daemon>,
}

/// What differs from a cluster's hosts. The hosts of all pods are one machine here, so that each pod gets the loopback
/// address of its node (127.0.0.2 for node2), where the manifests name 127.0.0.1. Nothing else is changed.
fn on_this_machine(text: &str, place: NodePlace) -> String {
    text.replace("127.0.0.1", &format!("127.0.0.{}", place.0))
}

impl Pod {
    /// A pod that the scheduler has put on a node. `program` stands for its image.
    pub(crate) fn new(
        api: &Kubernetes,
        object: Value,
        place: NodePlace,
        program: &Path,
        folder: &Path,
    ) -> Self {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Self {
            place,
            api: api.clone(),
            object,
            program: program.to_owned(),
            folder: folder.join("pods").join(&name),
            logs: folder.to_owned(),
            name,
            process: None,
        }
    }

    fn container(&self) -> &Value {
        &self.object["spec"]["containers"][0]
    }

    /// The command line, with the variables of the container in place.
    pub(crate) fn command_line(&self) -> Vec<String> {
        let words = ["command", "args"].iter().flat_map(|key| self.container()[*key].as_array());
        let variables = self.variables();
        words
            .flatten()
            .filter_map(Value::as_str)
            .map(|word| {
                let word = variables
                    .iter()
                    .fold(word.to_owned(), |word, (name, value)| word.replace(&format!("$({name})"), value));
                on_this_machine(&word, self.place)
            })
            .collect()
    }

    /// Those of the container, and where the API server is.
    fn variables(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let own = self.container()["env"].as_array().into_iter().flatten();
        let mut all: Vec<_> = own.map(|one| (text(&one["name"]), text(&one["value"]))).collect();
        all.push(("KUBERNETES_SERVICE_HOST".into(), API_SERVER.into()));
        all.push(("KUBERNETES_SERVICE_PORT".into(), "6443".into()));
        all
    }

    /// Starts the process and does not wait. Each has a token of its own, so that the audit log distinguishes them.
    pub(crate) fn start(&mut self) -> Result<()> {
        let mounts = volumes::fill(&self.api, &self.object, &self.folder)?;
        let sandbox = Sandbox {
            program: &self.program,
            root: self.folder.join("root"),
            mounts,
            command: self.command_line(),
            variables: self.variables(),
        };
        let mut command = sandbox.command(&self.object["spec"])?;
        let log = format!("openstack-ccm-{}", self.place.name());
        self.process = Some(Daemon::start(&log, &self.logs, &mut command)?);
        Ok(())
    }

    /// Waits until the readiness probe passes, and says so in the status of the pod.
    pub(crate) fn ready(&mut self) -> Result<()> {
        let url = self.url(&self.container()["readinessProbe"]["httpGet"])?;
        let client =
            Client::builder().danger_accept_invalid_certs(true).timeout(Duration::from_secs(10)).build()?;
        until(&format!("{} is ready", self.name), START, || {
            self.process.as_mut().context("it was not started")?.check()?;
            let status = client.get(&url).send()?.status();
            ensure!(status.is_success(), "{url}: {status}");
            Ok(())
        })?;
        self.report()
    }

    fn url(&self, request: &Value) -> Result<String> {
        let text = |key: &str| request[key].as_str().with_context(|| format!("the probe has no {key}"));
        let url = format!("{}://{}:{}{}", text("scheme")?, text("host")?, request["port"], text("path")?);
        Ok(on_this_machine(&url.to_lowercase(), self.place))
    }

    /// Where its endpoints are, without a path.
    pub(crate) fn endpoints(&self) -> Result<String> {
        let url = self.url(&self.container()["livenessProbe"]["httpGet"])?;
        Ok(url.trim_end_matches("/livez").to_owned())
    }

    /// The status that a kubelet writes when the probe passes.
    fn report(&self) -> Result<()> {
        let path = format!("/api/v1/namespaces/kube-system/pods/{}/status", self.name);
        let condition = json!([{"type": "Ready", "status": "True"}]);
        let status = json!({"status": {"phase": "Running", "conditions": condition}});
        self.api.patch(&path, &status).map(drop)
    }

    /// SIGTERM, without waiting.
    pub(crate) fn terminate(&self) -> Result<()> {
        self.process.as_ref().context("it does not run")?.terminate();
        Ok(())
    }

    /// Ends it as a kubelet does, and waits.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), Daemon::stop)
    }

    /// Ends it as a broken machine does.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), Daemon::kill)
    }

    /// The process has what the manifests promise and no more.
    pub(crate) fn is_confined(&self) -> Result<String> {
        let process = self.process.as_ref().context("it does not run")?.id();
        let wanted = &self.object["spec"]["securityContext"]["runAsUser"];
        sandbox::look(process, wanted.as_u64().context("the manifests name no user")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::NODES;

    #[test]
    fn only_the_loopback_address_differs() {
        assert_eq!(on_this_machine("--bind-address=127.0.0.1", NODES[0]), "--bind-address=127.0.0.1");
        assert_eq!(on_this_machine("--bind-address=127.0.0.1", NODES[1]), "--bind-address=127.0.0.2");
        assert_eq!(on_this_machine("--v=2", NODES[1]), "--v=2");
    }
}
