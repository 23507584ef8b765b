//! How much is kept of what may be long: of texts so many bytes, of lists so many entries.

/// Bytes of all annotations of an object, and of all its labels; annotations may have 256 KiB.
pub(super) const MAX_SIZE: usize = 32 << 10;
/// Of these, bytes that values have at most, and the names of those that are only reported. About 800 CIDRs.
pub const MAX_VALUES_SIZE: usize = 16 << 10;
/// Owners, and finalizers of others. Where there are as many finalizers, the object is read whole before its list is written.
pub const MAX_METADATA_ENTRIES: usize = 64;
/// Ports that a Service may have here. One more is kept, so that it shows.
pub const MAX_PORTS: usize = 1000;
/// Source ranges, likewise.
pub const MAX_SOURCE_RANGES: usize = 5000;
/// Entries of what has one for each family.
pub(super) const MAX_FAMILIES: usize = 8;
/// Entries of what has a few in any cluster: conditions, addresses of a node.
pub(super) const MAX_SHORT_LIST: usize = 100;
/// Entries of what grows with a cluster: taints, images (a kubelet shows 50, where it is not told otherwise), addresses in a status.
pub(super) const MAX_LONG_LIST: usize = 1000;
/// Names of an image. A kubelet shows 5.
pub(super) const MAX_IMAGE_NAMES: usize = 20;
