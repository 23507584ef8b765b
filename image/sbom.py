"""The software bill of materials of the binary: CycloneDX 1.5, written by cargo-cyclonedx.

https://cyclonedx.org/docs/1.5/json/
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = "openstack-ccm"
TOOL = "cargo-cyclonedx"
TOOL_VERSION = "0.5.9"


def tool(target_folder: Path) -> Path:
    """The program of exactly this version, which it writes into each document. It is installed at the first need."""
    root = target_folder / "tools" / f"{TOOL}-{TOOL_VERSION}"
    program = root / "bin" / TOOL
    if not program.exists():
        command = ["cargo", "install", "--locked", "--root", root, "--target-dir", root / "build", f"{TOOL}@{TOOL_VERSION}"]
        subprocess.run(command, check=True, stdout=sys.stderr)
        shutil.rmtree(root / "build")
    return program


def bill(repository: Path, target: str, epoch: int, target_folder: Path) -> bytes:
    """Every crate that is linked into the binary for a target."""
    program = tool(target_folder)
    with tempfile.TemporaryDirectory() as name:
        # A document is written beside each manifest of the workspace, hence a copy.
        source = Path(name).resolve()
        for file in ("Cargo.toml", "Cargo.lock"):
            shutil.copy(repository / file, source)
        for folder in ("crates", "e2e"):
            shutil.copytree(repository / folder, source / folder)
        command = [program, "cyclonedx", "--manifest-path", "crates/ccm/Cargo.toml", "--format", "json", "--quiet"]
        command += ["--spec-version", "1.5", "--describe", "binaries", "--no-build-deps", "--target", target]
        # With a time given, the document has no random serial number.
        subprocess.run(command, cwd=source, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
        document = (source / f"crates/ccm/{PACKAGE}_bin.cdx.json").read_text()
    # Crates of this repository are referred to by their path.
    return document.replace(source.as_uri(), "file:///source").encode()
