#!/usr/bin/env python3
"""What the framework of cloud-controller-managers has, on which OCCM is built: its releases show what OCCM's next one will have.

    release/framework.py record [VERSION]    writes crates/ccm/tests/occm/framework.json, by default of the newest release
    release/framework.py compare [VERSION]   prints what it has that the data lack

Needs Go, which downloads the sources, and nothing of OCCM.
"""

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

import occm
import occm_sources

DATA = occm.FOLDER / "framework.json"
KINDS = ("flags", "gates", "metrics")
MODULES = ("cloud-provider", "controller-manager", "component-base", "apiserver")
# What a controller manager shows; the metrics of k8s.io/apiserver are nearly all those of API servers.
WITH_METRICS = MODULES[:3]

WITH_FLAGS = re.compile(r"^(cloud-provider|controller-manager)/(.*/)?options$|^component-base/(config/options|logs/api/v1)$")
FLAG = re.compile(r'\b\w*fs\.(\w+?)(?:Var)?P?\((?:[^"]|",")*?"([a-z][a-z0-9-]*)",')
FORMS = {"stringSlice": "strings", "iP": "ip", "var": "value"}
OPTIONS = re.compile(r"\w*[cC]ounterOpts\{|\w*[gG]augeOpts\{|\w*[hH]istogramOpts\{|\w*[sS]ummaryOpts\{")


def downloaded(version: str) -> tuple[str, dict[str, Path]]:
    """The sources of each module, and the version that they are of."""
    folders = {}
    for module in MODULES:
        command = ["go", "mod", "download", "-json", f"k8s.io/{module}@{version}"]
        with tempfile.TemporaryDirectory() as outside:
            answer = json.loads(subprocess.run(command, cwd=outside, capture_output=True, text=True, check=True).stdout)
        version, folders[module] = answer["Version"], Path(answer["Dir"])
    return version, folders


def facts(folders: dict[str, Path], minor: int) -> dict[str, dict[str, str]]:
    """Flags with their forms, gates and metrics, by name."""
    packages = {
        f"{module}/{package.relative_to(folder)}": occm_sources.source(package)
        for module, folder in folders.items()
        for package in folder.rglob("*")
        if package.is_dir()
    }
    metrics = [name for package, text in packages.items() if package.startswith(WITH_METRICS) for name in metric_names(text)]
    gates = occm_sources.gates(packages, minor)
    return {"flags": flags(packages, folders["apiserver"]), "gates": dict.fromkeys(gates, ""), "metrics": dict.fromkeys(sorted(metrics), "")}


def flags(packages: dict[str, str], apiserver: Path) -> dict[str, str]:
    texts = [text for package, text in packages.items() if WITH_FLAGS.search(package)]
    # Of the many options of an API server those that the framework names.
    used = set(re.findall(r"apiserveroptions\.(?:New)?(\w+)", packages["cloud-provider/options"]))
    for path in sorted((apiserver / "pkg/server/options").glob("*.go")):
        if not path.name.endswith("_test.go") and used & set(re.findall(r"^type (\w+) ", path.read_text(), re.M)):
            texts.append(path.read_text())
    found = {}
    for method, name in (match for text in texts for match in FLAG.findall(text)):
        if not method.startswith(("Mark", "Lookup")):
            form = method[:1].lower() + method[1:]
            found[name] = FORMS.get(form, form)
    return dict(sorted(found.items()))


def metric_names(text: str) -> list[str]:
    """`namespace_subsystem_name` of each metric of a package, whether these are constants or texts."""
    constants = dict(re.findall(r'^\s*(?:const )?(\w+)(?:\s+string)?\s*=\s*"([a-z0-9_]+)"', text, re.M))
    found = []
    for options in OPTIONS.finditer(text):
        block = text[options.end() : occm_sources.end_of_block(text, options.end())]
        named = {key: text or constants.get(name) for key, text, name in re.findall(r'\b(Namespace|Subsystem|Name):\s*(?:"(\w*)"|(\w+))', block)}
        parts = [named[key] for key in ("Namespace", "Subsystem", "Name") if named.get(key)]
        found.extend(["_".join(parts)] if named.get("Name") else [])
    return found


def text_of(version: str, found: dict[str, dict[str, str]]) -> str:
    of = {kind: {name: {"is": form} if form else {} for name, form in found[kind].items()} for kind in KINDS}
    parts = [f'"version": {json.dumps(version)}', *(f'"{kind}": {occm.entries(of[kind])}' for kind in KINDS)]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def differences(data: dict, found: dict[str, dict[str, str]]) -> list[str]:
    lines = []
    for kind in KINDS:
        known = {name: entry.get("is", "") for name, entry in data[kind].items()}
        lines.extend(f"{kind}: new: {name}{f' = {form}' if form else ''}" for name, form in found[kind].items() if name not in known)
        changed = [name for name, form in found[kind].items() if known.get(name, form) != form]
        lines.extend(f"{kind}: changed: {name}: {known[name]} -> {found[kind][name]}" for name in changed)
        lines.extend(f"{kind}: gone: {name}" for name in known if name not in found[kind])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subcommand", choices=("record", "compare"))
    parser.add_argument("version", nargs="?", default="latest", help="such as v0.37.2")
    arguments = parser.parse_args()
    version, folders = downloaded(arguments.version)
    found = facts(folders, int(version.split(".")[1]))
    sizes = ", ".join(f"{len(found[kind])} {kind}" for kind in KINDS)
    if arguments.subcommand == "record":
        DATA.write_text(text_of(version, found))
        print(f"framework {version}: {sizes}")
        return
    data = json.loads(DATA.read_text())
    lines = differences(data, found)
    print(f"framework {version} ({', '.join(f'k8s.io/{module}' for module in MODULES)}) beside {data['version']}, which is in the data:")
    print("\n".join([*(lines or ["nothing new"]), f"{sizes} were compared"]))


if __name__ == "__main__":
    main()
