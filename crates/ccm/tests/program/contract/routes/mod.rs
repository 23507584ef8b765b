//! Routes to the pods of nodes: node objects in; router, ports, conditions, events and calls out.

mod crash;
mod faults;
mod neutron;
mod rounds;
mod stage;
