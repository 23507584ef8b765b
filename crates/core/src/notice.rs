//! Notices to the user of a Service. They become Kubernetes Events.

/// Type of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Information.
    Normal,
    /// A request of the user is not fulfilled, or needs attention.
    Warning,
}

/// One message for the user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notice {
    /// Type of the Event.
    pub severity: Severity,
    /// Reason of the Event: a stable CamelCase word.
    pub reason: &'static str,
    /// The message; for wrong input it names key, value and the fix. Never holds a secret.
    pub message: String,
}

impl Notice {
    /// Creates a notice of type Normal.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Normal, reason, message: message.into() }
    }

    /// Creates a notice of type Warning.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, reason, message: message.into() }
    }
}
