//! The two statuses of every Octavia object.

use crate::open_enum::open_enum;

open_enum! {
    /// Whether Octavia's own work on the object is done.
    ProvisioningStatus {
        /// The last change succeeded.
        Active = "ACTIVE",
        /// The last change failed.
        Error = "ERROR",
        /// Being made.
        PendingCreate = "PENDING_CREATE",
        /// Being changed, or a sibling is.
        PendingUpdate = "PENDING_UPDATE",
        /// Being deleted.
        PendingDelete = "PENDING_DELETE",
        /// Gone; seen for a moment only.
        Deleted = "DELETED",
    }
}

impl ProvisioningStatus {
    /// Whether Octavia is at work, so that every write is refused.
    pub fn is_pending(&self) -> bool {
        match self {
            Self::PendingCreate | Self::PendingUpdate | Self::PendingDelete => true,
            Self::Active | Self::Error | Self::Deleted => false,
            Self::Other(text) => text.starts_with("PENDING"),
        }
    }
}

open_enum! {
    /// What health checks say.
    OperatingStatus {
        /// Works.
        Online = "ONLINE",
        /// Does not work, or not yet.
        Offline = "OFFLINE",
        /// Some members fail.
        Degraded = "DEGRADED",
        /// All members fail.
        Error = "ERROR",
        /// Takes no new connections, because its weight is 0.
        Draining = "DRAINING",
        /// No health monitor looks.
        NoMonitor = "NO_MONITOR",
    }
}
