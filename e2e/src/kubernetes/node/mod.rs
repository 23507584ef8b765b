//! A real node: a machine of a world with a containerd and a kubelet of its own.
//!
//! Both run in the network namespace of the machine and in the mounts of the world. Pods get addresses in the upper half of the
//! machine's range; the lower half is that of the pods that the world always has.

mod containerd;
mod kubelet;
pub(crate) mod scheduler;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::registry::Registry;
use super::server::ControlPlane;
use crate::artifacts::Artifacts;
use crate::machine::cgroup::Cgroups;
use crate::machine::process::{Daemon, run_line};
use crate::network::{NodePlace, unplug};

/// A machine that runs containers. They end with this value.
pub(crate) struct Node {
    pub place: NodePlace,
    /// The folder of the cluster, with the logs.
    cluster: PathBuf,
    folder: PathBuf,
    program: PathBuf,
    pki: super::pki::Pki,
    cgroups: Cgroups,
    containerd: Option<Daemon>,
    kubelet: Option<Daemon>,
}

impl Node {
    /// Starts both, and does not wait for the node.
    ///
    /// # Errors
    /// A file cannot be written, or a program does not start.
    pub(crate) fn start(
        plane: &ControlPlane,
        artifacts: &Artifacts,
        place: NodePlace,
        registry: &Registry,
    ) -> Result<Self> {
        let folder = plane.folder().join(format!("machine-{}", place.name()));
        std::fs::create_dir_all(&folder)?;
        own_folders_of_the_host()?;
        let program = artifacts.of_node("kubelet")?;
        let cgroups = Cgroups::make(&cgroup_name(&folder))?;
        // By which the API server asks the kubelet for logs.
        run_line(&format!("ip route replace {} via 10.0.0.1{}", place.address(), place.0))?;
        let mut node = Self {
            place,
            cluster: plane.folder().to_owned(),
            folder,
            program,
            pki: plane.pki.clone(),
            cgroups,
            containerd: None,
            kubelet: None,
        };
        node.containerd = Some(containerd::start(&node.folder, plane.folder(), place, registry)?);
        node.start_kubelet()?;
        Ok(node)
    }

    /// Starts the kubelet, at first or after it was killed.
    ///
    /// # Errors
    /// A file cannot be written, or the program does not start.
    pub(crate) fn start_kubelet(&mut self) -> Result<()> {
        let configuration = kubelet::configure(&self.folder, &self.cgroups.name, &self.pki)?;
        let mut command = kubelet::command(&self.program, self.place, &configuration, &self.folder);
        command.arg("--kubeconfig").arg(self.pki.file(&format!("{}.kubeconfig", self.place.name())));
        let name = format!("kubelet-{}", self.place.name());
        self.kubelet = Some(Daemon::start(&name, &self.cluster, &mut command)?);
        Ok(())
    }

    /// Kills the kubelet alone: containers go on.
    ///
    /// # Errors
    /// It cannot be killed.
    pub(crate) fn kill_kubelet(&mut self) -> Result<()> {
        self.kubelet.take().map_or(Ok(()), Daemon::kill)
    }

    /// The machine loses its power: every process of it ends at once, and its links are down.
    ///
    /// # Errors
    /// A link cannot be taken down.
    pub(crate) fn lose_power(&mut self) -> Result<()> {
        unplug(self.place)?;
        self.end_processes();
        Ok(())
    }

    fn end_processes(&mut self) {
        self.kubelet = None;
        self.containerd = None;
        containerd::kill_shims(&self.folder);
        // What the shims had started; again, because a container may have been about to start.
        for _ in 0..2 {
            self.cgroups.kill();
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }

    /// The processes of its containers that run a program.
    pub(crate) fn processes(&self, program: &str) -> Vec<i32> {
        let runs = |process: &i32| {
            let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            command.split(|byte| *byte == 0).next() == Some(program.as_bytes())
        };
        self.cgroups.processes().into_iter().filter(runs).collect()
    }

    /// What the kernel lets the only process of a program do; fails where that is more than nothing.
    ///
    /// # Errors
    /// There is no such process, or it has more.
    pub(crate) fn confinement(&self, program: &str) -> Result<String> {
        let processes = self.processes(program);
        let [process] = processes.as_slice() else { bail!("{program} has {} processes", processes.len()) };
        let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.and_then(|text| text.split_whitespace().next()).unwrap_or_default().to_owned()
        };
        for (key, wanted) in
            [("Uid", "1001"), ("CapEff", "0000000000000000"), ("NoNewPrivs", "1"), ("Seccomp", "2")]
        {
            ensure!(value(key) == wanted, "{key} is {:?}", value(key));
        }
        let mounts = std::fs::read_to_string(format!("/proc/{process}/mountinfo"))?;
        // Place, then options.
        let root = mounts.lines().filter_map(|line| Some((line.split(' ').nth(4)?, line.split(' ').nth(5)?)));
        let options = root.into_iter().find(|(place, _)| *place == "/").map(|(_, options)| options);
        let options = options.context("it has no root")?;
        ensure!(options.split(',').any(|option| option == "ro"), "its root is {options}");
        Ok(format!("{}: uid 1001, no capability, seccomp, root {options}", self.place.name()))
    }

    /// The logs of its containers.
    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("pods")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end_processes();
        self.cgroups.remove();
    }
}

/// Two runs share the hierarchies of the kernel, so that the name tells their folders apart.
fn cgroup_name(folder: &Path) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    folder.hash(&mut hasher);
    format!("openstack-ccm-e2e-{:016x}", hasher.finish())
}

/// Kubelet and plug-ins write to folders whose names are fixed: the world gets its own in place of those of the host.
fn own_folders_of_the_host() -> Result<()> {
    for folder in ["/var/log/containers", "/var/lib/cni"] {
        std::fs::create_dir_all(folder)?;
        if run_line(&format!("mountpoint -q {folder}")).is_err() {
            run_line(&format!("mount -t tmpfs tmpfs {folder}"))?;
        }
    }
    Ok(())
}
