#!/usr/bin/env python3
"""Size of a binary, and the time from its start until /livez answers: image/measure.py FILE

Neither Kubernetes nor OpenStack answers: what is measured is the program alone.
"""

import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 20
CLOUD_CONF = '[Global]\nauth-url="http://127.0.0.1:1/v3"\nuser-id="u"\npassword="p"\ntenant-id="t"\n'
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: c}}]
users: [{name: c, user: {}}]
current-context: c
"""


def main() -> None:
    """Prints both."""
    binary = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cloud.conf").write_text(CLOUD_CONF)
        (folder / "kubeconfig").write_text(KUBECONFIG)
        times = sorted(start(binary, folder) for _ in range(RUNS))
    print(f"size  {binary.stat().st_size:,} bytes")
    print(f"start {times[len(times) // 2] * 1000:.0f} ms until /livez answers (median of {RUNS}, worst {times[-1] * 1000:.0f} ms)")


def start(binary: Path, folder: Path) -> float:
    """Seconds until the first answer."""
    port = free_port()
    command = [binary, "--cloud-config", folder / "cloud.conf", "--kubeconfig", folder / "kubeconfig"]
    command += ["--bind-address", "127.0.0.1", "--secure-port", str(port)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not answers(port):
            if process.poll() is not None:
                sys.exit(f"{binary} ended with status {process.returncode}")
        return time.perf_counter() - began
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    """Whether /livez is answered with 200."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
            with context.wrap_socket(plain) as stream:
                stream.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
                return b" 200 " in stream.recv(64)
    except ConnectionError:
        return False


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    main()
