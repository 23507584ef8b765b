#!/usr/bin/env python3
"""What the Go openstack-cloud-controller-manager (OCCM) has, as data, and what a newer one has beside it.

    release/occm.py record CHECKOUT    writes crates/ccm/tests/occm/recorded.json from the releases in a clone (Go; an hour for each program)
    release/occm.py compare CHECKOUT   prints what the checkout has that the data lack
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import occm_sources
from tools import REPOSITORY

SOURCE = "https://github.com/kubernetes/cloud-provider-openstack"
FOLDER = REPOSITORY / "crates/ccm/tests/occm"
RECORDED = FOLDER / "recorded.json"
ANNOUNCED = FOLDER / "announced.json"
FIRST = 30
PROGRAM = "openstack-cloud-controller-manager"
CHART = Path("charts") / PROGRAM

# What a reader of the reports calls each kind, in the order of the data.
KINDS = ("flags", "gates", "annotations", "keys", "values", "rights", "events", "metrics")


def facts(tree: Path, program: Path | None) -> dict[str, dict[str, str]]:
    """All that a tree of the sources has, by kind and name; with a default or a type where there is one. What only a program can be
    asked for is left out without one."""
    found: dict[str, dict[str, str]] = {}
    if program is not None:
        found["flags"], found["gates"] = from_help(subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout)
    go = "\n".join(text for folder in ("pkg/openstack", "pkg/client", "pkg/util/metadata", "pkg/metrics") for text in sources(tree / folder))
    found["annotations"] = names(r'"((?:loadbalancer\.openstack\.org|service\.beta\.kubernetes\.io)/[a-z0-9-]+)"', go)
    # A field without a name of its own in the file has that of the field.
    unnamed = re.findall(r'^\s+(\w+)\s+\S+\s+`(?!gcfg)[^`]*\bname:"os-', go, re.M)
    found["keys"] = names(r'gcfg:"([a-z0-9-]+)', go) | dict.fromkeys(map(str.lower, unnamed), "")
    found["events"] = names(r'event\w+\s*=\s*"(\w+)"', go)
    found["metrics"] = names(r'Name:\s*"((?:cloudprovider_)?openstack_\w+)"', go)
    templates = {path.name: path.read_text() for path in sorted((tree / CHART / "templates").iterdir()) if path.suffix in (".yaml", ".tpl")}
    found["values"] = names(r"\.Values\.([A-Za-z.]*[A-Za-z])", "\n".join(templates.values()))
    found["values"].update(defaults((tree / CHART / "values.yaml").read_text()))
    found["rights"] = dict.fromkeys(right for text in templates.values() for right in rights(text))
    return {kind: {name: found[kind][name] or "" for name in sorted(found[kind])} for kind in KINDS if kind in found}


def sources(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.rglob("*.go")) if not path.name.endswith("_test.go")]


def names(pattern: str, text: str) -> dict[str, str]:
    return dict.fromkeys(re.findall(pattern, text), "")


def from_help(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Flags with type and default, and feature gates, of the program's own help."""
    flags, gates = {}, {}
    for line in text.splitlines():
        flag = re.match(r"\s+(?:-\w, )?--([a-z0-9-]+)(?: (\S+))?\s{2,}(.*)", line)
        gate = re.search(r"(?:^|\s)(?:[a-z]+:)?([A-Z]\w+)=true\|false \(", line)
        if flag:
            name, form, usage = flag.groups()
            default = re.search(r'\(default "?(.*?)"?\)$', usage.strip())
            flags[name] = f"{form or 'bool'}={default[1]}" if default else form or "bool"
        if gate:
            gates[gate[1]] = ""
    return flags, gates


def defaults(text: str) -> dict[str, str]:
    """The values of a chart at the top, each with its default in one line."""
    found, name = {}, None
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).rstrip()
        start = re.match(r"([A-Za-z]\w*):(.*)", line)
        if start:
            name = start[1]
            found[name] = start[2].strip()
        elif name and line:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def rights(text: str) -> list[str]:
    """`ClusterRole nodes patch`, a line for each, of a template with roles."""
    found, kind, rule, part = [], "", {}, None

    def close() -> None:
        for resource in rule.get("resources", []):
            for group in rule.get("apiGroups", [""]):
                of = f"{resource}.{group}" if group else resource
                only = "".join(f" of {name}" for name in rule.get("resourceNames", []))
                found.extend(f"{kind} {of} {verb}{only}" for verb in rule.get("verbs", []))
        rule.clear()

    for line in text.splitlines():
        if match := re.match(r"kind:\s*(\w+)", line):
            close()
            kind = match[1]
        elif match := re.match(r"\s*(- )?(apiGroups|resources|resourceNames|verbs):\s*(\[.*\])?", line):
            if match[1]:
                close()
            part = match[2]
            rule[part] = re.findall(r'[^\[\],\s"\']+', match[3] or "")
        elif part and (match := re.match(r"\s*- [\"']?([^\"']*)[\"']?\s*$", line)):
            rule[part].append(match[1])
        elif line.strip() and not line.lstrip().startswith(("{{", "#")):
            part = None
    close()
    return found if kind else []


