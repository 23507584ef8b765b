//! The binary `openstack-ccm`.

use std::process::ExitCode;

fn main() -> ExitCode {
    openstack_ccm::main(&std::env::args_os().collect::<Vec<_>>())
}
