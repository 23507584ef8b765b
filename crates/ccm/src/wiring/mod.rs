//! Where controllers and provider meet.

pub(crate) mod assembly;
pub(crate) mod lacks;
pub(crate) mod options;

pub use options::ProgramOptions;
