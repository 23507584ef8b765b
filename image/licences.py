"""The licence texts of the crates that are linked into the binary: MIT, BSD and others ask that their notice goes with it."""

import json
import subprocess
from pathlib import Path

NAMES = ("license", "licence", "copying", "copyright", "notice", "unlicense")


def texts(document: bytes, folders: dict[tuple[str, str], Path]) -> bytes:
    """The texts of all crates in a bill of materials, each text once, with the crates that have it."""
    crates: dict[str, list[str]] = {}
    for component in json.loads(document).get("components", []):
        folder = folders.get((component["name"], component["version"]))
        if folder is None:
            continue
        label = f"{component['name']} {component['version']}"
        found = sorted(path for path in folder.iterdir() if path.is_file() and path.name.lower().startswith(NAMES))
        for text in [path.read_text(errors="replace").strip() for path in found] or [f"{expression(component)}: no text comes with the crate"]:
            crates.setdefault(text, []).append(label)
    parts = [f"{', '.join(sorted(labels))}\n\n{text}\n" for text, labels in sorted(crates.items(), key=lambda item: sorted(item[1]))]
    return ("\n" + "-" * 80 + "\n\n").join(parts).encode()


def expression(component: dict) -> str:
    """`MIT OR Apache-2.0`."""
    licences = component.get("licenses", [])
    return " AND ".join(one.get("expression") or one.get("license", {}).get("id", "") for one in licences) or "unknown licence"


def folders(repository: Path, target: str) -> dict[tuple[str, str], Path]:
    """Where Cargo has the source of each crate that is not ours."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    packages = json.loads(subprocess.run(command, cwd=repository, capture_output=True, check=True).stdout)["packages"]
    return {(one["name"], one["version"]): Path(one["manifest_path"]).parent for one in packages if one["source"]}
