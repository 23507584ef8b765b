"""What lies on the page of a release, for those who pull no image: programs, manifests, both charts, a plugin for Krew, and their checksums."""

import gzip
import io
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import krew
from artifacts import CHARTS, NAME, Place, chart_file, digest, folder, in_image, package, platforms, version
from tools import REPOSITORY, git, run

CHECKSUMS = "SHA256SUMS"
# What stands for the image in manifests until somebody names one.
NO_IMAGE = re.compile(r"registry\.invalid/[a-z-]+")
CLOUD_CONF = """[Global]
auth-url = https://keystone.example.org/v3
application-credential-id = id
application-credential-secret = secret
"""


def make(place: Place, unpacked: Path) -> None:
    """Writes all of them. The programs are those of the image."""
    for architecture in platforms(unpacked):
        content = {NAME: in_image(unpacked, architecture, f"bin/{NAME}"), "LICENSE": (REPOSITORY / "LICENSE").read_bytes()}
        write_archive(program_file(architecture), content)
    write_archive(manifests_file(), manifests(place))
    for chart in CHARTS:
        package(place, chart)
    plugin = krew.manifest(version(), {("linux", architecture): program_file(architecture) for architecture in platforms(unpacked)})
    krew_file().write_text(krew.yaml(plugin))
    lines = [f"{digest(file.read_bytes()).removeprefix('sha256:')}  {file.name}\n" for file in made(unpacked)]
    (folder() / CHECKSUMS).write_text("".join(lines))


def program_file(architecture: str) -> Path:
    """The archive with the program for an architecture."""
    return folder() / f"{NAME}_{version()}_linux_{architecture}.tar.gz"


def manifests_file() -> Path:
    """The archive with the manifests."""
    return folder() / f"{NAME}-manifests-{version()}.tar.gz"


def krew_file() -> Path:
    """What krew-index would have of this version."""
    return folder() / f"{NAME}.krew.yaml"


def made(unpacked: Path) -> list[Path]:
    """All files that the checksums are of."""
    programs = [program_file(architecture) for architecture in platforms(unpacked)]
    return sorted([*programs, manifests_file(), krew_file(), *map(chart_file, CHARTS)])


def manifests(place: Place) -> dict[str, bytes]:
    """The manifests, with the image that is released with them."""
    source = REPOSITORY / "manifests"
    files = sorted(file for file in source.rglob("*") if file.is_file())
    return {f"manifests/{file.relative_to(source)}": NO_IMAGE.sub(place.image, file.read_text()).encode() for file in files}


def write_archive(path: Path, files: dict[str, bytes]) -> None:
    """An archive that is the same whenever its content is."""
    time = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), time, 0o755 if name == NAME else 0o644
            archive.addfile(entry, io.BytesIO(content))
    path.write_bytes(gzip.compress(buffer.getvalue(), compresslevel=9, mtime=0))


def verify_checksums(unpacked: Path) -> None:
    """Every file is there, and is the one that was signed for."""
    stated = dict(reversed(line.split("  ")) for line in (folder() / CHECKSUMS).read_text().splitlines())
    for file in made(unpacked):
        if stated.pop(file.name, None) != digest(file.read_bytes()).removeprefix("sha256:"):
            sys.exit(f"{file.name}: {CHECKSUMS} does not have its checksum")
    if stated:
        sys.exit(f"{CHECKSUMS} names what was not made: {', '.join(stated)}")
    print(f"checksums of {len(made(unpacked))} files: the same")


def try_out(place: Place, unpacked: Path) -> None:
    """What somebody does who got them: unpacks, starts the program, renders the charts."""
    with tempfile.TemporaryDirectory() as name:
        try_program(Path(name), unpacked)
        try_manifests(Path(name), place)
        try_charts(place)


def try_program(target: Path, unpacked: Path) -> None:
    """The program for this machine says its version, and reads a configuration."""
    here = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine())
    for architecture in platforms(unpacked):
        with tarfile.open(program_file(architecture)) as archive:
            archive.extractall(target / architecture, filter="data")
        if architecture != here:
            print(f"program for {architecture}: unpacked; it runs on another machine")
            continue
        program, config = target / architecture / NAME, target / "cloud.conf"
        config.write_text(CLOUD_CONF)
        said = started(program, "--version")
        if version() not in said:
            sys.exit(f"{program_file(architecture).name}: the program says that it is {said}, and not {version()}")
        started(program, "check-config", f"--cloud-config={config}")
        print(f"program for {architecture}: {said}; check-config ended well")


def started(program: Path, *arguments: str) -> str:
    """What the program prints."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program.name} {' '.join(arguments)}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout.strip()


def try_manifests(target: Path, place: Place) -> None:
    """Each workload has the released image."""
    with tarfile.open(manifests_file()) as archive:
        archive.extractall(target, filter="data")
    texts = [file.read_text() for file in (target / "manifests").rglob("*.yaml")]
    images = [line.split("image: ")[1].strip('"') for text in texts for line in text.splitlines() if " image: " in line]
    if not images or set(images) != {f"{place.image}:{version()}"}:
        sys.exit(f"{manifests_file().name}: the images are {', '.join(sorted(set(images)))}, and not {place.image}:{version()}")
    print(f"manifests: {len(texts)} files with the released image")


def try_charts(place: Place) -> None:
    """Both charts render, with the released image and nothing to be set but where cloud.conf is."""
    for chart in CHARTS:
        needed = ["--set", "secret.create=false"] if chart == NAME else []
        rendered = run("helm", "template", chart, chart_file(chart), "--kube-version", "1.36.0", *needed)
        if f"{place.image}:{version()}" not in rendered:
            sys.exit(f"{chart_file(chart).name}: what it renders does not have the image {place.image}:{version()}")
        print(f"chart {chart}: renders with the released image")
