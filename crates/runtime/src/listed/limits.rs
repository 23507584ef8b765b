//! Limits on what is kept of an object: bytes of texts, entries of lists.

/// Bytes kept of all annotations of an object, and of all its labels; annotations may have 256 KiB.
pub(super) const MAX_SIZE: usize = 32 << 10;
/// Maximum bytes of one annotation value, and of all keys that are only reported. About 800 CIDRs.
pub const MAX_VALUES_SIZE: usize = 16 << 10;
/// Owners, and finalizers besides ours. With as many finalizers, the object is read whole before its list is written.
pub const MAX_METADATA_ENTRIES: usize = 64;
/// Ports that a Service may have here. One more is kept to detect an excess.
pub const MAX_PORTS: usize = 1000;
/// Source ranges of a Service, likewise.
pub const MAX_SOURCE_RANGES: usize = 5000;
/// Addresses in `externalIPs` of a Service.
pub(super) const MAX_EXTERNAL_IPS: usize = 16;
/// Entries of lists with one entry per family.
pub(super) const MAX_FAMILIES: usize = 8;
/// Entries of lists that are short in any cluster: conditions, addresses of a node.
pub(super) const MAX_SHORT_LIST: usize = 100;
/// Entries of lists that grow with a cluster: taints, images (a kubelet reports 50 by default), addresses in a status.
pub(super) const MAX_LONG_LIST: usize = 1000;
/// Names of an image. A kubelet reports 5.
pub(super) const MAX_IMAGE_NAMES: usize = 20;
