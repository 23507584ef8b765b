//! The Service that is examined: the PROXY protocol, ingress-nginx by its objects, a controller that is stopped so that it mends
//! nothing.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::machine::wait::until;
use crate::network::ask::from_namespace;
use crate::network::{NODES, NodePlace};
use crate::openstack::tree::Tree;
use crate::programs::terminal::Terminal;
use crate::scenario::fallback::{SUFFIX, add_name, published_by_name};
use crate::scenario::plan::operator;
use crate::scenario::steps::{
    self, Client, Reach, at_rest, client_outside, clients_inside, published_through,
};
use crate::stage::Stage;

pub(super) const SERVICE: &str = "examined";
pub(super) const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// The ConfigMap of its ingress controller.
pub(super) const SETTINGS: &str = "/api/v1/namespaces/default/configmaps/examined";
pub(super) const COREFILE: &str = "/api/v1/namespaces/kube-system/configmaps/coredns";
/// Longest time until service proxies, HAProxy or security groups follow.
const FOLLOWS: Duration = Duration::from_secs(20);

/// Whether packets from a pod, from a node and from outside arrive.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ends {
    /// All do.
    Arrive,
    /// None does.
    End,
    /// Only those from outside do.
    EndInside,
    /// Those of pods do not; nobody asked for the others.
    EndForPods,
    /// Nobody knows where to go.
    Nowhere,
    /// Those of pods on the second node do not.
    EndOnSecondNode,
    /// All do here, and `doctor` may say that they need not, because of this.
    ArriveHere(&'static str),
    /// Nobody asks, because of this.
    NotAsked(&'static str),
}

impl Ends {
    /// Whether requests of one client arrive; absent where nobody asks.
    fn arrives(self, client: &Asker) -> Option<bool> {
        match self {
            Self::Arrive | Self::ArriveHere(_) => Some(true),
            Self::End | Self::Nowhere => Some(false),
            Self::EndInside => Some(client.from == "outside"),
            Self::EndForPods => (client.from == "pods").then_some(false),
            Self::EndOnSecondNode => {
                Some(client.from != "pods" || client.client.namespace != NODES[1].client())
            }
            Self::NotAsked(_) => None,
        }
    }

    /// What `doctor` may say of clients of one kind. That they arrive takes a packet.
    fn verdicts(self, from: &str) -> &'static [&'static str] {
        const REACH: &[&str] = &["arrives", "no-fault-found"];
        const MAY: &[&str] = &["arrives", "no-fault-found", "may-end"];
        match self {
            Self::Arrive => REACH,
            Self::End | Self::Nowhere => &["ends"],
            Self::EndInside if from == "outside" => REACH,
            Self::EndInside => &["ends"],
            Self::EndForPods if from == "pods" => &["ends"],
            Self::EndOnSecondNode if from == "pods" => &["may-end"],
            Self::EndForPods | Self::EndOnSecondNode | Self::ArriveHere(_) | Self::NotAsked(_) => MAY,
        }
    }

    /// Fails where `doctor` says something else.
    pub(super) fn agree_with(self, report: &Value) -> Result<()> {
        let conclusion =
            report["services"][0]["conclusion"].as_array().context("doctor concludes nothing")?;
        for end in conclusion {
            let (from, said) =
                (end["from"].as_str().unwrap_or_default(), end["verdict"].as_str().unwrap_or_default());
            let verdicts = self.verdicts(from);
            ensure!(verdicts.contains(&said), "{from}: requests say {self:?}, doctor says {end}");
        }
        Ok(())
    }
}

/// Somebody who asks, by the name that `doctor` has for such clients.
struct Asker {
    from: &'static str,
    client: Client,
}

/// What `doctor` says.
pub(super) struct Seen {
    pub codes: Vec<String>,
    pub report: Value,
    pub text: String,
}

impl Seen {
    pub(super) fn sentence(&self) -> String {
        self.report["services"][0]["sentence"].as_str().unwrap_or_default().to_owned()
    }
}

#[derive(Clone)]
pub(super) struct Patient {
    pub sketch: ServiceSketch,
    /// The address of the load balancer.
    pub address: String,
    /// What clients ask for: the address, or the name that is published.
    pub host: String,
    pub reach: Reach,
    terminal: Terminal,
}

