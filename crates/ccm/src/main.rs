//! The binary `openstack-ccm`: the program with its built-in cloud providers.

use std::process::ExitCode;

use openstack_ccm_core::cloud::Entry;

/// The providers that `--cloud-provider` names.
const PROVIDERS: &[Entry] = &[openstack_ccm_provider_openstack::cloud::ENTRY];

fn main() -> ExitCode {
    openstack_ccm::main(&std::env::args_os().collect::<Vec<_>>(), PROVIDERS)
}
