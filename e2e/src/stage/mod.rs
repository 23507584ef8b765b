//! Everything that scenarios share: one cloud, and one cluster after another on the same machines.

pub(crate) mod beside;
pub(crate) mod evidence;
mod spent;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::artifacts::Artifacts;
use crate::artifacts::release::Release;
use crate::backends::ingress::IngressPods;
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::audit::Audit;
use crate::kubernetes::objects::add_node;
use crate::kubernetes::proxy::{Mode, Proxy};
use crate::kubernetes::server::{ControlPlane, ServerKind};
use crate::machine::progress::set_present;
use crate::machine::say;
use crate::machine::wait::is_late;
use crate::machine::world;
use crate::network::{self, NODES, Networks, NodePlace};
use crate::openstack::api::OpenStack;
use crate::openstack::{Folders, Services, database};
use crate::programs::controller::{Controller, Launch};
use crate::programs::kept;
use crate::report::cost::Cost;
use crate::report::{Finding, Verdict};
use crate::stage::spent::Spent;

/// The cloud of a run.
pub(crate) struct Cloud {
    /// Its files.
    pub folders: Folders,
    /// Its processes.
    pub services: Services,
    /// The user of the cluster.
    pub user: OpenStack,
    /// Ids of networks.
    pub networks: Networks,
    /// The address of the router, which clients inside have when they ask for a floating IP.
    pub router_address: String,
}

/// A cluster on the machines of the cloud.
pub(crate) struct Cluster {
    /// etcd and API server.
    pub plane: ControlPlane,
    /// The service proxies, by node.
    pub proxies: Vec<(NodePlace, Proxy)>,
    /// How the controller is started.
    pub launch: Launch,
    /// The controller, while it runs.
    pub controller: Option<Controller>,
}

/// Keeps a finding.
type Record = Box<dyn Fn(&Finding) -> Result<()>>;

/// Everything of a run.
pub(crate) struct Stage {
    /// Programs.
    pub artifacts: Artifacts,
    pub cloud: Cloud,
    /// nginx in the pods.
    pub ingress: IngressPods,
    /// The cluster of the present group of scenarios.
    pub cluster: Option<Cluster>,
    /// The private `/etc/hosts`.
    pub hosts: PathBuf,
    folder: PathBuf,
    program: PathBuf,
    /// Where findings go.
    record: Option<Record>,
    /// What the other cases of a scenario are left out for.
    spent: Spent,
}

impl Stage {
    /// Starts the cloud, the network and the ingress pods.
    pub(crate) fn build(
        folder: &Path,
        artifacts: Artifacts,
        program: PathBuf,
        release: Release,
    ) -> Result<Self> {
        let folders = Folders {
            state: folder.join("openstack"),
            environment: artifacts.openstack(release)?,
            drivers: artifacts.drivers(release)?,
            release,
        };
        folders.prepare()?;
        let hosts = folder.join("hosts");
        world::own_hosts_file(&hosts)?;
        database::restore(&folders, &artifacts)?;
        let services = Services::start(&folders)?;
        let user = OpenStack::log_in("demo")?;
        let networks = Networks::find(&user)?;
        network::build(&user, &networks)?;
        let router_address = router_address(&user)?;
        let ingress = IngressPods::start(&folder.join("ingress"))?;
        Ok(Self {
            artifacts,
            cloud: Cloud { folders, services, user, networks, router_address },
            ingress,
            cluster: None,
            hosts,
            folder: folder.to_owned(),
            program,
            record: None,
            spent: Spent::default(),
        })
    }

    /// The program under test.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The folder of this world.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is seen from now on belongs to this group. A world may have waited for it for longer than a token lives.
    pub(crate) fn begin(&mut self, record: impl Fn(&Finding) -> Result<()> + 'static) -> Result<()> {
        self.record = Some(Box::new(record));
        self.spent = Spent::default();
        kept::count_anew();
        self.cloud.user = OpenStack::log_in("demo")?;
        Ok(())
    }

