//! The checks, in a file for each hop.
//!
//! | module | hop |
//! | --- | --- |
//! | `look` | none: what several hops need of the Service, what is published, and the cloud |
//! | `behind` | none: what several hops need of the application |
//! | `controller` | 0: the controller that serves the Service |
//! | `name` | 1: what a name of the Service resolves to |
//! | `status` | 2: what is published |
//! | `node` | 3: how the service proxies treat the published entries |
//! | `way` | 4: policies of clients, source ranges, and dials |
//! | `load_balancer` | 5: which objects exist and are enabled, and what the controller would change or refuse |
//! | `header` | 6: the PROXY protocol of the pools |
//! | `member` | 7: the nodes as members |
//! | `node_port` | 8: endpoints, and policies of the application |
//! | `application` | 9: whether the application expects the header |

mod application;
mod behind;
mod controller;
mod header;
mod load_balancer;
mod look;
mod member;
mod name;
mod node;
mod node_port;
mod status;
mod way;

use crate::facts::{ClusterFacts, ServiceFacts};
use crate::hop::Hop;
use crate::question::HopReport;
use crate::report::Report;
use look::Look;

/// Follows a packet to a Service.
pub fn walk(cluster: &ClusterFacts, facts: &ServiceFacts) -> Report {
    let look = Look::new(cluster, facts);
    let judge = |hop: Hop| -> HopReport {
        match hop {
            Hop::Controller => controller::judge(&look).report(),
            Hop::Name => name::judge(&look).report(),
            Hop::Status => status::judge(&look).report(),
            Hop::Node => node::judge(&look).report(),
            Hop::Way => way::judge(&look).report(),
            Hop::LoadBalancer => {
                load_balancer::judge(&look).unwrap_or_else(load_balancer::Questions::all).report()
            }
            Hop::Header => header::judge(&look).unwrap_or_else(header::Questions::all).report(),
            Hop::Member => member::judge(&look).unwrap_or_else(member::Questions::all).report(),
            Hop::NodePort => node_port::judge(&look).report(),
            Hop::Backend => application::judge(&look).report(),
        }
    };
    let flows = look.flows();
    Report {
        subject: look.key(),
        destinations: look.destinations(),
        around: look.around.clone(),
        bypassed: look.bypassed.clone(),
        hostnames: look.hostnames(),
        answered: look.answered(),
        not_from: flows.iter().map(|flow| (flow.clone(), way::kept_from(&look, flow).others)).collect(),
        only_from: flows.iter().map(|flow| (flow.clone(), way::admitted_to(&look, flow))).collect(),
        flows,
        hops: Hop::ALL.map(judge).into(),
    }
}
