"""The software bill of materials of the binary: CycloneDX 1.5 from what Cargo resolved.

https://cyclonedx.org/docs/1.5/json/
"""

import subprocess
import tomllib
import uuid
from pathlib import Path

PACKAGE = "openstack-ccm"
SEPARATOR = "\t"


def packages(repository: Path, target: str) -> list[dict[str, str]]:
    """Name, version and licence of every crate that is linked into the binary for a target."""
    tree = subprocess.run(
        ["cargo", "tree", "--locked", "--package", PACKAGE, "--edges", "normal", "--target", target]
        + ["--prefix", "none", "--no-dedupe", "--format", f"{{p}}{SEPARATOR}{{l}}"],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = {}
    for line in tree.splitlines():
        package, _, licence = line.partition(SEPARATOR)
        name, version = package.split()[:2]
        found[(name, version.removeprefix("v"))] = licence
    return [{"name": name, "version": version, "licence": licence} for (name, version), licence in sorted(found.items())]


def checksums(repository: Path) -> dict[tuple[str, str], str]:
    """SHA-256 of each crate's archive, from the lock file. Crates of this repository have none."""
    lock = tomllib.loads((repository / "Cargo.lock").read_text())
    return {(p["name"], p["version"]): p["checksum"] for p in lock["package"] if "checksum" in p}


def bill(repository: Path, target: str, version: str, created: str) -> dict:
    """The document."""
    sums = checksums(repository)
    components = [component(package, sums) for package in packages(repository, target)]
    linked = [entry for entry in components if entry["name"] != PACKAGE]
    identity = "\n".join(entry["bom-ref"] for entry in components)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{target} {identity}')}",
        "version": 1,
        "metadata": {
            "timestamp": created,
            "component": {"type": "application", "bom-ref": "main", "name": PACKAGE, "version": version},
            "properties": [{"name": "target", "value": target}],
        },
        "components": linked,
        "dependencies": [{"ref": "main", "dependsOn": [entry["bom-ref"] for entry in linked]}],
    }


def component(package: dict[str, str], sums: dict[tuple[str, str], str]) -> dict:
    """One crate."""
    name, version = package["name"], package["version"]
    reference = f"pkg:cargo/{name}@{version}"
    entry = {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference}
    if package["licence"]:
        # Old manifests write "/" where SPDX has "OR".
        entry["licenses"] = [{"expression": package["licence"].replace("/", " OR ")}]
    if (name, version) in sums:
        entry["hashes"] = [{"alg": "SHA-256", "content": sums[(name, version)]}]
    return entry
