"""What a release pushes is what was built, and it says what is in it."""

import contextlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
from datetime import date
from pathlib import Path

import artifacts
import changelog
import files
import krew
import provenance
import registry
import release
import tools
import versions
from tools import REPOSITORY, built

# A program that says its version, and likes every configuration.
STAND_IN = f"#!/bin/sh\ncase $1 in --version) echo openstack-ccm {artifacts.version()} ;; check-config) ;; *) exit 2 ;; esac\n"
RELEASE = Path(__file__).resolve().parent / "release.py"
CHANGELOG = """# Changelog

## [Unreleased]

### Added

### Fixed
- A fix that nobody has yet.

## [0.2.0] - 2027-01-02

The second one.

### Added

### Changed
- A key.

## [0.1.0]

### Added
- Everything.

[0.2.0]: https://example.org/0.2.0
"""


class Changelog(unittest.TestCase):
    """Release notes are a section of the changelog."""

    def test_the_notes_are_the_section_without_what_is_empty_or_belongs_to_others(self) -> None:
        self.assertEqual(changelog.section(CHANGELOG, "0.2.0"), "The second one.\n\n### Changed\n- A key.")
        self.assertEqual(changelog.section(CHANGELOG, "0.1.0"), "### Added\n- Everything.")

    def test_a_version_without_section_or_date_is_not_released(self) -> None:
        self.assertEqual(changelog.faults(CHANGELOG, "0.2.0", tagged=False), [])
        self.assertIn("has no section [0.3.0]", changelog.faults(CHANGELOG, "0.3.0", tagged=False)[0])
        self.assertIn("has no date", changelog.faults(CHANGELOG, "0.1.0", tagged=False)[0])

    def test_a_tag_is_not_released_while_changes_stand_elsewhere(self) -> None:
        self.assertIn("[Unreleased] has lines", changelog.faults(CHANGELOG, "0.2.0", tagged=True)[0])
        released = CHANGELOG.replace("- A fix that nobody has yet.\n", "")
        self.assertEqual(changelog.faults(released, "0.2.0", tagged=True), [])

    def test_between_two_releases_nothing_is_released(self) -> None:
        self.assertEqual(changelog.faults(CHANGELOG, "0.3.0-dev", tagged=False), [])
        self.assertIn("make release-version VERSION=0.3.0", changelog.faults(CHANGELOG, "0.3.0-dev", tagged=True)[0])
        self.assertEqual(changelog.section(CHANGELOG, changelog.name_for("0.3.0-dev")), "### Fixed\n- A fix that nobody has yet.")

    def test_each_entry_has_the_kind_of_its_heading(self) -> None:
        text = "## [1.0.0] - 2027-01-02\n\n### Added\n- One that goes\n  on.\n- Two.\n\n### Fixed\n- Three.\n"
        self.assertEqual(changelog.entries(text, "1.0.0"), [("added", "One that goes on."), ("added", "Two."), ("fixed", "Three.")])

    def test_ours_can_be_read(self) -> None:
        text = (REPOSITORY / "CHANGELOG.md").read_text()
        self.assertEqual(changelog.faults(text, artifacts.version(), tagged=False), [])
        self.assertNotIn("\n  ", changelog.section(text, "Unreleased"), "an entry is one line")
        known = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
        self.assertEqual({line[4:] for line in text.splitlines() if line.startswith("### ")} - known, set())


class Versions(unittest.TestCase):
    """The table of support follows from the releases."""

    FIRST = [{"version": "0.1.0", "date": date(2026, 8, 31)}]

    def test_a_release_takes_its_place_and_ends_the_support_of_the_one_before(self) -> None:
        releases = versions.with_release(self.FIRST, "0.10.0", date(2027, 3, 1))
        releases = versions.with_release(releases, "0.2.1", date(2026, 10, 1))
        releases = versions.with_release(releases, "0.2.0", date(2026, 9, 1))
        self.assertEqual([release["version"] for release in releases], ["0.10.0", "0.2.1", "0.2.0", "0.1.0"])
        self.assertEqual(
            versions.table(releases).splitlines()[2:],
            [
                "| 0.10 | 2027-03-01 | 0.11.0 is released | six months later |",
                "| 0.2 | 2026-09-01 | 2027-03-01 | 2027-09-01 |",
                "| 0.1 | 2026-08-31 | 2026-09-01 | 2027-03-01 |",
            ],
        )

    def test_a_tree_is_newer_than_what_was_released(self) -> None:
        self.assertEqual(versions.faults(self.FIRST, "0.2.0-dev"), [])
        self.assertEqual(versions.faults(self.FIRST, "0.1.0"), [])
        self.assertIn("is developed, but release/versions.toml has 0.1.0", versions.faults(self.FIRST, "0.1.0-dev")[0])
        self.assertIn("does not have 0.2.0", versions.faults(self.FIRST, "0.2.0")[0])

    def test_the_same_release_again_changes_nothing(self) -> None:
        self.assertEqual(versions.with_release(self.FIRST, "0.1.0", date(2026, 8, 31)), self.FIRST)

    def test_half_a_year_ends_on_a_day_that_there_is(self) -> None:
        self.assertEqual(versions.six_months_after(date(2026, 8, 31)), date(2027, 2, 28))
        self.assertEqual(versions.six_months_after(date(2026, 3, 31)), date(2026, 9, 30))

    def test_file_and_page_are_those_that_are_written(self) -> None:
        self.assertEqual(versions.FILE.read_text(), versions.text(versions.known()))
        current = versions.PAGE.read_text()
        self.assertEqual(versions.page(current, versions.known()), current)


