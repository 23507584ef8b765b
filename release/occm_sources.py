"""Flags and gates of an OCCM that nobody built, from the sources of all that it is made of.

Where both could be had (1.30.3, 1.33.1 and 1.36.0), the gates are those of the program's own help, all and no other.
"""

import os
import re
import subprocess
from pathlib import Path

# Packages with gates, and packages that register flags of the program among others.
WITH_GATES = re.compile(r"/features?$|/logs/api/v1$")
WITH_FLAGS = re.compile(r"^k8s\.io/(component-base|controller-manager|cloud-provider|cloud-provider-openstack|klog)(/|$)|/server/options$")

GATE = re.compile(r'^\s*(?:const )?(\w+)(?:\s+(?:featuregate\.)?Feature)?\s*=\s*(?:featuregate\.Feature\()?"(\w+)"\)?$', re.M)
ENTRY = re.compile(r"^\t+(?:\w+\.)?(\w+):\s*\{", re.M)
STAGE = re.compile(r'(?:Version:\s*version\.MustParse\("1\.(\d+)"\)[^{}]*?)?PreRelease:\s*(?:\w+\.)?(\w+)')
FLAG = re.compile(r'\.(?:\w*VarP?|Bool|Int|Duration|String)\([^"]*"([a-z][a-z0-9-]*)"')


def packages(tree: Path, program: str) -> dict[str, str] | None:
    """The source of each package that the program of a tree is made of; none where not all modules can be had."""
    environment = os.environ | {"GOFLAGS": "-mod=mod -buildvcs=false"}
    command = ["go", "list", "-deps", "-f", "{{if .Module}}{{.ImportPath}} {{.Dir}}{{end}}", f"./cmd/{program}"]
    listed = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if listed.returncode:
        return None
    found = (line.split(" ", 1) for line in listed.stdout.splitlines())
    return {name: source(Path(folder)) for name, folder in found if WITH_GATES.search(name) or WITH_FLAGS.search(name)}


def source(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.go")) if not path.name.endswith("_test.go"))


def gates(of: dict[str, str], minor: int) -> list[str]:
    """What the help of this minor version lists: gates that are alpha or beta in it."""
    texts = [re.sub(r"//.*", "", text) for name, text in of.items() if WITH_GATES.search(name)]
    names = {variable: gate for text in texts for variable, gate in GATE.findall(re.sub(r"[ \t]+$", "", text, flags=re.M))}
    stages: dict[str, str] = {}
    for text in texts:
        for entry in ENTRY.finditer(text):
            listed = STAGE.findall(text[entry.end() : end_of_block(text, entry.end())])
            reached = [stage for since, stage in listed if int(since or 0) <= minor]
            if reached and entry[1] in names:
                stages[names[entry[1]]] = reached[-1]
    return sorted({"AllAlpha", "AllBeta"} | {gate for gate, stage in stages.items() if stage in ("Alpha", "Beta")})


def end_of_block(text: str, start: int) -> int:
    """Where the brace that was opened before `start` is closed."""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.start()
    return len(text)


def flags(of: dict[str, str], before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """The flags that an older and a newer release both have, and of those that one of them has what is registered here."""
    registered = {flag for name, text in of.items() if WITH_FLAGS.search(name) for flag in FLAG.findall(text)}
    return {name: form for name, form in (after | before).items() if (name in before and name in after) or name in registered}
