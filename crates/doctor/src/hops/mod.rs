//! The judgements, a file for each hop.
//!
//! | module | hop |
//! | --- | --- |
//! | `look` | none: what several of them need |
//! | `name` | 1: what a name of the Service resolves to in the cluster |
//! | `status` | 2: what is published |
//! | `node` | 3: what the service proxies make of it |
//! | `way` | 4: policies, source ranges, and dials |
//! | `load_balancer` | 5: statuses, and what the controller would change or refuse |
//! | `header` | 6: the PROXY protocol of the pools |
//! | `member` | 7: the nodes as members |
//! | `node_port` | 8: endpoints |
//! | `application` | 9: whether the application expects the header |

mod application;
mod header;
mod load_balancer;
mod look;
mod member;
mod name;
mod node;
mod node_port;
mod status;
mod way;

use crate::facts::{ClusterFacts, DialResult, ServiceFacts};
use crate::finding::Check;
use crate::hop::Hop;
use crate::report::{HopReport, Report};
use look::Look;

/// Follows a packet to a Service.
pub fn walk(cluster: &ClusterFacts, facts: &ServiceFacts) -> Report {
    let look = Look::new(cluster, facts);
    let judge = |hop: Hop| -> Vec<Check> {
        match hop {
            Hop::Name => name::judge(&look),
            Hop::Status => status::judge(&look),
            Hop::Node => node::judge(&look),
            Hop::Way => way::judge(&look),
            Hop::LoadBalancer => load_balancer::judge(&look),
            Hop::Header => header::judge(&look),
            Hop::Member => member::judge(&look),
            Hop::NodePort => node_port::judge(&look),
            Hop::Backend => application::judge(&look),
        }
    };
    let dials = facts.dials.as_deref().unwrap_or_default();
    Report {
        subject: look.key(),
        destinations: look.destinations(),
        short_circuit: look.short_circuit(),
        answered: !dials.is_empty()
            && dials.iter().all(|dial| matches!(dial.result, DialResult::Answered(_))),
        hops: Hop::ALL.map(|hop| HopReport { hop, checks: judge(hop) }).into(),
    }
}
