"""The released versions: release/versions.toml, and the table of support that follows from it."""

import re
import tomllib
from datetime import date
from pathlib import Path

import changelog
from tools import REPOSITORY

FILE = REPOSITORY / "release/versions.toml"
PAGE = REPOSITORY / "docs/reference/versions.md"
HEAD = "# The released versions, newest first. `make release-record` writes this file, and the table of support from it.\n"
BEGIN = "<!-- begin: support, written by `make release-record` -->\n"
END = "<!-- end: support -->\n"


def known(file: Path = FILE) -> list[dict]:
    """Version and date of each release, newest first."""
    return tomllib.loads(file.read_text()).get("release", [])


def with_release(releases: list[dict], version: str, day: date) -> list[dict]:
    """The releases and one more, in its place."""
    others = [release for release in releases if release["version"] != version]
    return sorted([*others, {"version": version, "date": day}], key=lambda release: numbers(release["version"]), reverse=True)


def numbers(version: str) -> tuple[int, ...]:
    """The parts of a version, which are ordered as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def faults(releases: list[dict], version: str) -> list[str]:
    """What the released versions say against the version of this tree."""
    names = [release["version"] for release in releases]
    if version.endswith(changelog.DEVELOPMENT):
        older = [name for name in names if numbers(name) >= numbers(version)]
        return [f"{version} is developed, but release/versions.toml has {name}: set a newer one" for name in older]
    return [] if version in names else [f"release/versions.toml does not have {version}: run `make release-record`"]


def text(releases: list[dict]) -> str:
    """The file."""
    return HEAD + "".join(f'\n[[release]]\nversion = "{release["version"]}"\ndate = {release["date"]}\n' for release in releases)


def table(releases: list[dict]) -> str:
    """The table of support: the newest minor version gets all fixes, the one before it some for six months more."""
    first = {}
    for release in reversed(releases):
        first.setdefault(minor(release["version"]), release["date"])
    lines, successor = [], None
    for name in sorted(first, key=numbers, reverse=True):
        major, number = numbers(name)
        until = f"{major}.{number + 1}.0 is released" if successor is None else str(successor)
        end = "six months later" if successor is None else str(six_months_after(successor))
        lines.append(f"| {name} | {first[name]} | {until} | {end} |\n")
        successor = first[name]
    return "| Version | Released | All fixes until | End of support |\n| --- | --- | --- | --- |\n" + "".join(lines)


def minor(version: str) -> str:
    """0.2 of 0.2.1."""
    return version.rsplit(".", 1)[0]


def six_months_after(day: date) -> date:
    """The same day half a year later, or the last one of that month."""
    month = day.month + 6
    year, month = (day.year + 1, month - 12) if month > 12 else (day.year, month)
    for last in (day.day, 30, 29, 28):
        try:
            return date(year, month, last)
        except ValueError:
            continue
    raise ValueError(day)


def page(current: str, releases: list[dict]) -> str:
    """The page with the table in it."""
    before, rest = current.split(BEGIN)
    return before + BEGIN + table(releases) + END + rest.split(END)[1]


def record(version: str, day: date) -> None:
    """Notes a release in the file, and writes the table."""
    releases = with_release(known(), version, day)
    FILE.write_text(text(releases))
    PAGE.write_text(page(PAGE.read_text(), releases))
