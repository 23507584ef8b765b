//! Which controllers run over a provider, and what they need of it.

pub(crate) mod missing_parts;
pub(crate) mod options;

pub use options::ProgramOptions;
