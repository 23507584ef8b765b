//! A whole world in one process on a paused clock: a Kubernetes, an OpenStack, and the program between them.

#[allow(dead_code, reason = "the benchmark uses other parts")]
pub(crate) mod canonical;
#[path = "../../compatibility/catalog.rs"]
#[allow(dead_code, reason = "the page uses other parts")]
mod catalog;
#[allow(dead_code, reason = "the benchmark uses other parts")]
mod comparison;
mod describe;
#[allow(dead_code, reason = "the benchmark uses other parts")]
pub(crate) mod ledger;
pub(crate) mod line;
#[allow(dead_code, reason = "the benchmark uses other parts")]
pub(crate) mod log;
#[allow(dead_code, reason = "the benchmark uses other parts")]
pub(crate) mod nodes;
mod objects;
#[allow(dead_code, reason = "the benchmark uses other parts")]
pub(crate) mod order;
#[path = "../../compatibility/planned.rs"]
#[allow(dead_code, reason = "the page uses other parts")]
mod planned;
#[allow(dead_code, reason = "the benchmark uses other parts")]
pub(crate) mod prediction;
mod reconciliation;
#[path = "../../compatibility/scan.rs"]
#[allow(dead_code, reason = "the page uses other parts")]
mod scan;
#[allow(dead_code, reason = "the benchmark uses other parts")]
pub(crate) mod trace;
mod world;

#[allow(unused_imports, reason = "the tests and the benchmark use different parts")]
pub(crate) use describe::text;
#[allow(unused_imports, reason = "the tests and the benchmark use different parts")]
pub(crate) use line::{Call, Side, Stop};
#[allow(unused_imports, reason = "the tests and the benchmark use different parts")]
pub(crate) use objects::{ADDRESS, ANNOTATION, LB_ID, PROXY, key, lb_name, node, service};
#[allow(unused_imports, reason = "the tests and the benchmark use different parts")]
pub(crate) use world::{OneFile, Settings, World};
