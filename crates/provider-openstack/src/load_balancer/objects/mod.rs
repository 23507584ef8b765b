//! The parts of a load balancer, desired and observed, in the same comparable types.
//!
//! Everything that is compared is normalised here: addresses and networks are parsed, unordered lists are sets or sorted, absent
//! and default values are equal. Identity and status, which are never compared, are kept outside of the comparable part.
//!
//! | module | holds |
//! | --- | --- |
//! | [`listener`], [`pool`], [`member`], [`monitor`] | the comparable part of each kind of child |
//! | [`header`] | the headers that a listener inserts, as a table |
//! | [`tls`] | which TLS attributes this controller set |
//! | [`former`] | what a listener was that is replaced by one of another protocol |
//! | [`tree`] | the whole desired state |
//! | [`floating_ip`] | the wanted floating IP |
//! | [`address_choice`] | the address with which a node becomes a member |
//! | [`facts`] | what is looked up before the desired tree is built |
//! | [`observed`] | the observed state |
//! | [`step`] | the steps of a plan, one call to the cloud each, and their results |
//! | [`digest`] | digests of content that is compared but not kept |
//! | [`convert`] | converts answers of Octavia and Neutron to the observed state |

pub(crate) mod address_choice;
pub(crate) mod convert;
pub(crate) mod digest;
pub(crate) mod facts;
pub(crate) mod floating_ip;
pub(crate) mod former;
pub(crate) mod header;
pub(crate) mod listener;
pub(crate) mod member;
pub(crate) mod monitor;
pub(crate) mod observed;
pub(crate) mod pool;
pub(crate) mod recovery;
pub(crate) mod step;
pub(crate) mod tls;
pub(crate) mod tree;

pub(crate) use super::annotations::InsertedHeader;
pub(crate) use super::names::Tags;
pub(crate) use facts::{Facts, Features, FloatingIpMarks, OVN, ResolvedVip};
pub(crate) use floating_ip::{FloatingIpGoal, FloatingIpSpec, SubnetChoice};
pub(crate) use former::FormerListener;
pub(crate) use listener::{ListenerKey, ListenerSpec};
pub(crate) use member::{Member, MemberKey};
pub(crate) use monitor::MonitorSpec;
pub(crate) use observed::{
    Children, Observed, ObservedFloatingIp, ObservedListener, ObservedLoadBalancer, ObservedMember,
    ObservedMonitor, ObservedPool, Ownership,
};
pub(crate) use pool::PoolSpec;
pub(crate) use recovery::{Failover, Recovery};
pub(crate) use tree::{
    AdditionalVip, Desired, DesiredListener, DesiredPool, LoadBalancerSpec, Reclaim, ReleaseTerms, Vip,
};
