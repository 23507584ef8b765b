//! What a load balancer is made of, wanted and seen, in the same comparable types.
//!
//! Everything that is compared is normalised here once: addresses and networks are parsed, lists without an order are
//! sets or sorted, absent and default values are one thing. Identity and status, which are never compared, stand
//! beside the comparable part and not in it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`listener`], [`pool`], [`member`], [`monitor`] | the comparable part of each kind of child |
//! | [`tls`] | which attributes of TLS were set here |
//! | [`tree`] | what is wanted, whole |
//! | [`floating_ip`] | which floating IP is wanted |
//! | [`facts`] | what had to be looked up before the tree could be built |
//! | [`observed`] | what is there |

mod as_wanted;
pub mod facts;
pub mod floating_ip;
pub mod listener;
pub mod member;
pub mod monitor;
pub mod observed;
pub mod pool;
pub mod recovery;
pub mod tls;
pub mod tree;

pub use super::names::Tags;
