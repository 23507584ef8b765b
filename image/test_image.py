"""The image holds what its documentation says, and the same input gives the same bytes."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

BUILD = Path(__file__).resolve().parent / "build.py"


class Image(unittest.TestCase):
    """An image made from a file that stands in for the binary."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.first = cls.build("first", umask=0o022)
        cls.second = cls.build("second", umask=0o077)
        with tarfile.open(fileobj=io.BytesIO(cls.first)) as archive:
            cls.files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}

    @classmethod
    def build(cls, name: str, umask: int) -> bytes:
        folder = Path(cls.folder.name) / name
        folder.mkdir()
        (folder / "binary").write_bytes(b"program")
        (folder / "bundle.pem").write_bytes(b"authorities")
        command = [sys.executable, BUILD, "--output", folder / "image.tar", "--ca-bundle", folder / "bundle.pem"]
        for architecture in ("amd64", "arm64"):
            command += ["--architecture", architecture, "--binary", f"{architecture}={folder / 'binary'}"]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        before = os.umask(umask)
        try:
            subprocess.run(command, check=True, capture_output=True, env=environment)
        finally:
            os.umask(before)
        return (folder / "image.tar").read_bytes()

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
            self.assertEqual(members["bin/openstack-cloud-controller-manager"].linkname, "openstack-ccm")
            self.assertEqual({member.mtime for member in members.values()}, {1700000000})
            self.assertEqual({member.uid for member in members.values()}, {0})
            self.assertNotIn("bin/sh", members)

    def test_the_bill_of_materials_names_what_is_linked_with_its_checksum(self) -> None:
        text = (Path(self.folder.name) / "first/image.amd64.cdx.json").read_text()
        document = json.loads(text)
        components = {component["name"]: component for component in document["components"]}
        self.assertEqual(document["bomFormat"], "CycloneDX")
        self.assertEqual(len(components["kube"]["hashes"][0]["content"]), 64)
        self.assertIn("licenses", components["rustls"])
        for of_tests in ("insta", "wiremock", "openstack-ccm-kube-sim"):
            self.assertNotIn(of_tests, components)


if __name__ == "__main__":
    unittest.main()
