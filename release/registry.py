"""The registry that pages, charts and help name: release/registry.toml."""

import re
import sys
import tomllib

from tools import REPOSITORY, git

FILE = REPOSITORY / "release/registry.toml"
# Nobody can have an image there.
PLACEHOLDER = "registry.example.org"
# What names it to users, and the test that follows the guides.
NAMING = ["README.md", "CHANGELOG.md", "SECURITY.md", "docs", "charts", "manifests", "crates/ccm/src", "crates/tools/src", "crates/ccm/tests/chart/guides.rs", "crates/ccm/tests/chart/documented.rs"]
# What stands on a page only while nothing is published, and what stands there afterwards.
UNPUBLISHED = re.compile(r"<!-- begin: not published -->\n.*?<!-- end -->\n\n?", re.S)
PUBLISHED = re.compile(r"<!-- published\n(.*?)-->\n", re.S)
# Whoever reads one of them would look for something to download.
SAYING = ["CHANGELOG.md", "SECURITY.md", "docs/reference/versions.md", "docs/guides/get-the-program.md", "docs/guides/install.md", "docs/guides/release.md", "docs/tutorials/quickstart.md"]
# An image of ours behind a registry.
IMAGE = re.compile(r"(?<![\w.-])((?:[a-z0-9-]+\.)+[a-z]+(?::\d+)?(?:/[a-z0-9-]+)*)/(openstack-ccm|ip-mode-overlay)(?![\w/.-])")
# Manifests name one that cannot exist until somebody chooses, and sources lie in the other.
OTHERS = {"registry.invalid", "github.com/openstack-ccm"}


def named() -> str:
    """The registry."""
    return tomllib.loads(FILE.read_text())["registry"]


def found_in(text: str) -> set[str]:
    """The registries of our images in a text."""
    return {match[1] for match in IMAGE.finditer(text)} - OTHERS


def texts() -> dict[str, str]:
    """All files that may name it."""
    paths = git("ls-files", "--cached", "--others", "--exclude-standard", *NAMING).splitlines()
    return {path: (REPOSITORY / path).read_text() for path in paths if not path.endswith((".svg", ".png", ".tgz"))}


def faults(tagged: bool) -> list[str]:
    """What keeps pages from being released."""
    registry = named()
    found = [
        f"{path} names {other}, but release/registry.toml says {registry}: run `make release-registry REGISTRY={registry}`"
        for path, text in texts().items()
        for other in sorted(found_in(text) - {registry})
    ]
    published = registry != PLACEHOLDER
    for path in SAYING:
        if bool(UNPUBLISHED.search((REPOSITORY / path).read_text())) == published:
            found.append(f"{path} {'still says' if published else 'does not say'} that no version is published")
    if tagged and registry == PLACEHOLDER:
        found.append(f"pages name {PLACEHOLDER}, where nobody finds an image: run `make release-registry REGISTRY=...` first")
    return found


def move(wanted: str) -> None:
    """Names another registry in every place."""
    if not re.fullmatch(r"(?:[a-z0-9-]+\.)+[a-z]+(?::\d+)?(?:/[a-z0-9-]+)*", wanted):
        sys.exit(f"{wanted} is no registry: write one such as ghcr.io/openstack-ccm")
    before = named()
    for path, text in texts().items():
        moved = IMAGE.sub(lambda match: f"{wanted}/{match[2]}" if match[1] == before else match[0], text)
        if before == PLACEHOLDER:
            moved = PUBLISHED.sub(r"\1", UNPUBLISHED.sub("", moved))
        if moved != text:
            (REPOSITORY / path).write_text(moved)
    FILE.write_text(FILE.read_text().replace(f'"{before}"', f'"{wanted}"'))
