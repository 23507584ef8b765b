//! What changes may cost: the one table of calls to Octavia, for the tests, the benchmark and the end-to-end scenarios.
//!
//! Bursts, changes of nodes and restarts cost at most half of what they cost with OCCM, everything else at most the same. PROXY protocol is switched
//! without a gap, which OCCM does not do, and may cost a third more.

/// So many internal Services with PROXY protocol and two ports are created at once.
pub(crate) const CREATE: &str = "create";
/// So many of them go at once.
pub(crate) const DELETE: &str = "delete";
/// A node joins so many pools, until it is confirmed that all have it.
pub(crate) const NODE_ADDED: &str = "node added, pools";
/// So many of the Services get a port.
pub(crate) const PORT_ADDED: &str = "port added, Services";
/// So many of them, with three ports, cease to use PROXY protocol.
pub(crate) const PROXY_OFF: &str = "PROXY protocol off, three ports, Services";
/// With so many Services, none of which changed.
pub(crate) const RESTART: &str = "restart, Services";

/// The calls to Octavia that changes may cost, reads included, until nothing is left to do.
#[rustfmt::skip]
const MOST: [(&str, usize, usize); 14] = [
    // change, how many; at most    // with OCCM, as measured
    (CREATE, 1, 15),                // 15
    (CREATE, 5, 35),
    (CREATE, 15, 105),              // 210
    (CREATE, 30, 210),              // 420
    (NODE_ADDED, 13, 36),           // 72
    (NODE_ADDED, 30, 93),
    (NODE_ADDED, 60, 187),          // 374
    (PORT_ADDED, 1, 18),            // 18
    (PROXY_OFF, 1, 46),             // 35
    // One more than the guide: older names are asked for, too.
    (DELETE, 1, 7),                 // 6
    (DELETE, 6, 32),                // 32
    (DELETE, 15, 44),
    (DELETE, 30, 87),               // 175
    (RESTART, 6, 23),               // 46
];

/// What a change may cost; absent where the table does not say.
pub(crate) fn most(change: &str, count: usize) -> Option<usize> {
    MOST.iter().find(|row| (row.0, row.1) == (change, count)).map(|row| row.2)
}
