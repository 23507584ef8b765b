//! A second cluster in the same project of the cloud, with a name, an identity and a node of its own.

use anyhow::Result;

use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::add_node;
use crate::kubernetes::proxy::{Mode, Proxy};
use crate::kubernetes::server::{ControlPlane, ServerKind};
use crate::network::NodePlace;
use crate::programs::controller::{Controller, Launch};
use crate::stage::Stage;

/// Its `--cluster-name`.
pub(crate) const NAME: &str = "copy";
/// Where its controller answers about health and metrics.
const PORT: u16 = 10259;

/// A cluster that runs.
pub(crate) struct ClusterBeside {
    plane: ControlPlane,
    proxy: Proxy,
    launch: Launch,
    controller: Option<Controller>,
}

impl ClusterBeside {
    /// Starts it with one node, which must not be one of the cluster that the stage has.
    pub(crate) fn start(stage: &Stage, kind: ServerKind, place: NodePlace) -> Result<Self> {
        let plane = ControlPlane::start_beside(&stage.folder().join("beside"), &stage.artifacts, kind)?;
        add_node(&plane.api, place, kind)?;
        let proxy = Proxy::start(&plane, &stage.artifacts, place, kind, Mode::Iptables)?;
        let mut launch = Launch::prepare(&plane, &stage.cloud.networks, stage.program())?;
        (launch.cluster_name, launch.port) = (NAME, PORT);
        let controller = Some(launch.start()?);
        Ok(Self { plane, proxy, launch, controller })
    }

    /// The API as its administrator.
    pub(crate) fn api(&self) -> Kubernetes {
        self.plane.api.clone()
    }

    /// Ends the controller and starts another, which is returned.
    pub(crate) fn restart_controller(&mut self) -> Result<&Controller> {
        self.controller.take().map_or(Ok(()), Controller::stop)?;
        Ok(self.controller.insert(self.launch.start()?))
    }

    pub(crate) fn end(self) -> Result<()> {
        self.controller.map_or(Ok(()), Controller::stop)?;
        self.proxy.stop()
    }
}
