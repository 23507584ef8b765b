//! Whether this machine can run containers.

use std::process::Command;

use anyhow::{Context as _, Result};

use super::cgroup::Cgroups;
use crate::machine::process::run;

/// Mounts an overlay in a mount namespace of its own, as containerd does for the file system of a container.
const OVERLAY: &str = "mount -t tmpfs none /mnt && mkdir /mnt/lower /mnt/upper /mnt/work /mnt/all && \
     mount -t overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/all";

/// Fails, with what is missing, where containers cannot run.
pub(crate) fn possible() -> Result<()> {
    run(Command::new("unshare").args(["--mount", "bash", "-c", OVERLAY]))
        .context("containers cannot run here: no overlay can be mounted")?;
    let probe = Cgroups::make(&format!("openstack-ccm-e2e-probe-{}", std::process::id()))
        .context("containers cannot run here: no cgroup can be made")?;
    probe.remove();
    Ok(())
}