    /// Starts a fresh cluster of two nodes; the one before is ended.
    pub(crate) fn start_cluster(&mut self, name: &str, kind: ServerKind, mode: Mode) -> Result<()> {
        self.start_cluster_without_nodes(name, kind)?;
        for place in [NODES[0], NODES[1]] {
            self.join(place, kind, mode)?;
        }
        Ok(())
    }

    /// Starts a fresh cluster that nobody has joined; the one before is ended.
    pub(crate) fn start_cluster_without_nodes(&mut self, name: &str, kind: ServerKind) -> Result<()> {
        self.end_cluster()?;
        let folder = self.folder.join(name.replace(' ', "-"));
        let plane = ControlPlane::start(&folder, &self.artifacts, kind)?;
        self.take_over(plane)
    }

    /// The same with an audit log of the API server.
    pub(crate) fn start_audited_cluster(&mut self, name: &str, kind: ServerKind) -> Result<Audit> {
        self.end_cluster()?;
        let (plane, audit) = ControlPlane::start_audited(&self.folder.join(name), &self.artifacts, kind)?;
        self.take_over(plane)?;
        Ok(audit)
    }

    fn take_over(&mut self, plane: ControlPlane) -> Result<()> {
        let launch = Launch::prepare(&plane, &self.cloud.networks, &self.program)?;
        self.cluster = Some(Cluster { plane, proxies: Vec::new(), launch, controller: None });
        Ok(())
    }

    /// Adds a node with a kubelet and a kube-proxy of one version.
    pub(crate) fn join(&mut self, place: NodePlace, kind: ServerKind, mode: Mode) -> Result<()> {
        add_node(&self.api()?, place, kind)?;
        self.start_proxy(place, kind, mode)
    }

    /// Starts the kube-proxy of a node that has joined.
    pub(crate) fn start_proxy(&mut self, place: NodePlace, kind: ServerKind, mode: Mode) -> Result<()> {
        let artifacts = self.artifacts.clone();
        let cluster = self.cluster()?;
        let proxy = Proxy::start(&cluster.plane, &artifacts, place, kind, mode)?;
        cluster.proxies.push((place, proxy));
        Ok(())
    }

    /// Ends the kube-proxy of a node and removes its rules.
    pub(crate) fn end_proxy(&mut self, place: NodePlace) -> Result<()> {
        let proxies = &mut self.cluster()?.proxies;
        if let Some(index) = proxies.iter().position(|(known, _)| *known == place) {
            proxies.remove(index).1.stop()?;
        }
        Ok(())
    }

    /// Ends the kube-proxy of a node as a crash does: its rules stay.
    pub(crate) fn kill_proxy(&mut self, place: NodePlace) -> Result<()> {
        let proxies = &mut self.cluster()?.proxies;
        if let Some(index) = proxies.iter().position(|(known, _)| *known == place) {
            proxies.remove(index).1.die()?;
        }
        Ok(())
    }

    /// Replaces all kube-proxies.
    pub(crate) fn replace_proxies(&mut self, kind: ServerKind, mode: Mode) -> Result<()> {
        let places: Vec<NodePlace> = self.cluster()?.proxies.iter().map(|(place, _)| *place).collect();
        for place in places {
            self.end_proxy(place)?;
            self.join(place, kind, mode)?;
            crate::kubernetes::objects::set_kubelet(&self.cluster()?.plane.api, place, kind)?;
        }
        Ok(())
    }

    /// Ends the present cluster, if there is one.
    pub(crate) fn end_cluster(&mut self) -> Result<()> {
        let Some(cluster) = self.cluster.take() else { return Ok(()) };
        if let Some(controller) = cluster.controller {
            controller.stop()?;
        }
        for (_, proxy) in cluster.proxies {
            proxy.stop()?;
        }
        Ok(())
    }

