//! Tests of the public API: decoding of recorded answers, error classes, request bodies, client behaviour, login.

#[cfg(test)]
mod any_answers;
#[cfg(test)]
mod client_behaviour;
#[cfg(test)]
mod error_classes;
#[cfg(test)]
mod keystone;
#[cfg(test)]
mod network_failures;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod recorded_answers;
#[cfg(test)]
mod request_bodies;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod stand_in;
#[cfg(test)]
mod tls;
