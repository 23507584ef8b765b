"""Programs that a release needs, built from pinned Go modules, and how they are run."""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
# Name of a program: its package, and the folder with the go.mod that pins it.
PROGRAMS = {
    "crane": ("github.com/google/go-containerregistry/cmd/crane", "release/tools/crane"),
    "cosign": ("github.com/sigstore/cosign/v3/cmd/cosign", "release/tools/cosign"),
    "helm": ("helm.sh/helm/v3/cmd/helm", "charts/tools/helm"),
}


def target() -> Path:
    """Cargo's target folder, where everything that is built lies."""
    return Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


def built(name: str) -> Path:
    """Where the program lies once it has been built."""
    return target() / "tools" / "go" / name


def program(name: str) -> str:
    """The program: the one that a variable of its name in capitals gives, or the pinned one."""
    if given := os.environ.get(name.upper()):
        return given
    package, module = PROGRAMS[name]
    # Go does nothing when the program is up to date.
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", built(name), package]
    subprocess.run(command, cwd=REPOSITORY / module, check=True, env={**os.environ, "CGO_ENABLED": "0"})
    return str(built(name))


def can_be_had(name: str) -> bool:
    """Whether there is such a program, which is built first where it is needed."""
    try:
        return bool(program(name))
    except (OSError, subprocess.CalledProcessError):
        return False


def run(name: str, *arguments: str | Path, text: str | None = None, variables: dict[str, str] | None = None) -> str:
    """Runs a program and returns what it prints. What it says when it fails ends this program."""
    command = [program(name), *map(str, arguments)]
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(command, capture_output=True, text=True, input=text, env=environment)
    if done.returncode:
        sys.exit(f"{name} {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout + done.stderr if name == "helm" else done.stdout


def git(*arguments: str) -> str:
    """What git prints."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.strip()
