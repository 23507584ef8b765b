//! The binary `openstack-ccm`.

use std::process::ExitCode;

use clap::Parser as _;
use openstack_ccm::args::CommandLine;

fn main() -> ExitCode {
    openstack_ccm::start(CommandLine::parse())
}
