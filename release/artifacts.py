"""What is released: versions that agree, the charts, the image, and the places that they have in a registry."""

import hashlib
import ipaddress
import json
import os
import re
import shutil
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

import changelog
import registry
import versions
from tools import REPOSITORY, run

NAME = "openstack-ccm"
# Each of them with the image in its values.
CHARTS = [NAME, "ip-mode-overlay"]


def folder() -> Path:
    """Where the files of a release are gathered, beside those of `make image`."""
    path = Path(os.environ.get("RELEASE_FOLDER", REPOSITORY / "target/publish"))
    path.mkdir(parents=True, exist_ok=True)
    return path


def version() -> str:
    """The version of the program."""
    return tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]


# Where else than in Cargo.toml the version stands: a file, and the text before it.
STATED = [(f"charts/{chart}/Chart.yaml", f"{key}: ") for chart in CHARTS for key in ("version", "appVersion")]
STATED.append(("image/Containerfile", "org.opencontainers.image.version="))


def stated_version(before: str) -> re.Pattern:
    """The version behind a text, with or without a quotation mark."""
    return re.compile(rf'(^\s*{re.escape(before)}"?)([^"\s]+)', re.M)


def set_version(wanted: str) -> None:
    """Writes a version to every place that states it. `make manifests` and `make docs` follow it."""
    if not re.fullmatch(rf"\d+\.\d+\.\d+({changelog.DEVELOPMENT})?", wanted):
        sys.exit(f"{wanted} is no version: write one such as 1.2.3, or 1.3.0{changelog.DEVELOPMENT} after a release")
    before = version()
    for path, text in [("Cargo.toml", "version = "), *STATED]:
        file = REPOSITORY / path
        file.write_text(stated_version(text).sub(rf"\g<1>{wanted}", file.read_text(), count=1))
    lock = REPOSITORY / "Cargo.lock"
    ours = re.compile(rf'^(name = "(?:openstack-ccm|ip-mode-overlay)[a-z0-9-]*"\nversion = )"{re.escape(before)}"', re.M)
    lock.write_text(ours.sub(rf'\1"{wanted}"', lock.read_text()))


def check(tag: str | None) -> None:
    """Everything that states a version states the same one, and the changelog says what is in it."""
    wanted = version()
    stated = {f"{path}: {before}": stated_version(before).search((REPOSITORY / path).read_text()) for path, before in STATED}
    found = changelog.faults((REPOSITORY / "CHANGELOG.md").read_text(), wanted, tagged=tag is not None)
    found += versions.faults(versions.known(), wanted) + registry.faults(tagged=tag is not None)
    if versions.page(versions.PAGE.read_text(), versions.known()) != versions.PAGE.read_text():
        found.append("docs/reference/versions.md: the table of support is not that of release/versions.toml: run `make release-record`")
    for place, match in stated.items():
        if match is None or match[2] != wanted:
            found.append(f"{place}{match[2] if match else 'absent'}, but Cargo.toml says {wanted}: make them equal")
    if tag is not None and tag != f"v{wanted}" and not wanted.endswith(changelog.DEVELOPMENT):
        found.append(f"the tag is {tag}, but Cargo.toml says {wanted}: tag v{wanted}, or change the version first")
    if found:
        sys.exit("\n".join(found))
    print(f"version {wanted}")


@dataclass(frozen=True)
class Place:
    """A registry, with a path below which image and charts lie."""

    registry: str

    @classmethod
    def given(cls) -> "Place":
        """RELEASE_REGISTRY. There is no default, so that nothing is pushed by accident."""
        registry = os.environ.get("RELEASE_REGISTRY", "").rstrip("/")
        return cls(registry) if registry else sys.exit("set RELEASE_REGISTRY, for example registry.example.org/openstack-ccm")

    @property
    def image(self) -> str:
        return f"{self.registry}/{NAME}"

    @property
    def charts(self) -> str:
        return f"{self.registry}/charts"

    def chart(self, name: str) -> str:
        return f"{self.charts}/{name}"

    def helm_options(self) -> list[str]:
        """A registry on this machine speaks HTTP."""
        host = self.registry.split("/")[0].rsplit(":", 1)[0]
        try:
            return ["--plain-http"] if ipaddress.ip_address(host).is_loopback else []
        except ValueError:
            return []


def package(place: Place, chart: str) -> Path:
    """A chart as a file. In a released chart the image is the one that is released with it."""
    copy = folder() / "chart" / chart
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(REPOSITORY / "charts" / chart, copy)
    values = copy / "values.yaml"
    text, count = re.subn(r"^(image:\n(?:  .*\n)*?  repository:).*$", rf"\1 {place.image}", values.read_text(), flags=re.M)
    if count != 1:
        sys.exit(f"{values}: image.repository is not where it was expected")
    values.write_text(text)
    described = copy / "Chart.yaml"
    described.write_text(with_annotations(described.read_text(), place))
    run("helm", "package", copy, "--destination", folder())
    return chart_file(chart)


def with_annotations(text: str, place: Place) -> str:
    """A Chart.yaml with what Artifact Hub shows of a release: https://artifacthub.io/docs/topics/annotations/helm/"""
    image = {"name": NAME, "image": f"{place.image}:{version()}", "platforms": ["linux/amd64", "linux/arm64"]}
    changes = changelog.entries((REPOSITORY / "CHANGELOG.md").read_text(), changelog.name_for(version()))
    of_release = {"images": [image], "changes": [{"kind": kind, "description": line} for kind, line in changes]}
    # JSON is YAML too.
    lines = [f"  artifacthub.io/{key}: {json.dumps(json.dumps(value))}\n" for key, value in of_release.items()]
    return text.replace("\nannotations:\n", "\nannotations:\n" + "".join(lines), 1)


def chart_file(chart: str) -> Path:
    """The packaged chart."""
    return folder() / f"{chart}-{version()}.tgz"


def layout() -> Path:
    """The image's layout, unpacked from what `make image` wrote."""
    archive = Path(os.environ.get("RELEASE_IMAGE", REPOSITORY / "target/image" / f"{NAME}.tar"))
    if not archive.exists():
        sys.exit(f"{archive} does not exist: run `make image` first")
    unpacked = folder() / "image"
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(archive) as files:
        files.extractall(unpacked, filter="data")
    return unpacked


def index(unpacked: Path) -> dict:
    """What refers to the index of all architectures."""
    return json.loads((unpacked / "index.json").read_text())["manifests"][0]


def platforms(unpacked: Path) -> dict[str, str]:
    """The digest of the image of each architecture."""
    blob = unpacked / "blobs" / index(unpacked)["digest"].replace(":", "/")
    return {image["platform"]["architecture"]: image["digest"] for image in json.loads(blob.read_text())["manifests"]}


def bill(unpacked: Path, architecture: str) -> bytes:
    """The bill of materials in the image of an architecture."""
    return in_image(unpacked, architecture, f"usr/share/doc/{NAME}/sbom.cdx.json")


def in_image(unpacked: Path, architecture: str, path: str) -> bytes:
    """A file of the image of an architecture."""
    def blob(reference: dict) -> Path:
        return unpacked / "blobs" / reference["digest"].replace(":", "/")

    manifest = json.loads(blob({"digest": platforms(unpacked)[architecture]}).read_text())
    with tarfile.open(blob(manifest["layers"][0])) as layer:
        return layer.extractfile(path).read()


def digest(content: bytes) -> str:
    """As registries write it."""
    return "sha256:" + hashlib.sha256(content).hexdigest()
