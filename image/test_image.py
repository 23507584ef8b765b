"""The image holds what its documentation says, and the same input gives the same bytes."""

import contextlib
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import unittest
import unittest.mock
from pathlib import Path

import auditable
import licences
from build import TARGETS, target_folder
from containerfile import configuration
from sbom import TOOL, TOOL_VERSION, bill

FOLDER = Path(__file__).resolve().parent
BUILD = FOLDER / "build.py"


class Image(unittest.TestCase):
    """An image made from a file that stands in for the binary."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.first = cls.image("first", umask=0o022)
        cls.second = cls.image("second", umask=0o077)
        with tarfile.open(fileobj=io.BytesIO(cls.first)) as archive:
            cls.files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}

    @classmethod
    def image(cls, name: str, umask: int) -> bytes:
        """An image of both architectures."""
        cls.run_build(name, umask, ["--output", Path(cls.folder.name) / name / "image.tar"], ["amd64", "arm64"])
        return (Path(cls.folder.name) / name / "image.tar").read_bytes()

    @classmethod
    def run_build(cls, name: str, umask: int, options: list, architectures: list[str]) -> None:
        folder = Path(cls.folder.name) / name
        folder.mkdir()
        for file, content in (("binary", b"program"), ("bundle.pem", b"authorities"), ("bill.json", b"{}")):
            (folder / file).write_bytes(content)
        command = [sys.executable, BUILD, *options]
        command += ["--ca-bundle", folder / "bundle.pem", "--bill", folder / "bill.json"]
        for architecture in architectures:
            command += ["--binary", f"{architecture}={folder / 'binary'}"]
            command += ["--architecture", architecture]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        before = os.umask(umask)
        try:
            subprocess.run(command, check=True, capture_output=True, env=environment)
        finally:
            os.umask(before)

    def blob(self, reference: dict) -> bytes:
        content = self.files["blobs/" + reference["digest"].replace(":", "/")]
        self.assertEqual(len(content), reference["size"])
        self.assertEqual(hashlib.sha256(content).hexdigest(), reference["digest"].removeprefix("sha256:"))
        return content

    def images(self) -> list[tuple[dict, dict, bytes]]:
        """Descriptor, configuration and layer of each architecture."""
        top = json.loads(self.files["index.json"])["manifests"][0]
        images = []
        for reference in json.loads(self.blob(top))["manifests"]:
            manifest = json.loads(self.blob(reference))
            layer = gzip.decompress(self.blob(manifest["layers"][0]))
            images.append((reference, json.loads(self.blob(manifest["config"])), layer))
        return images

    def test_the_same_input_gives_the_same_bytes(self) -> None:
        self.assertEqual(self.first, self.second)

    def test_every_blob_is_referred_to_by_its_digest_and_both_architectures_are_there(self) -> None:
        platforms = [(image["platform"]["architecture"], config["architecture"]) for image, config, _ in self.images()]
        self.assertEqual(platforms, [("amd64", "amd64"), ("arm64", "arm64")])
        for _, config, layer in self.images():
            self.assertEqual(config["rootfs"]["diff_ids"], ["sha256:" + hashlib.sha256(layer).hexdigest()])

    def test_it_runs_as_nobody_in_particular_and_starts_what_the_first_argument_names(self) -> None:
        for _, config, _ in self.images():
            self.assertEqual(config["config"]["User"], "1001:1001")
            self.assertNotIn("Entrypoint", config["config"])
            self.assertEqual(config["config"]["Cmd"], ["/bin/openstack-ccm"])

    def test_it_holds_the_program_under_both_names_the_authorities_and_nothing_to_log_in_with(self) -> None:
        for _, _, layer in self.images():
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                members = {member.name: member for member in archive}
                self.assertEqual(archive.extractfile("bin/openstack-ccm").read(), b"program")
                self.assertEqual(archive.extractfile("etc/ssl/certs/ca-certificates.crt").read(), b"authorities")
            self.assertEqual(members["bin/openstack-ccm"].mode, 0o755)
            for name in ("openstack-cloud-controller-manager", "ip-mode-overlay"):
                self.assertEqual(members[f"bin/{name}"].linkname, "openstack-ccm")
            self.assertEqual({member.mtime for member in members.values()}, {1700000000})
            self.assertEqual({member.uid for member in members.values()}, {0})
            self.assertNotIn("bin/sh", members)

    def test_the_containerfile_takes_the_same_files(self) -> None:
        """Its last stage copies a folder that build.py wrote, which holds what the layer holds."""
        root = Path(self.folder.name) / "root/of/image"
        self.run_build("root", 0o077, ["--root", root], ["amd64", "arm64"])
        _, _, layer = self.images()[0]
        with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
            members = {member.name: member for member in archive}
            found = {path.relative_to(root).as_posix(): path for path in root.rglob("*")}
            self.assertEqual(sorted(found), sorted(members))
            for name, path in found.items():
                member = members[name]
                self.assertEqual(path.is_symlink(), member.issym())
                if member.issym():
                    self.assertEqual(os.readlink(path), member.linkname)
                    continue
                self.assertEqual(path.stat().st_mode & 0o7777, member.mode, name)
                if member.isfile():
                    self.assertEqual(path.read_bytes(), archive.extractfile(member).read())
        for name in ("usr/share/doc/openstack-ccm/LICENSE", "usr/share/doc/openstack-ccm/THIRD-PARTY-LICENSES", "usr/share/doc/openstack-ccm/sbom.cdx.json", "etc/passwd"):
            self.assertIn(name, found)


class Containerfile(unittest.TestCase):
    """The way with a container engine gives what the way without one gives."""

    TEXT = (FOLDER / "Containerfile").read_text()

    def test_the_image_runs_as_its_last_stage_says(self) -> None:
        self.assertEqual(
            configuration(self.TEXT),
            {
                "User": "1001:1001",
                "Cmd": ["/bin/openstack-ccm"],
                "Env": ["PATH=/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
                "WorkingDir": "/",
                "Labels": {
                    "org.opencontainers.image.title": "openstack-ccm",
                    "org.opencontainers.image.version": self.cargo("Cargo.toml")["workspace"]["package"]["version"],
                    "org.opencontainers.image.licenses": "Apache-2.0",
                    "org.opencontainers.image.source": self.cargo("Cargo.toml")["workspace"]["package"]["repository"],
                },
            },
        )

    def test_what_only_an_engine_would_obey_is_an_error(self) -> None:
        for line in ("EXPOSE 10258", "COPY LICENSE /LICENSE", "ENTRYPOINT [\"/bin/sh\"]", "ENV PATH /bin", "CMD /bin/sh"):
            with self.assertRaisesRegex(ValueError, "does not know what this means"):
                configuration(f"{self.TEXT}\n{line}\n")

    def test_it_is_built_with_the_pinned_toolchain(self) -> None:
        channel = self.cargo("rust-toolchain.toml")["toolchain"]["channel"]
        self.assertIn(f"FROM rust:{channel}-slim AS build\n", self.TEXT)

    def cargo(self, file: str) -> dict:
        return tomllib.loads((FOLDER.parent / file).read_text())


class Auditable(unittest.TestCase):
    """The list of crates in the binary, for scanners."""

    def test_the_tool_is_used_where_it_is_there(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            program = Path(name) / f"tools/{auditable.TOOL}-{auditable.TOOL_VERSION}/bin/{auditable.TOOL}"
            program.parent.mkdir(parents=True)
            program.touch()
            self.assertEqual(auditable.cargo(Path(name)), [str(program), "auditable"])

    def test_without_the_tool_the_binary_is_built_all_the_same_and_that_is_said(self) -> None:
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as name, unittest.mock.patch.object(auditable, "install", lambda _: False):
            with contextlib.redirect_stderr(said):
                self.assertEqual(auditable.cargo(Path(name)), ["cargo"])
        self.assertIn("scanners find no crates in the binary", said.getvalue())


class BillOfMaterials(unittest.TestCase):
    """The document of the real tool, where `make image` has installed it."""

    @unittest.skipUnless((target_folder() / f"tools/{TOOL}-{TOOL_VERSION}").exists(), f"{TOOL} is not installed")
    def test_it_names_what_is_linked_with_its_checksum_and_no_path_of_this_machine(self) -> None:
        target = TARGETS["amd64"][0]
        text = bill(FOLDER.parent, target, 1700000000, target_folder())
        document = json.loads(text)
        components = {component["name"]: component for component in document["components"]}
        self.assertEqual((document["bomFormat"], document["specVersion"]), ("CycloneDX", "1.5"))
        self.assertEqual(document["metadata"]["component"]["name"], "openstack-ccm")
        self.assertEqual(len(components["kube"]["hashes"][0]["content"]), 64)
        self.assertIn("licenses", components["rustls"])
        for of_tests in ("insta", "wiremock", "openstack-ccm-kube-sim"):
            self.assertNotIn(of_tests, components)
        self.assertNotIn(tempfile.gettempdir(), text.decode())
        self.assertEqual(text, bill(FOLDER.parent, target, 1700000000, target_folder()))


class Licences(unittest.TestCase):
    """The notices of others go with the binary."""

    def test_each_text_stands_once_with_all_crates_that_have_it(self):
        with tempfile.TemporaryDirectory() as name:
            folders = {}
            for crate, file in (("a", "LICENSE-MIT"), ("b", "LICENCE"), ("c", "lib.rs")):
                (Path(name) / crate).mkdir()
                (Path(name) / crate / file).write_text("Permission is granted\n")
                folders[(crate, "1.0.0")] = Path(name) / crate
            bill = {"components": [{"name": crate, "version": "1.0.0", "licenses": [{"expression": "MIT"}]} for crate in ("a", "b", "c", "ours")]}
            text = licences.texts(json.dumps(bill).encode(), folders).decode()
        self.assertEqual(text.count("Permission is granted"), 1)
        self.assertIn("a 1.0.0, b 1.0.0\n", text)
        self.assertIn("c 1.0.0\n\nMIT: no text comes with the crate", text)
        self.assertNotIn("ours", text)

    def test_the_crates_of_this_repository_have_their_sources_on_this_machine(self):
        found = licences.folders(FOLDER.parent, TARGETS["amd64"][0])
        self.assertTrue(any(name == "kube" for name, _ in found))
        self.assertFalse(any(name.startswith("openstack-ccm") for name, _ in found))


if __name__ == "__main__":
    unittest.main()
