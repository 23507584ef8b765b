//! Where controllers and provider meet: one file for each controller.

pub(crate) mod assembly;
mod context;
pub(crate) mod lacks;
pub(crate) mod nodes;
pub(crate) mod options;
mod program_options;
pub(crate) mod route;
pub(crate) mod service;

use futures::future::BoxFuture;
use openstack_ccm_controllers::ControllerError;
use tokio_util::sync::CancellationToken;

pub use program_options::ProgramOptions;

/// A controller, put together and not yet running.
pub(crate) struct Controller {
    /// Its canonical name.
    pub(crate) name: &'static str,
    /// Ends when it has listed what it works on.
    pub(crate) listed: BoxFuture<'static, ()>,
    /// Works until the token is cancelled.
    pub(crate) work: Box<dyn FnOnce(CancellationToken) -> ControllerRun + Send>,
}

/// The work of a controller, and how it ended.
pub(crate) type ControllerRun = BoxFuture<'static, Result<(), ControllerError>>;