class Registry(unittest.TestCase):
    """The registry that pages name."""

    def test_images_are_found_and_nothing_else(self) -> None:
        text = "`docker://a.example/openstack-ccm:1` b.example:5000/team/ip-mode-overlay@sha256:0 registry.invalid/openstack-ccm "
        text += "https://github.com/openstack-ccm/openstack-ccm/blob c.example/openstack-ccm/charts charts/openstack-ccm d.example/openstack-ccm-canary"
        self.assertEqual(registry.found_in(text), {"a.example", "b.example:5000/team"})

    def test_every_page_names_the_one_that_is_written_down(self) -> None:
        self.assertEqual(registry.faults(tagged=False), [])
        self.assertGreater(sum(registry.named() in registry.found_in(text) for text in registry.texts().values()), 10)

    def test_another_one_is_named_everywhere(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "registry.toml").write_text(registry.FILE.read_text())
            only_now = "<!-- begin: not published -->\nNothing.\n<!-- end -->\n<!-- published\n"
            pages = {"page.md": f"{only_now}`{registry.named()}/openstack-ccm:1`, registry.invalid/openstack-ccm\n-->\n"}
            for path in registry.SAYING:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).touch()
            replaced = {"REPOSITORY": folder, "FILE": folder / "registry.toml", "texts": lambda: pages}
            with unittest.mock.patch.multiple(registry, **replaced):
                registry.move("ghcr.example/team")
                self.assertEqual((folder / "page.md").read_text(), "`ghcr.example/team/openstack-ccm:1`, registry.invalid/openstack-ccm\n")
                self.assertEqual(registry.named(), "ghcr.example/team")
                self.assertIn("page.md names registry.example.org, but", registry.faults(tagged=False)[0])
                with self.assertRaisesRegex(SystemExit, "is no registry"):
                    registry.move("https://ghcr.example")


