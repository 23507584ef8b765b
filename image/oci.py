"""An OCI image layout in one tar file, written so that the same input gives the same bytes.

https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

MEDIA = "application/vnd.oci.image."
INDEX = MEDIA + "index.v1+json"
MANIFEST = MEDIA + "manifest.v1+json"
CONFIG = MEDIA + "config.v1+json"
LAYER = MEDIA + "layer.v1.tar+gzip"


@dataclass(frozen=True)
class File:
    """A file of a layer: its content, or the target of a symbolic link."""

    content: bytes = b""
    mode: int = 0o644
    link: str | None = None


@dataclass
class Layout:
    """The blobs of a layout, by digest."""

    blobs: dict[str, bytes] = field(default_factory=dict)

    def add(self, content: bytes, media_type: str) -> dict:
        """Keeps a blob, and returns what refers to it."""
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def add_json(self, value: dict, media_type: str) -> dict:
        return self.add(canonical(value), media_type)

    def add_image(self, architecture: str, files: dict[str, File], config: dict, created: str, epoch: int) -> dict:
        """Adds an image of one layer, and returns what refers to it."""
        layer = tar(files, epoch)
        diff_id = "sha256:" + hashlib.sha256(layer).hexdigest()
        # The name and the time of a gzip file would differ from run to run.
        layer_reference = self.add(gzip.compress(layer, compresslevel=9, mtime=0), LAYER)
        config_reference = self.add_json(
            {
                "architecture": architecture,
                "os": "linux",
                "created": created,
                "config": config,
                "rootfs": {"type": "layers", "diff_ids": [diff_id]},
                "history": [{"created": created, "created_by": "image/build.py"}],
            },
            CONFIG,
        )
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config_reference, "layers": [layer_reference]}
        reference = self.add_json(manifest, MANIFEST)
        return {**reference, "platform": {"architecture": architecture, "os": "linux"}}

    def archive(self, manifests: list[dict], name: str, version: str, epoch: int) -> bytes:
        """The layout with all its images under one tag."""
        index = self.add_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}, INDEX)
        names = {
            "org.opencontainers.image.ref.name": version,
            # containerd and Docker name what they load after this.
            "io.containerd.image.name": f"{name}:{version}",
        }
        top = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [{**index, "annotations": names}]}
        files = {f"blobs/sha256/{digest}": File(content) for digest, content in self.blobs.items()}
        files["index.json"] = File(canonical(top))
        files["oci-layout"] = File(canonical({"imageLayoutVersion": "1.0.0"}))
        return tar(files, epoch)


def canonical(value: dict) -> bytes:
    """JSON whose bytes depend on nothing but the value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def tar(files: dict[str, File], epoch: int) -> bytes:
    """A tar file with sorted entries, parents first, all owned by root and of one time."""
    folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(folders | set(files)):
            entry = tarfile.TarInfo(path)
            entry.mtime = epoch
            file = files.get(path)
            if file is None:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
            elif file.link is not None:
                entry.type, entry.mode, entry.linkname = tarfile.SYMTYPE, 0o777, file.link
                archive.addfile(entry)
            else:
                entry.mode, entry.size = file.mode, len(file.content)
                archive.addfile(entry, io.BytesIO(file.content))
    return buffer.getvalue()


def write(files: dict[str, File], folder: Path) -> None:
    """The files of a layer in a folder, with the rights that they have in the layer."""
    for path, file in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.link is not None:
            place.symlink_to(file.link)
        else:
            place.write_bytes(file.content)
            place.chmod(file.mode)
    for parent in (entry for entry in [folder, *folder.rglob("*")] if entry.is_dir() and not entry.is_symlink()):
        parent.chmod(0o755)
