//! The binary `openstack-ccm`: the program, and the providers that it is built with.

use std::process::ExitCode;

use openstack_ccm_core::cloud::Entry;

/// The providers that `--cloud-provider` names.
const PROVIDERS: &[Entry] = &[openstack_ccm_provider_openstack::cloud::ENTRY];

fn main() -> ExitCode {
    openstack_ccm::main(&std::env::args_os().collect::<Vec<_>>(), PROVIDERS)
}
