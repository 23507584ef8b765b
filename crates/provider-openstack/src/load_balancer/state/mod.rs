//! What is remembered of Services and load balancers between two reconciliations. It is lost with the process, which costs reads
//! and time.
//! Answers that several reconciliations share are in `read` and `resolve`.
//!
//! | of | module | holds |
//! | --- | --- | --- |
//! | a Service | `record` | what was read, and what was tried |
//! | | `attempts` | attempts, and what must pause or is not tried again |
//! | | `creations` | how many load balancers are created at once, and for which Services |
//! | | `replacements` | which Service's load balancer in ERROR is replaced |
//! | | `identity_tags` | which Service's load balancer gets its tags next |
//! | a load balancer | `locks` | one reconciliation at a time |
//! | | `watchlist` | which load balancers Octavia works on, and which Services wait for that |

pub(crate) mod attempts;
pub(crate) mod creations;
pub(crate) mod identity_tags;
pub(crate) mod locks;
pub(crate) mod record;
pub(crate) mod replacements;
pub(crate) mod watchlist;