impl Patient {
    /// Has it served, and stops the controller.
    pub(super) fn prepare(stage: &mut Stage) -> Result<Self> {
        let api = stage.api()?;
        let sketch = create(&api)?;
        stage.start_controller()?;
        let address = published_through(&api, SERVICE)?;
        Self::at_rest(stage, sketch, address.clone(), address)
    }

    /// The same on a cluster that cannot honour `ipMode`.
    pub(super) fn prepare_by_name(stage: &mut Stage) -> Result<Self> {
        let networks = stage.cloud.networks.clone();
        let settings = format!("ingress-hostname-suffix = {SUFFIX}");
        stage.cluster()?.launch.load_balancer_settings(&networks, &settings)?;
        let api = stage.api()?;
        let sketch = create(&api)?;
        stage.start_controller()?;
        let name = published_by_name(stage, SERVICE)?;
        let address = steps::address(&api, SERVICE)?;
        add_name(stage, &name, &address)?;
        Self::at_rest(stage, sketch, address, name)
    }

    fn at_rest(stage: &mut Stage, sketch: ServiceSketch, address: String, host: String) -> Result<Self> {
        at_rest(&stage.cloud.user, SERVICE)?;
        // Without a status report of its amphora nobody knows whether a listener is well.
        until("Octavia has a status report of the listeners", FOLLOWS, || {
            let listeners = Tree::of(&stage.cloud.user, SERVICE)?.listeners;
            let silent = listeners.iter().find(|listener| listener["operating_status"] == "OFFLINE");
            ensure!(silent.is_none(), "{silent:?}");
            Ok(())
        })?;
        stage.stop_controller()?;
        Ok(Self { sketch, address, host, reach: Reach::Internal, terminal: operator(stage)? })
    }

    /// The same, as somebody else sees it.
    pub(super) fn seen_from(&self, terminal: Terminal) -> Self {
        Self { terminal, ..self.clone() }
    }

    /// Goes to the address that is published now.
    pub(super) fn follow(&mut self, stage: &mut Stage) -> Result<()> {
        self.address = published_through(&stage.api()?, SERVICE)?;
        self.host.clone_from(&self.address);
        Ok(())
    }

    /// A pod on each node, a process on a node, a client outside.
    fn clients(&self, stage: &Stage) -> Vec<Asker> {
        let inside = clients_inside(stage, self.reach).into_iter();
        let named = inside.map(|client| {
            let from = if client.who.starts_with("pod") { "pods" } else { "nodes" };
            Asker { from, client }
        });
        named.chain([Asker { from: "outside", client: client_outside(self.reach) }]).collect()
    }

    /// Requests show that it is as it is said.
    pub(super) fn requests(&self, stage: &Stage, ends: Ends) -> Result<String> {
        if matches!(ends, Ends::Nowhere) {
            let published = stage.api()?.ingress(SERVICE)?;
            ensure!(published.as_array().is_none_or(Vec::is_empty), "{published}");
            return Ok("the status is empty".into());
        }
        if let Ends::NotAsked(because) = ends {
            return Ok(format!("not asked, because {because}"));
        }
        for asker in self.clients(stage) {
            let Some(arrives) = ends.arrives(&asker) else { continue };
            let Asker { from, client } = asker;
            until(&format!("requests from {} agree with {ends:?}", client.who), FOLLOWS, || {
                // Outside there are other name servers.
                let host = if from == "outside" { &self.address } else { &self.host };
                let outcome = from_namespace(&client.namespace, host, 80)?;
                let seen = outcome.client() == Some(&client.address);
                ensure!(seen == arrives, "{}: {outcome}", client.who);
                Ok(())
            })?;
        }
        Ok(match ends {
            Ends::ArriveHere(because) => format!("requests: Arrive, though they need not, because {because}"),
            ends => format!("requests: {ends:?}"),
        })
    }