def git(repository: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", repository, *arguments], capture_output=True, text=True, check=True).stdout.strip()


def extracted(repository: Path, reference: str, folder: Path) -> Path:
    archive = subprocess.run(["git", "-C", repository, "archive", reference], capture_output=True, check=True).stdout
    subprocess.run(["tar", "--extract", "--directory", folder], input=archive, check=True)
    return folder


def built(tree: Path, folder: Path) -> Path:
    """The program of a tree, in a folder. It takes a quarter of an hour the first time, and leaves the machine to others."""
    program = folder / PROGRAM
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-p=1 -mod=mod -buildvcs=false"}
    # Nobody debugs it, and half of the time goes into making it fast.
    command = ["nice", "-n", "19", "go", "build", "-trimpath", "-gcflags", "all=-N -l -dwarf=false", "-ldflags", "-s -w"]
    subprocess.run([*command, "-o", program, f"./cmd/{PROGRAM}"], cwd=tree, env=environment, check=True)
    return program


def patches(repository: Path) -> dict[str, list[str]]:
    """The releases of each minor version from 1.30 on, the newest first: `1.35` and `[v1.35.1, v1.35.0]`."""
    found: dict[int, list[int]] = {}
    for tag in git(repository, "tag").splitlines():
        match = re.fullmatch(r"v1\.(\d+)\.(\d+)", tag)
        if match and int(match[1]) >= FIRST:
            found.setdefault(int(match[1]), []).append(int(match[2]))
    return {f"1.{minor}": [f"v1.{minor}.{patch}" for patch in sorted(of, reverse=True)] for minor, of in sorted(found.items())}


def newest_program(programs: Path, minor: str) -> tuple[str, Path] | None:
    """The newest program of a minor version in a folder, with its tag: not every patch can be built everywhere."""
    found = {path.name.removeprefix(f"{PROGRAM}-"): path for path in programs.glob(f"{PROGRAM}-v{minor}.*")}
    newest = max(found, key=lambda tag: int(tag.split(".")[2]), default=None)
    return (newest, found[newest]) if newest else None


def record(repository: Path, programs: Path | None) -> None:
    releases, by_release, tags = {}, {}, patches(repository)
    for minor, (tag, *_) in tags.items():
        with tempfile.TemporaryDirectory() as folder:
            tree = extracted(repository, tag, Path(folder))
            asked = newest_program(programs, minor) if programs else (tag, built(tree, tree / "_built"))
            by_release[minor] = facts(tree, asked[1] if asked else None)
            releases[minor] = {
                "tag": tag,
                "commit": git(repository, "rev-parse", f"{tag}^{{commit}}"),
                "chart": re.search(r"^version: (\S+)", (tree / CHART / "Chart.yaml").read_text(), re.M)[1],
                "asked for flags and gates": asked[0] if asked else None,
            }
    for minor in [minor for minor, found in by_release.items() if "flags" not in found]:
        of_sources(repository, tags[minor], minor, releases, by_release)
    for minor, found in by_release.items():
        print(f"{releases[minor]['tag']}:", ", ".join(f"{len(found[kind])} {kind}" for kind in KINDS if kind in found))
    RECORDED.write_text(text_of(releases, by_release))


def of_sources(repository: Path, tags: list[str], minor: str, releases: dict, by_release: dict) -> None:
    """Adds flags and gates of a release whose program was not asked, by the newest patch whose modules can all be had."""
    order = list(releases)
    asked = [other for other in order if releases[other]["asked for flags and gates"]]
    older = [other for other in asked if order.index(other) < order.index(minor)]
    newer = [other for other in asked if order.index(other) > order.index(minor)]
    for tag in tags if older and newer else []:
        with tempfile.TemporaryDirectory() as folder:
            of = occm_sources.packages(extracted(repository, tag, Path(folder)), PROGRAM)
        if of:
            by_release[minor]["flags"] = occm_sources.flags(of, by_release[older[-1]]["flags"], by_release[newer[0]]["flags"])
            by_release[minor]["gates"] = dict.fromkeys(occm_sources.gates(of, int(minor.removeprefix("1."))), "")
            releases[minor]["flags and gates by the sources of"] = tag
            return


def text_of(releases: dict, by_release: dict) -> str:
    """The data: each name with its releases, and its form or default where there is one, in one line."""
    parts = [f'"source": {json.dumps(SOURCE)}', f'"releases": {entries(releases)}']
    for kind in KINDS:
        of_kind = {}
        asked = {minor: release[kind] for minor, release in by_release.items() if kind in release}
        for name in sorted({name for release in asked.values() for name in release}):
            within = [minor for minor, release in asked.items() if name in release]
            entry = {"in": spans(within, list(asked))}
            if form := asked[within[-1]][name]:
                entry["is"] = form
            of_kind[name] = entry
        parts.append(f'"{kind}": {entries(of_kind)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def entries(of: dict) -> str:
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in of.items()) + "\n}"


def spans(within: list[str], order: list[str]) -> str:
    """`1.30-1.36`, or several with a comma."""
    runs: list[list[str]] = []
    for minor in within:
        if runs and order.index(minor) == order.index(runs[-1][-1]) + 1:
            runs[-1].append(minor)
        else:
            runs.append([minor])
    return ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def differences(data: dict, announced: dict, found: dict[str, dict[str, str]]) -> list[str]:
    """What the newest recorded release does not have, or has otherwise, and what is no longer there."""
    newest = list(data["releases"])[-1]
    lines = []
    for kind in KINDS:
        known = {name: entry.get("is", "") for name, entry in data[kind].items() if entry["in"].endswith(newest)}
        if kind not in found:
            lines.append(f"{kind}: not compared, as no program was built")
            continue
        for name, form in found[kind].items():
            thread = announced.get(kind, {}).get(name)
            if name not in known:
                known_from = f" (announced in {thread['thread']})" if thread else ""
                lines.append(f"{kind}: new: {name}{f' = {form}' if form else ''}{known_from}")
            elif form != known[name]:
                lines.append(f"{kind}: changed: {name}: {known[name] or 'nothing'} -> {form or 'nothing'}")
        lines.extend(f"{kind}: gone: {name}" for name in known if name not in found[kind])
    return lines


def compare(checkout: Path, program: Path | None, build: bool) -> None:
    data, announced = json.loads(RECORDED.read_text()), json.loads(ANNOUNCED.read_text())
    with tempfile.TemporaryDirectory() as folder:
        # A clone without a work tree has nothing to read but its commits.
        tree = checkout if (checkout / "pkg/openstack").is_dir() else extracted(checkout, "HEAD", Path(folder))
        if program is None and build:
            program = built(tree, Path(folder))
        found = facts(tree, program)
        lines = differences(data, announced, found)
    newest, release = list(data["releases"].items())[-1]
    print(f"{checkout} beside {newest}, the newest release in the data ({release['tag']}, chart {release['chart']}):")
    compared = ", ".join(f"{len(found[kind])} {kind}" for kind in KINDS if kind in found)
    print("\n".join([*(lines or ["nothing new"]), f"{compared} were compared"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subcommands = parser.add_subparsers(dest="subcommand", required=True)
    recorder = subcommands.add_parser("record")
    recorder.add_argument("checkout", type=Path, help="a clone with all tags")
    recorder.add_argument("--programs", type=Path, help=f"a folder with built programs, such as {PROGRAM}-v1.36.0; other minor versions are read from their sources")
    comparer = subcommands.add_parser("compare")
    comparer.add_argument("checkout", type=Path, help="a clone, or only the files, such as those in the cache of Go's modules")
    comparer.add_argument("--program", type=Path, help="the built program, to be asked for flags and gates")
    comparer.add_argument("--no-build", action="store_true", help="leave flags and gates out where no program is given")
    arguments = parser.parse_args()
    if not arguments.checkout.is_dir():
        sys.exit(f"{arguments.checkout} is no folder: clone {SOURCE} and name the clone")
    if arguments.subcommand == "record":
        record(arguments.checkout, arguments.programs)
    else:
        compare(arguments.checkout, arguments.program, not arguments.no_build)


if __name__ == "__main__":
    main()
