"""A registry on a loopback address, for a dry run."""

import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from tools import program


class Registry:
    """Runs as long as the block that it stands in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "registry"
        self.folder.mkdir()
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{listener.getsockname()[1]}"

    def __enter__(self) -> "Registry":
        command = [program("crane"), "registry", "serve", "--address", self.address, "--disk", self.folder]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.answers():
            if self.process.poll() is not None:
                raise RuntimeError(f"the registry at {self.address} ended with status {self.process.returncode}")
            time.sleep(0.05)
        return self

    def answers(self) -> bool:
        """Whether it is up. https://github.com/opencontainers/distribution-spec/blob/main/spec.md#determining-support"""
        try:
            return urllib.request.urlopen(f"http://{self.address}/v2/", timeout=5).status == 200
        except (urllib.error.URLError, ConnectionError):
            return False

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
