//! What a load balancer is made of, wanted and seen, in the same comparable types.
//!
//! Everything that is compared is normalised here once: addresses and networks are parsed, lists without an order are
//! sets or sorted, absent and default values are one thing. Identity and status, which are never compared, stand
//! beside the comparable part and not in it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`listener`], [`pool`], [`member`], [`monitor`] | the comparable part of each kind of child |
//! | [`header`], [`limit`] | the headers that a listener inserts, and its numbers, as tables |
//! | [`tls`] | which attributes of TLS were set here |
//! | [`former`] | what a listener was that makes way for one of another protocol |
//! | [`tree`] | what is wanted, whole |
//! | [`floating_ip`] | which floating IP is wanted |
//! | [`address_choice`] | by which of its addresses a node becomes a member |
//! | [`facts`] | what had to be looked up before the tree could be built |
//! | [`observed`] | what is there |
//! | [`step`] | the steps of a plan, one call to the cloud each, and what became of them |
//! | [`digest`] | what stands for content that is compared and not kept |
//! | [`convert`] | what Octavia and Neutron show, as what is there |

pub(crate) mod address_choice;
pub(crate) mod convert;
pub(crate) mod digest;
pub(crate) mod facts;
pub(crate) mod floating_ip;
pub(crate) mod former;
pub(crate) mod header;
pub(crate) mod limit;
pub(crate) mod listener;
pub(crate) mod member;
pub(crate) mod monitor;
pub(crate) mod observed;
pub(crate) mod pool;
pub(crate) mod recovery;
pub(crate) mod step;
pub(crate) mod tls;
pub(crate) mod tree;

pub(crate) use super::names::Tags;
pub(crate) use facts::{Facts, Features, FloatingIpMarks, OVN, ResolvedVip};
pub(crate) use floating_ip::{FloatingIpGoal, FloatingIpSpec, SubnetChoice};
pub(crate) use former::FormerListener;
pub(crate) use header::InsertedHeader;
pub(crate) use listener::{ListenerAttributes, ListenerKey, ListenerSpec, TlsAttributes};
pub(crate) use member::{Member, MemberKey};
pub(crate) use monitor::{HttpCheck, MonitorAttributes, MonitorSpec};
pub(crate) use observed::{
    Children, Observed, ObservedFloatingIp, ObservedListener, ObservedLoadBalancer, ObservedMember,
    ObservedMonitor, ObservedPool, Ownership,
};
pub(crate) use pool::{Persistence, PoolAttributes, PoolSpec};
pub(crate) use recovery::{Failover, Recovery};
pub(crate) use tree::{
    AdditionalVip, Desired, DesiredListener, DesiredPool, LoadBalancerSpec, Reclaim, ReleaseTerms, Vip,
};
