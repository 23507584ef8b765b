//! What user and operator write to choose how an address is published.

/// The names of the settings, for texts that tell somebody what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingNames {
    /// Annotation of a Service that chooses the mode: `auto`, `proxy` or `vip`.
    pub ip_mode_annotation: &'static str,
    /// Annotation of a Service that names the hostname to publish.
    pub hostname_annotation: &'static str,
    /// Annotation of a Service that, set to `true`, adds the cluster's own addresses to the source ranges; absent where there
    /// is none.
    pub cluster_sources_annotation: Option<&'static str>,
    /// The operator's choice of the mode and where it is written, in words that follow `remove`.
    pub ip_mode_setting: &'static str,
    /// The operator's suffix for hostnames and where it is written, in words that follow `set`.
    pub hostname_suffix_setting: &'static str,
}
