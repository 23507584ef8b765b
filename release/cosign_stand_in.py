#!/usr/bin/env python3
"""What the release asks of cosign, without cosign: for tests on machines where nobody has built it.

A signature is the checksum of a key and of what it signs. Commands and flags are those of cosign 3; any other one is an error.
Signatures of what lies in a registry are kept in the folder of STAND_IN_FOLDER.
"""

import argparse
import base64
import hashlib
import json
import os
import sys
from pathlib import Path


def seal(key: Path, *parts: bytes) -> str:
    """The signature of parts by the pair that a private or public key belongs to."""
    return hashlib.sha256(b"\0".join([pair(key), *parts])).hexdigest()


def pair(key: Path) -> bytes:
    """What both keys of a pair have in common."""
    return key.read_bytes().split(b" ", 1)[1]


def kept(reference: str, kind: str) -> Path:
    """Where the signature of something in a registry is kept."""
    name = hashlib.sha256(f"{kind} {reference}".encode()).hexdigest()
    return Path(os.environ["STAND_IN_FOLDER"]) / name


def options(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("generate-key-pair").add_argument("--output-key-prefix", required=True)
    for name in ("sign", "attest", "sign-blob"):
        signing = commands.add_parser(name, allow_abbrev=False)
        signing.add_argument("--yes", action="store_true", required=True)
        signing.add_argument("--key", type=Path, required=True)
        signing.add_argument("--use-signing-config", choices=["false"], required=True)
        signing.add_argument("--tlog-upload", choices=["false"], required=True)
        signing.add_argument("what")
    for name in ("verify", "verify-attestation", "verify-blob"):
        verifying = commands.add_parser(name, allow_abbrev=False)
        verifying.add_argument("--key", type=Path, required=True)
        verifying.add_argument("--insecure-ignore-tlog", choices=["true"], required=True)
        verifying.add_argument("what")
    for name in ("attest", "verify-attestation"):
        commands.choices[name].add_argument("--type", required=True)
    commands.choices["attest"].add_argument("--predicate", type=Path, required=True)
    for name in ("sign-blob", "verify-blob"):
        commands.choices[name].add_argument("--bundle", type=Path, required=True)
    return parser.parse_args(arguments)


def expect(found: str, wanted: str) -> None:
    """Ends where a signature is not the one of this key and content."""
    if found != wanted:
        sys.exit("error: no matching signatures")


def main() -> None:
    """Does what the command line asks for."""
    given = options(sys.argv[1:])
    match given.command:
        case "generate-key-pair":
            common = os.urandom(16).hex()
            Path(f"{given.output_key_prefix}.key").write_text(f"private {common}")
            Path(f"{given.output_key_prefix}.pub").write_text(f"public {common}")
        case "sign":
            kept(given.what, "signature").write_text(seal(given.key, given.what.encode()))
        case "verify":
            expect(kept(given.what, "signature").read_text(), seal(given.key, given.what.encode()))
        case "attest":
            predicate = given.predicate.read_text()
            envelope = {"signature": seal(given.key, given.what.encode(), predicate.encode()), "predicate": predicate}
            kept(given.what, given.type).write_text(json.dumps(envelope))
        case "verify-attestation":
            envelope = json.loads(kept(given.what, given.type).read_text())
            predicate = envelope["predicate"]
            expect(envelope["signature"], seal(given.key, given.what.encode(), predicate.encode()))
            statement = json.dumps({"predicate": json.loads(predicate)})
            print(json.dumps({"payload": base64.b64encode(statement.encode()).decode()}))
        case "sign-blob":
            given.bundle.write_text(seal(given.key, Path(given.what).read_bytes()))
        case "verify-blob":
            expect(given.bundle.read_text(), seal(given.key, Path(given.what).read_bytes()))


if __name__ == "__main__":
    main()
