"""What a release pushes is what was built, and it says what is in it."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import artifacts
import changelog
import provenance
import release
from tools import REPOSITORY, built

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

    def test_ours_can_be_read(self) -> None:
        text = (REPOSITORY / "CHANGELOG.md").read_text()
        self.assertEqual(changelog.faults(text, artifacts.version(), tagged=False), [])
        known = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
        self.assertEqual({line[4:] for line in text.splitlines() if line.startswith("### ")} - known, set())


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
        self.assertIn(f"the tag is v9.9.9, but Cargo.toml says {artifacts.version()}", refused.stderr)

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
    def test_a_dry_run_pushes_pulls_and_compares_and_verifies_signatures_where_cosign_was_built(self) -> None:
        signed = built("cosign").exists()
        image = self.image()
        done = self.command("dry-run", *([] if signed else ["--unsigned"]), RELEASE_IMAGE=str(image))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("another key is refused" if signed else "signatures were left out", done.stdout)
        text = (self.folder / "publish/notes.md").read_text()
        self.assertIn("helm upgrade --install openstack-ccm oci://127.0.0.1:", text)
        # The image of the chart is the one that was released with it.
        values = (self.folder / "publish/chart/openstack-ccm/values.yaml").read_text()
        self.assertRegex(values, r"\nimage:\n(  .*\n)*?  repository: 127\.0\.0\.1:\d+/openstack-ccm/openstack-ccm\n")

    def image(self) -> Path:
        """An image with a stand-in for the binary."""
        for name, content in (("binary", "program"), ("bill.json", '{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1}')):
            (self.folder / name).write_text(content)
        output = self.folder / "image.tar"
        command = [sys.executable, REPOSITORY / "image/build.py", "--output", output, "--bill", self.folder / "bill.json"]
        for architecture in ("amd64", "arm64"):
            command += ["--architecture", architecture, "--binary", f"{architecture}={self.folder / 'binary'}"]
        subprocess.run(command, check=True, capture_output=True)
        return output


if __name__ == "__main__":
    unittest.main()
