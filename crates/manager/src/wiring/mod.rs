//! Which controllers run over a provider, and what they need from the provider.

pub mod missing_parts;
pub mod options;

pub use options::ProgramOptions;
