"""Signatures and attestations, by cosign.

With COSIGN_KEY (a file or a key of a key management service) by that key, and without a transparency log. Without it by the
identity of the workflow that runs, which is written into the public log: https://docs.sigstore.dev/cosign/signing/overview/
"""

import base64
import json
import os
import re
import tempfile
from pathlib import Path

from provenance import SOURCE
from tools import run

ISSUER = "https://token.actions.githubusercontent.com"
IDENTITY = f"^{re.escape(SOURCE)}/\\.github/workflows/release\\.yml@refs/tags/v"


def key() -> str | None:
    """The key to sign with."""
    return os.environ.get("COSIGN_KEY") or None


def sign(reference: str) -> None:
    """Signs what a reference with a digest names."""
    run("cosign", "sign", "--yes", *signer(), reference)


def attest(reference: str, kind: str, predicate: bytes) -> None:
    """Attaches a signed statement about what a reference with a digest names."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "predicate.json"
        file.write_bytes(predicate)
        run("cosign", "attest", "--yes", *signer(), "--type", kind, "--predicate", file, reference)


def sign_file(file: Path) -> Path:
    """Signs a file, and writes the signature beside it."""
    bundle = file.with_name(f"{file.name}.sigstore.json")
    run("cosign", "sign-blob", "--yes", *signer(), "--bundle", bundle, file)
    return bundle


def verify_file(file: Path) -> None:
    """Fails unless the signature beside a file is there, and by the right signer."""
    run("cosign", "verify-blob", *verifier(), "--bundle", file.with_name(f"{file.name}.sigstore.json"), file)


def verify(reference: str) -> None:
    """Fails unless the signature is there, and by the right signer."""
    run("cosign", "verify", *verifier(), reference)


def verify_statement(reference: str, kind: str) -> dict:
    """The predicate of a signed statement."""
    printed = run("cosign", "verify-attestation", *verifier(), "--type", kind, reference)
    envelope = json.loads(printed.splitlines()[0])
    return json.loads(base64.b64decode(envelope["payload"]))["predicate"]


def signer() -> list[str]:
    """Who signs. With a key no service takes part: neither a log nor a clock, nor the list of both."""
    return ["--key", key(), "--use-signing-config=false", "--tlog-upload=false"] if key() else []


def verifier() -> list[str]:
    """Who must have signed."""
    if not key():
        return ["--certificate-oidc-issuer", ISSUER, "--certificate-identity-regexp", IDENTITY]
    public = os.environ.get("COSIGN_PUBLIC_KEY") or key()
    return ["--key", public, "--insecure-ignore-tlog=true"]
