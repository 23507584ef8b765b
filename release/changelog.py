"""The sections of CHANGELOG.md. https://keepachangelog.com/en/1.1.0/"""

import re

SECTION = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
# The end of the version of a tree from one release to the next.
DEVELOPMENT = "-dev"
REFERENCE = re.compile(r"^\[[^\]]+\]: ", re.MULTILINE)


def section(text: str, name: str) -> str:
    """The content of a section, without its heading and without headings that have no line."""
    headings = list(SECTION.finditer(text))
    for heading, following in zip(headings, [*headings[1:], None]):
        if heading["name"] == name:
            end = following.start() if following else len(text)
            content = REFERENCE.split(text[heading.end() : end])[0]
            return re.sub(r"^###+ [^\n]*\n+(?=(### |\Z))", "", content.strip() + "\n", flags=re.MULTILINE).strip()
    raise ValueError(f"CHANGELOG.md has no section [{name}]: add '## [{name}] - YEAR-MONTH-DAY' with what changed")


def name_for(version: str) -> str:
    """The section that says what is in a version. What is being developed is not released."""
    return "Unreleased" if version.endswith(DEVELOPMENT) else version


def entries(text: str, name: str) -> list[tuple[str, str]]:
    """The entries of a section, each with what kind of change it is."""
    found, kind = [], ""
    for line in section(text, name).splitlines():
        if line.startswith("### "):
            kind = line[4:].lower()
        elif line.startswith("- ") and kind:
            found.append([kind, line[2:]])
        elif line.startswith("  ") and found:
            found[-1][1] += " " + line.strip()
    return [(kind, line) for kind, line in found]


def day(text: str, name: str) -> str | None:
    """The date of a section."""
    return next((heading["date"] for heading in SECTION.finditer(text) if heading["name"] == name), None)


def faults(text: str, version: str, tagged: bool) -> list[str]:
    """What keeps a version from being released."""
    try:
        content = section(text, name_for(version))
    except ValueError as error:
        return [str(error)]
    if version.endswith(DEVELOPMENT):
        advice = f"run `make release-version VERSION={version.removesuffix(DEVELOPMENT)}` first"
        return [f"{version} is the version of a tree between two releases: {advice}"] if tagged else []
    found = []
    if not day(text, version):
        found.append(f"CHANGELOG.md: the section [{version}] has no date: write '## [{version}] - YEAR-MONTH-DAY'")
    if not content:
        found.append(f"CHANGELOG.md: the section [{version}] is empty")
    if tagged and section(text, "Unreleased"):
        found.append(f"CHANGELOG.md: [Unreleased] has lines that the release notes would lack: move them to [{version}]")
    return found