class Krew(unittest.TestCase):
    """The manifest of the plugin."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.archive = Path(temporary.name) / "openstack-ccm_1.0.0_linux_amd64.tar.gz"
        self.archive.write_bytes(b"archive")

    def test_it_names_each_archive_with_its_checksum(self) -> None:
        made = krew.manifest("1.0.0", {("linux", "arm64"): self.archive, ("linux", "amd64"): self.archive, ("darwin", "arm64"): self.archive})
        platforms = [tuple(entry["selector"]["matchLabels"].values()) for entry in made["spec"]["platforms"]]
        self.assertEqual(platforms, [("darwin", "arm64"), ("linux", "amd64"), ("linux", "arm64")])
        first = made["spec"]["platforms"][0]
        self.assertEqual(first["sha256"], artifacts.digest(b"archive")[7:])
        self.assertTrue(first["uri"].endswith("/releases/download/v1.0.0/openstack-ccm_1.0.0_linux_amd64.tar.gz"), first["uri"])

    def test_what_krew_would_refuse_is_not_made(self) -> None:
        with self.assertRaisesRegex(ValueError, "spec.version does not match"):
            krew.manifest("one", {("linux", "amd64"): self.archive})
        with self.assertRaisesRegex(ValueError, "platforms has too few entries"):
            krew.manifest("1.0.0", {})
        self.assertEqual(krew.faults({"kind": "Plugin"}, krew.SCHEMA)[0], ".apiVersion is missing")

    def test_it_is_yaml(self) -> None:
        text = krew.yaml({"a": {"b": ["c", {"d": "e: f"}]}, "g": "h\ni"})
        self.assertEqual(text, 'a:\n  b:\n    - "c"\n    -\n      d: "e: f"\ng: "h\\ni"\n')


class Provenance(unittest.TestCase):
    """Where something comes from is stated by who built it."""

    def test_a_workflow_is_named_with_its_run_and_its_commit(self) -> None:
        variables = {
            "GITHUB_SERVER_URL": "https://forge.example",
            "GITHUB_REPOSITORY": "team/project",
            "GITHUB_WORKFLOW_REF": "team/project/.github/workflows/release.yml@refs/tags/v0.1.0",
            "GITHUB_REF": "refs/tags/v0.1.0",
            "GITHUB_RUN_ID": "7",
            "GITHUB_RUN_ATTEMPT": "2",
        }
        origin = provenance.predicate(variables, "abc", "0.1.0", ["amd64"], "2027-01-02T03:04:05Z")
        run = origin["runDetails"]
        self.assertEqual(
            run["builder"]["id"], "https://forge.example/team/project/.github/workflows/release.yml@refs/tags/v0.1.0"
        )
        self.assertEqual(run["metadata"]["invocationId"], "https://forge.example/team/project/actions/runs/7/attempts/2")
        source = origin["buildDefinition"]["resolvedDependencies"]
        expected = {"uri": "git+https://forge.example/team/project@refs/tags/v0.1.0", "digest": {"gitCommit": "abc"}}
        self.assertEqual(source, [expected])

    def test_what_somebody_builds_by_hand_does_not_claim_a_workflow(self) -> None:
        run = provenance.predicate({}, "abc", "0.1.0", ["amd64"], "2027-01-02T03:04:05Z")["runDetails"]
        self.assertEqual(run["builder"]["id"], provenance.BY_HAND)
        self.assertNotIn("invocationId", run["metadata"])


class Command(unittest.TestCase):
    """The commands of release.py."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def command(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("RELEASE_", "COSIGN_"))}
        environment |= {"RELEASE_FOLDER": str(self.folder / "publish")} | variables
        return subprocess.run([sys.executable, RELEASE, *arguments], capture_output=True, text=True, env=environment)

    def test_another_tag_than_the_version_is_refused(self) -> None:
        self.assertEqual(self.command("check").returncode, 0)
        refused = self.command("check", "--tag", "v9.9.9")
        self.assertEqual(refused.returncode, 1)
        between = artifacts.version().endswith(changelog.DEVELOPMENT)
        expected = "between two releases" if between else f"the tag is v9.9.9, but Cargo.toml says {artifacts.version()}"
        self.assertIn(expected, refused.stderr)

    def test_a_version_is_written_to_every_place_that_states_it(self) -> None:
        places = ["Cargo.toml", "Cargo.lock", *{path for path, _ in artifacts.STATED}]
        for path in places:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / path, self.folder / path)
        before = {path: (self.folder / path).read_text() for path in places}
        with unittest.mock.patch.object(artifacts, "REPOSITORY", self.folder):
            current = artifacts.version()
            artifacts.set_version("99.0.0")
            self.assertEqual(artifacts.version(), "99.0.0")
            for path, text in artifacts.STATED:
                self.assertEqual(artifacts.stated_version(text).search((self.folder / path).read_text())[2], "99.0.0", path)
            self.assertNotIn(f'version = "{current}"', (self.folder / "Cargo.lock").read_text())
            artifacts.set_version(current)
            with self.assertRaisesRegex(SystemExit, "is no version"):
                artifacts.set_version("v1.0.0")
        self.assertEqual({path: (self.folder / path).read_text() for path in places}, before)

    def test_nothing_is_pushed_anywhere_by_default(self) -> None:
        refused = self.command("push")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("set RELEASE_REGISTRY", refused.stderr)

    def test_only_a_registry_on_this_machine_is_spoken_to_without_tls(self) -> None:
        self.assertEqual(artifacts.Place("127.0.0.1:5000/a").helm_options(), ["--plain-http"])
        for registry in ("ghcr.io/openstack-ccm", "192.0.2.1:5000/a", "registry.example.org"):
            self.assertEqual(artifacts.Place(registry).helm_options(), [])

    def test_what_is_not_the_same_in_the_registry_ends_the_verification(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()), self.assertRaisesRegex(SystemExit, "the registry has sha256:2"):
            release.equal("image", "sha256:1", "sha256:1")
            release.equal("image", "sha256:2", "sha256:1")

    @unittest.skipUnless(shutil.which("go"), "Go is not installed")
    def test_all_programs_find_the_login_where_docker_keeps_it(self) -> None:
        variables = {"RELEASE_REGISTRY": "registry.example.org/team", "RELEASE_USER": "somebody"}
        self.assertIn("set RELEASE_USER and RELEASE_PASSWORD", self.command("login", **variables).stderr)
        done = self.command("login", RELEASE_PASSWORD="secret", DOCKER_CONFIG=str(self.folder), **variables)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        known = json.loads((self.folder / "config.json").read_text())["auths"]
        self.assertEqual(list(known), ["registry.example.org"])

    @unittest.skipUnless(shutil.which("go"), "Go is not installed")
    def test_a_dry_run_pushes_pulls_compares_signs_and_verifies(self) -> None:
        # Where nobody has built cosign, which takes minutes, what is asked of it goes to a stand-in.
        variables = {"RELEASE_IMAGE": str(self.image())}
        if not built("cosign").exists():
            variables |= {"COSIGN": str(REPOSITORY / "release/cosign_stand_in.py"), "STAND_IN_FOLDER": str(self.folder)}
        done = self.command("dry-run", **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("another key is refused", done.stdout)
        self.assertIn("a changed file is refused", done.stdout)
        self.assertTrue((self.folder / "publish" / f"{files.CHECKSUMS}.sigstore.json").exists())
        text = (self.folder / "publish/notes.md").read_text()
        self.assertIn("helm upgrade --install openstack-ccm oci://127.0.0.1:", text)
        for said in ("chart openstack-ccm: renders", "chart ip-mode-overlay: renders", "files with the released image", "checksums of 6 files"):
            self.assertIn(said, done.stdout)
        here = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
        self.assertIn(f"program for {here}: openstack-ccm {artifacts.version()}; check-config ended well", done.stdout)
        self.holds_what_is_released()
        # The image of the chart is the one that was released with it.
        values = (self.folder / "publish/chart/openstack-ccm/values.yaml").read_text()
        self.assertRegex(values, r"\nimage:\n(  .*\n)*?  repository: 127\.0\.0\.1:\d+/openstack-ccm/openstack-ccm\n")

    @unittest.skipUnless(shutil.which("go"), "Go is not installed")
    def test_a_program_that_cannot_be_built_ends_nothing(self) -> None:
        with unittest.mock.patch.dict(tools.PROGRAMS, {"cosign": ("example.org/none", "release/tools/none")}):
            self.assertFalse(tools.can_be_had("cosign"))
    def holds_what_is_released(self) -> None:
        """The files of the release."""
        folder, version = self.folder / "publish", artifacts.version()
        with tarfile.open(folder / f"openstack-ccm_{version}_linux_arm64.tar.gz") as archive:
            modes = {entry.name: entry.mode for entry in archive}
            self.assertEqual(modes, {"openstack-ccm": 0o755, "LICENSE": 0o644})
            self.assertEqual(archive.extractfile("openstack-ccm").read().decode(), STAND_IN)
        self.assertRegex((folder / "chart/ip-mode-overlay/values.yaml").read_text(), r"\n  repository: 127\.0\.0\.1:\d+/openstack-ccm/openstack-ccm\n")
        described = (folder / "chart/openstack-ccm/Chart.yaml").read_text()
        changed = changelog.entries((REPOSITORY / "CHANGELOG.md").read_text(), changelog.name_for(version))
        for key in ("images", "changes") if changed else ("images",):
            value = next(line for line in described.splitlines() if line.startswith(f"  artifacthub.io/{key}: ")).split(": ", 1)[1]
            self.assertTrue(json.loads(json.loads(value)), key)
        sums = (folder / files.CHECKSUMS).read_text()
        self.assertEqual(len(sums.splitlines()), 6, sums)
        done = subprocess.run(["sha256sum", "--check", files.CHECKSUMS], cwd=folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_file_that_was_changed_after_it_was_signed_for_is_noticed(self) -> None:
        os.environ["RELEASE_FOLDER"] = str(self.folder)
        self.addCleanup(os.environ.pop, "RELEASE_FOLDER")
        made = [self.folder / "a.tgz", self.folder / "b.tgz"]
        for file in made:
            file.write_text(file.name)
        sums = "".join(f"{artifacts.digest(file.name.encode())[7:]}  {file.name}\n" for file in made)
        (self.folder / files.CHECKSUMS).write_text(sums)
        with unittest.mock.patch.object(files, "made", lambda _: made), contextlib.redirect_stdout(io.StringIO()):
            files.verify_checksums(Path())
            made[1].write_text("changed")
            with self.assertRaisesRegex(SystemExit, "b.tgz: SHA256SUMS does not have its checksum"):
                files.verify_checksums(Path())

    def image(self) -> Path:
        """An image with a stand-in for the binary."""
        for name, content in (("binary", STAND_IN), ("bill.json", '{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1}')):
            (self.folder / name).write_text(content)
        output = self.folder / "image.tar"
        command = [sys.executable, REPOSITORY / "image/build.py", "--output", output, "--bill", self.folder / "bill.json"]
        for architecture in ("amd64", "arm64"):
            command += ["--architecture", architecture, "--binary", f"{architecture}={self.folder / 'binary'}"]
        subprocess.run(command, check=True, capture_output=True)
        return output


if __name__ == "__main__":
    unittest.main()
