#!/usr/bin/env python3
"""Builds the container image of openstack-ccm without a container engine: an OCI layout in a tar file.

The same commit, toolchain and CA bundle give the same bytes. See docs/guides/build-the-image.md.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from datetime import datetime, timezone
from pathlib import Path

import licences
from containerfile import configuration
from oci import File, Layout, write
from auditable import cargo
from sbom import PACKAGE, bill

REPOSITORY = Path(__file__).resolve().parent.parent
# Architecture of the image: Rust's target, and a C compiler for it (the TLS library has a part in C).
TARGETS = {
    "amd64": ("x86_64-unknown-linux-musl", ["x86_64-linux-musl-gcc", "musl-gcc", "x86_64-linux-gnu-gcc"]),
    "arm64": ("aarch64-unknown-linux-musl", ["aarch64-linux-musl-gcc", "aarch64-linux-gnu-gcc"]),
}


def main() -> None:
    """Builds what the command line asks for."""
    arguments = parse()
    epoch = source_date()
    if arguments.only_binary:
        print(compile_for(host(), epoch))
        return
    version, config = checked_configuration()
    created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    if arguments.root:
        files, _ = content(host(), arguments, epoch, config["User"])
        write(files, arguments.root)
        return

    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    layout, manifests = Layout(), []
    for architecture in arguments.architecture or ["amd64"]:
        files, document = content(architecture, arguments, epoch, config["User"])
        arguments.output.with_suffix(f".{architecture}.cdx.json").write_bytes(document)
        manifests.append(layout.add_image(architecture, files, config, created, epoch))
        print(f"{architecture}: binary {len(files[f'bin/{PACKAGE}'].content):,} bytes")
    archive = layout.archive(manifests, arguments.name, version, epoch)
    arguments.output.write_bytes(archive)
    print(f"{arguments.output}: {len(archive):,} bytes")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architecture", action="append", choices=TARGETS, help="may be repeated; default amd64")
    parser.add_argument("--binary", action="append", default=[], metavar="ARCHITECTURE=FILE", help="in place of building it")
    parser.add_argument("--bill", type=Path, metavar="FILE", help="bill of materials, in place of writing it")
    parser.add_argument("--only-binary", action="store_true", help="for this machine; prints its path")
    parser.add_argument("--root", type=Path, metavar="FOLDER", help="write the files of the image for this machine there, and no image")
    parser.add_argument("--name", default=PACKAGE, help="name of the image, with its registry if it has one")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "target/image/openstack-ccm.tar")
    parser.add_argument("--ca-bundle", type=Path, default=Path("/etc/ssl/certs/ca-certificates.crt"))
    return parser.parse_args()


def source_date() -> int:
    """SOURCE_DATE_EPOCH, else the time of the last commit. https://reproducible-builds.org/specs/source-date-epoch/"""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    log = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return int(log.stdout)


def host() -> str:
    """The architecture of this machine."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine()) or sys.exit(f"no image for {platform.machine()}")


def compile_for(architecture: str, epoch: int) -> Path:
    """The binary, linked statically against musl."""
    target, compilers = TARGETS[architecture]
    compiler = next((name for name in compilers if shutil.which(name)), None)
    if compiler is None:
        sys.exit(f"no C compiler for {architecture}: install one of {', '.join(compilers)} (Debian: gcc-aarch64-linux-gnu for arm64)")
    subprocess.run(["rustup", "target", "add", target], cwd=REPOSITORY, check=True, stdout=sys.stderr)
    variable = target.upper().replace("-", "_")
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    # Messages of panics hold paths of sources; those of the machine must not be in the binary.
    flags = [f"--remap-path-prefix={REPOSITORY}=/source", f"--remap-path-prefix={home}=/cargo"]
    # All relocations are read at the start: packed they take two pages in place of a hundred and thirty.
    flags.append("-Clink-arg=-zpack-relative-relocs")
    flags.append("-Clinker-flavor=ld.lld")
    environment = {
        f"CC_{target.replace('-', '_')}": compiler,
        # The linker that comes with Rust links for every architecture.
        f"CARGO_TARGET_{variable}_LINKER": "rust-lld",
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "SOURCE_DATE_EPOCH": str(epoch),
    }
    command = [*cargo(target_folder()), "build", "--locked", "--profile", "dist", "--package", PACKAGE, "--bin", PACKAGE, "--target", target]
    subprocess.run(command, cwd=REPOSITORY, check=True, env={**os.environ, **environment})
    return target_folder() / target / "dist" / PACKAGE


def target_folder() -> Path:
    """Where Cargo builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


def checked_configuration() -> tuple[str, dict]:
    """The version, and how the image runs, which must state the same version."""
    version = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    config = configuration((REPOSITORY / "image/Containerfile").read_text())
    labelled = config["Labels"]["org.opencontainers.image.version"]
    if labelled != version:
        sys.exit(f"image/Containerfile labels the image {labelled}, but Cargo.toml says {version}: make them equal")
    return version, config


def content(architecture: str, arguments: argparse.Namespace, epoch: int, user: str) -> tuple[dict[str, File], bytes]:
    """All files of the image, and the bill of materials among them."""
    given = dict(pair.split("=", 1) for pair in arguments.binary)
    binary = Path(given[architecture]) if architecture in given else compile_for(architecture, epoch)
    target = TARGETS[architecture][0]
    document = arguments.bill.read_bytes() if arguments.bill else bill(REPOSITORY, target, epoch, target_folder())
    number = user.split(":")[0]
    files = {
        f"bin/{PACKAGE}": File(binary.read_bytes(), mode=0o755),
        # The chart and the manifests of OCCM name this path.
        "bin/openstack-cloud-controller-manager": File(link=PACKAGE),
        # By this name it is the overlay for clusters of other clouds.
        "bin/ip-mode-overlay": File(link=PACKAGE),
        "etc/group": File(f"root:x:0:\n{PACKAGE}:x:{number}:\n".encode()),
        "etc/passwd": File(f"root:x:0:0::/:/none\n{PACKAGE}:x:{number}:{number}::/:/none\n".encode()),
        "etc/ssl/certs/ca-certificates.crt": File(arguments.ca_bundle.read_bytes()),
        f"usr/share/doc/{PACKAGE}/LICENSE": File((REPOSITORY / "LICENSE").read_bytes()),
        f"usr/share/doc/{PACKAGE}/THIRD-PARTY-LICENSES": File(licences.texts(document, licences.folders(REPOSITORY, target))),
        f"usr/share/doc/{PACKAGE}/sbom.cdx.json": File(document),
    }
    return files, document


if __name__ == "__main__":
    main()
