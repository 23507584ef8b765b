"""The list of crates inside the binary, for scanners: cargo-auditable writes it. https://github.com/rust-secure-code/cargo-auditable"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

TOOL = "cargo-auditable"
TOOL_VERSION = "0.7.7"


def cargo(target_folder: Path) -> list[str]:
    """Cargo with the tool, which is installed at the first need; without it, where it cannot be had."""
    program = target_folder / "tools" / f"{TOOL}-{TOOL_VERSION}" / "bin" / TOOL
    if not program.exists() and not install(program.parent.parent):
        print(f"{TOOL} {TOOL_VERSION} cannot be had: scanners find no crates in the binary, which differs from a released one", file=sys.stderr)
        return ["cargo"]
    return [str(program), "auditable"]


def install(root: Path) -> bool:
    """Whether it could be installed."""
    command = ["cargo", "install", "--locked", "--root", root, "--target-dir", root / "build", f"{TOOL}@{TOOL_VERSION}"]
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_ENCODED_RUSTFLAGS"}
    done = subprocess.run(command, stdout=sys.stderr, env=environment)
    shutil.rmtree(root / "build", ignore_errors=True)
    return done.returncode == 0