    /// The present cluster.
    pub(crate) fn cluster(&mut self) -> Result<&mut Cluster> {
        self.cluster.as_mut().context("no cluster runs")
    }

    /// The API of the present cluster as its administrator.
    pub(crate) fn api(&self) -> Result<Kubernetes> {
        Ok(self.cluster.as_ref().context("no cluster runs")?.plane.api.clone())
    }

    /// Starts the controller, unless it was started before and no scenario has ended it.
    pub(crate) fn start_controller(&mut self) -> Result<()> {
        let cluster = self.cluster()?;
        if cluster.controller.is_none() {
            cluster.controller = Some(cluster.launch.start()?);
        }
        Ok(())
    }

    /// Stops the controller, if it runs.
    pub(crate) fn stop_controller(&mut self) -> Result<()> {
        self.cluster()?.controller.take().map_or(Ok(()), Controller::stop)
    }

    /// Looks at one case of a scenario, and records what was seen. A failure leaves evidence and does not end the run.
    pub(crate) fn check(
        &mut self,
        scenario: &str,
        case: &str,
        look: impl FnOnce(&mut Self) -> Result<String>,
    ) -> bool {
        self.measure(scenario, case, |stage| Ok((look(stage)?, None)))
    }

    /// A scenario by its name, with the release of OpenStack where it is not the newest.
    fn named(&self, scenario: &str) -> String {
        let release = self.cloud.folders.release;
        if release == Release::NEWEST {
            scenario.to_owned()
        } else {
            format!("{scenario}, {}", release.name())
        }
    }

    /// The same for a change whose calls may be counted.
    pub(crate) fn measure(
        &mut self,
        scenario: &str,
        case: &str,
        look: impl FnOnce(&mut Self) -> Result<(String, Option<Cost>)>,
    ) -> bool {
        if let Some(reason) = self.spent.reason(scenario, case) {
            let finding = Finding { verdict: Verdict::LeftOut, ..Finding::failure(scenario, case, &reason) };
            return self.keep(finding);
        }
        let (began, restarts) = (Instant::now(), kept::restarts());
        set_present(Some(&format!("{scenario} | {case}")));
        let seen = look(self).and_then(|(text, cost)| {
            if cost.is_some() && kept::restarts() != restarts {
                kept::ran_through()?;
            }
            Ok((text, cost))
        });
        set_present(Some(scenario));
        let verdict = if seen.is_ok() { Verdict::Passed } else { Verdict::Failed };
        let (mut text, cost) = seen.unwrap_or_else(|error| {
            if is_late(&error) {
                self.spent.note(scenario, case);
            }
            let name = format!("{scenario}-{case}").replace([' ', ':', '/'], "-");
            let evidence = evidence::keep(self, &self.folder.join("failures").join(name));
            (format!("{error:#}; evidence: {evidence}"), None)
        });
        if kept::restarts() != restarts {
            text = format!("{text}; {}", kept::STARTED_AGAIN);
        }
        let (scenario, case) = (scenario.to_owned(), case.to_owned());
        self.keep(Finding { scenario, case, seen: text, verdict, took: began.elapsed(), cost })
    }

    /// Says what was found, and records it. Returns whether it is what was expected.
    fn keep(&self, finding: Finding) -> bool {
        let finding = Finding { scenario: self.named(&finding.scenario), ..finding };
        say(&finding.line());
        if let Some(record) = &self.record
            && let Err(error) = record(&finding)
        {
            // Without its findings a group counts as failed.
            say(&format!("the finding is lost: {error:#}"));
        }
        finding.verdict == Verdict::Passed
    }
}

fn router_address(cloud: &OpenStack) -> Result<String> {
    let routers = cloud.list("network", "/v2.0/routers?name=cluster", "routers")?;
    let Some(router) = routers.first() else { bail!("there is no router") };
    let address = router["external_gateway_info"]["external_fixed_ips"][0]["ip_address"].as_str();
    Ok(address.context("the router has no external address")?.to_owned())
}