    /// What `doctor` says: the codes of its errors, or of its warnings where there is no error.
    pub(super) fn examine(&self, more: &[&str]) -> Result<Seen> {
        let name = format!("default/{SERVICE}");
        let flags = ["doctor", &name, "--cluster-name=e2e", "--controllers=service", "-o", "json"];
        let report = self.terminal.types(&[&flags[..], more].concat())?.json(&[0, 2, 3])?;
        let checks: Vec<&Value> = report["services"][0]["categories"]
            .as_array()
            .context("no hop")?
            .iter()
            // The controller is stopped, so that it mends nothing.
            .filter(|category| category["hop"] != "controller")
            .flat_map(|category| category["checks"].as_array().into_iter().flatten())
            .collect();
        let of = |result: &str| {
            let found = checks.iter().filter(|check| check["result"] == result);
            let mut codes: Vec<String> =
                found.filter_map(|check| check["code"].as_str().map(str::to_owned)).collect();
            codes.sort_unstable();
            codes.dedup();
            codes
        };
        let mut codes = of("error");
        if codes.is_empty() {
            codes = of("warning");
        }
        let odd = checks.iter().filter(|check| {
            !["success", "skipped", "info"].contains(&check["result"].as_str().unwrap_or_default())
        });
        let text = odd.map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Ok(Seen { codes, report, text })
    }

    /// The ways of packets as a mermaid diagram.
    pub(super) fn diagram(&self) -> Result<String> {
        let name = format!("default/{SERVICE}");
        let flags = ["doctor", &name, "--cluster-name=e2e", "--controllers=service", "-o", "mermaid"];
        self.terminal.types(&flags)?.with_code(&[0, 2, 3])
    }

    /// Requests arrive from everywhere, and `doctor` finds nothing and leaves nothing out.
    pub(super) fn is_well(&self, stage: &Stage, more: &[&str]) -> Result<String> {
        self.well(stage, more).map(|(_, text)| text)
    }

    /// [`Patient::is_well`], where pods dial: what `doctor` says of pods it has seen.
    pub(super) fn is_seen_well(&self, stage: &Stage, more: &[&str]) -> Result<String> {
        let (seen, text) = self.well(stage, more)?;
        let conclusion = seen.report["services"][0]["conclusion"].as_array().cloned().unwrap_or_default();
        let of_pods = conclusion.iter().find(|end| end["from"] == "pods");
        let verdict = &of_pods.context("doctor concludes nothing for pods")?["verdict"];
        ensure!(verdict == "arrives", "pods dialled, and doctor says {verdict}");
        Ok(text)
    }

    fn well(&self, stage: &Stage, more: &[&str]) -> Result<(Seen, String)> {
        let truth = self.requests(stage, Ends::Arrive)?;
        let seen = self.examine(more)?;
        ensure!(seen.codes.is_empty(), "{:?}: {}", seen.codes, seen.text);
        ensure!(seen.report["counts"]["notKnown"] == 0, "{}", seen.text);
        Ends::Arrive.agree_with(&seen.report)?;
        let text = format!("{truth}; doctor: {}", seen.sentence());
        Ok((seen, text))
    }
}

/// The Service with pods by which the ingress controller and its settings are found. nginx itself runs without them.
fn create(api: &Kubernetes) -> Result<ServiceSketch> {
    let sketch = ServiceSketch::proxy(SERVICE, "v2", true);
    sketch.create(api, &PLACES)?;
    api.patch(&Kubernetes::service_path(SERVICE), &json!({"spec": {"selector": {"app": SERVICE}}}))?;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    api.ensure("/api/v1/namespaces/default/serviceaccounts", &account)?;
    for place in PLACES {
        add_pod(api, place)?;
    }
    for (namespace, name, key, value) in [
        ("default", SERVICE, "use-proxy-protocol", "true"),
        ("kube-system", "coredns", "Corefile", ".:53 {\n    kubernetes cluster.local\n}\n"),
    ] {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: value}});
        api.ensure(&format!("/api/v1/namespaces/{namespace}/configmaps"), &map)?;
    }
    Ok(sketch)
}

/// A pod of the ingress controller on a node, with the status that a kubelet writes. It listens at both ports of the pods here, and
/// reads the header at both or at neither.
fn add_pod(api: &Kubernetes, place: NodePlace) -> Result<()> {
    let (name, address) = (format!("{SERVICE}-{}", place.name()), place.ingress_address());
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": SERVICE}},
        "spec": {"nodeName": place.name(), "containers": [{
            "name": "controller", "image": "registry.example.org/ingress-nginx/controller:v1.15.1",
            "args": [
                "/nginx-ingress-controller", "--configmap=$(POD_NAMESPACE)/examined", "--http-port=80", "--https-port=81",
            ],
        }]},
    });
    api.ensure("/api/v1/namespaces/default/pods", &pod)?;
    let status = json!({
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    let path = format!("/api/v1/namespaces/default/pods/{name}/status");
    api.patch(&path, &json!({"status": status})).map(drop)
}
