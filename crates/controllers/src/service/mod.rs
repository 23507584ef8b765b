//! The service controller: gives Services of type LoadBalancer their load balancers.
//!
//! Each module uses only modules above it.
//!
//! | module | step |
//! | --- | --- |
//! | `intent` | what the object asks for (pure) |
//! | `trim` | what is cached of an object (pure) |
//! | `written` | the patches of a Service, and which annotations are missing (pure) |
//! | `change` | which changes deserve a reconciliation (pure) |
//! | `cause` | why a Service is queued (pure) |
//! | `queue` | which Service is next |
//! | `wait` | how long a Service has waited, and when an Event says on what (pure) |
//! | `cache` | the Services from the watch |
//! | `backends` | the nodes as load balancers see them (pure) |
//! | `judgement` | the judgement over all nodes, published |
//! | `node_verdicts` | notices about nodes that were measured (pure) |
//! | `node_rollout` | how long a change of nodes takes to reach every load balancer |
//! | `kube_proxies` | what kube-proxies report |
//! | `drift` | the report of a repair (pure) |
//! | `event_texts` | the texts of Events (pure) |
//! | `memory` | what is known from earlier reconciliations, and may be lost |
//! | `finalizer` | hold the object before the cloud is touched, let it go after the cloud is empty |
//! | `options` | the settings of an operator |
//! | `context` | the context of the reconciliation of one Service |
//! | `doubt` | whether the watch shows the present state |
//! | `shared_address` | Services on one address agree on its mode |
//! | `publish` | status and annotations, written only where they differ |
//! | `release` | the end of a load balancer |
//! | `sync` | the reconciliation of one Service |
//! | `follow` | watch: keep the cache, queue what deserves a reconciliation |
//! | `node_changes` | the reconciliations after changes of nodes |
//! | `orphans` | the report of load balancers whose Service is gone |
//! | `controller` | the parts put together, and the workers |
//! | `dry_run` | reconciliations that write nothing |

mod backends;
mod cache;
mod cause;
mod change;
mod context;
mod controller;
mod doubt;
mod drift;
mod dry_run;
mod event_texts;
mod finalizer;
mod follow;
mod intent;
mod judgement;
mod kube_proxies;
mod memory;
mod node_changes;
mod node_rollout;
mod node_verdicts;
mod options;
mod orphans;
mod publish;
mod queue;
mod release;
mod shared_address;
mod sync;
mod trim;
mod wait;
mod written;

pub use controller::ServiceController;
pub use intent::{FINALIZER, checked_facts};
pub use options::ServiceControllerOptions;
pub use queue::ServiceQueue;
