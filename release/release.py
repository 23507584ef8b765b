#!/usr/bin/env python3
"""Releases openstack-ccm: image and charts in a registry, programs and manifests as files; signed, with bill of materials and provenance.

Each command is a target of make (`make release-push` and so on). See release/README.md.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import date, datetime, timezone
from pathlib import Path

import changelog
import files
import provenance
import registry
import signing
import versions
from artifacts import CHARTS, NAME, Place, bill, chart_file, check, digest, folder, index, layout, platforms, set_version, version
from local_registry import Registry
from tools import REPOSITORY, can_be_had, git, run

HELM_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def main() -> None:
    """Does what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="whether everything states the same version, and the changelog has it")
    checking.add_argument("--tag", help="the tag that is released")
    setting = commands.add_parser("version", help="write a version to every place that states it")
    setting.add_argument("wanted", help="such as 1.2.3, or 1.3.0-dev after its release")
    naming = commands.add_parser("registry", help="name another registry on every page")
    naming.add_argument("wanted", help="such as ghcr.io/openstack-ccm")
    commands.add_parser("record", help="note the version, with the date of its section in the changelog, among the released ones")
    commands.add_parser("login", help="log in to RELEASE_REGISTRY as RELEASE_USER with RELEASE_PASSWORD")
    commands.add_parser("push", help="make the files, and push the image of `make image` and the packaged charts")
    commands.add_parser("sign", help="sign all, and attach bills of materials and provenance")
    commands.add_parser("verify", help="pull image and charts, and compare digests, signatures and statements")
    commands.add_parser("notes", help="write the release notes")
    installing = commands.add_parser("install", help="install the pushed chart where KUBECONFIG leads")
    installing.add_argument("--kubeconfig", type=Path, required=True)
    trying = commands.add_parser("dry-run", help="all of it, with a registry and a key that exist for this run only")
    trying.add_argument("--kubeconfig", type=Path, help="also install the chart of openstack-ccm there")
    trying.add_argument("--unsigned", action="store_true", help="without cosign, which takes minutes to build")
    arguments = parser.parse_args()
    match arguments.command:
        case "check":
            check(arguments.tag)
        case "version":
            set_version(arguments.wanted)
        case "registry":
            registry.move(arguments.wanted)
        case "record":
            record_version()
        case "login":
            login(Place.given())
        case "push":
            push(Place.given())
        case "sign":
            sign()
        case "verify":
            verify(Place.given(), signed=True)
        case "notes":
            notes()
        case "install":
            install(Place.given(), arguments.kubeconfig)
        case "dry-run":
            dry_run(arguments.kubeconfig, signed=not arguments.unsigned)


def record_version() -> None:
    """The version of this tree is a released one, from the date that the changelog gives it."""
    if version().endswith(changelog.DEVELOPMENT):
        sys.exit(f"{version()} is no released version: run `make release-version` with the one that is released first")
    day = changelog.day((REPOSITORY / "CHANGELOG.md").read_text(), version())
    if not day:
        sys.exit(f"CHANGELOG.md has no section [{version()}] with a date: write it first")
    versions.record(version(), date.fromisoformat(day))


def login(place: Place) -> None:
    """All programs read the file that crane writes."""
    user, password = os.environ.get("RELEASE_USER"), os.environ.get("RELEASE_PASSWORD")
    if not user or not password:
        sys.exit("set RELEASE_USER and RELEASE_PASSWORD")
    registry = place.registry.split("/")[0]
    run("crane", "auth", "login", registry, "--username", user, "--password-stdin", text=password)


def push(place: Place) -> None:
    """Makes the files, pushes image and charts, and writes down their digests."""
    unpacked, name = layout(), version()
    files.make(place, unpacked)
    run("crane", "push", unpacked, f"{place.image}:{name}")
    for chart in CHARTS:
        run("helm", "push", chart_file(chart), f"oci://{place.charts}", *place.helm_options())
    pushed = {
        "image": digested(place.image),
        "charts": {chart: digested(place.chart(chart)) for chart in CHARTS},
        "platforms": {key: f"{place.image}@{value}" for key, value in platforms(unpacked).items()},
    }
    record().write_text(json.dumps(pushed, indent=1) + "\n")
    print("\n".join(f"pushed {reference}" for reference in signed_references(pushed)))


def digested(name: str) -> str:
    """What has a name and this version in the registry, by its digest."""
    return f"{name}@{run('crane', 'digest', f'{name}:{version()}').strip()}"


def signed_references(known: dict) -> list[str]:
    """All that is signed in the registry."""
    return [known["image"], *known["charts"].values()]


def record() -> Path:
    """What was pushed, by digest."""
    return folder() / "pushed.json"


def pushed() -> dict:
    """What was pushed, by digest."""
    return json.loads(record().read_text()) if record().exists() else sys.exit("nothing was pushed: run `make release-push` first")


def sign() -> None:
    """Signs what was pushed. Tags may be moved; signatures are for digests."""
    known, unpacked = pushed(), layout()
    finished = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    origin = provenance.predicate(os.environ, git("rev-parse", "HEAD"), version(), sorted(known["platforms"]), finished)
    statement = json.dumps(origin, indent=1).encode()
    (folder() / "provenance.json").write_bytes(statement)
    signing.sign_file(folder() / files.CHECKSUMS)
    for reference in signed_references(known):
        signing.sign(reference)
        signing.attest(reference, "slsaprovenance1", statement)
    for architecture, reference in known["platforms"].items():
        signing.attest(reference, "cyclonedx", bill(unpacked, architecture))
    print("signed, with provenance and bills of materials")


def verify(place: Place, signed: bool) -> None:
    """What a user gets is what was built here."""
    name, unpacked, known = version(), layout(), pushed()
    equal("image", run("crane", "digest", f"{place.image}:{name}").strip(), index(unpacked)["digest"])
    for architecture, expected in platforms(unpacked).items():
        found = run("crane", "digest", "--platform", f"linux/{architecture}", f"{place.image}:{name}").strip()
        equal(f"image for {architecture}", found, expected)
        run("crane", "validate", "--remote", f"{place.image}@{expected}")
    for chart in CHARTS:
        verify_chart(place, chart, known["charts"][chart])
    files.verify_checksums(unpacked)
    if signed:
        verify_signatures(known, unpacked)


def verify_chart(place: Place, chart: str, reference: str) -> None:
    """Helm pulls what was packaged."""
    expected = digest(chart_file(chart).read_bytes())
    with tempfile.TemporaryDirectory() as target:
        run("helm", "pull", f"oci://{place.chart(chart)}", "--version", version(), "--destination", target, *place.helm_options())
        equal(f"chart {chart}", digest((Path(target) / chart_file(chart).name).read_bytes()), expected)
    layers = json.loads(run("crane", "manifest", reference))["layers"]
    equal(f"layer of {chart}", next(entry["digest"] for entry in layers if entry["mediaType"] == HELM_LAYER), expected)


def verify_signatures(known: dict, unpacked: Path) -> None:
    """Signatures and statements are there, by the right signer, and about this commit."""
    signing.verify_file(folder() / files.CHECKSUMS)
    for reference in signed_references(known):
        signing.verify(reference)
        origin = signing.verify_statement(reference, "slsaprovenance1")
        equal("commit", origin["buildDefinition"]["resolvedDependencies"][0]["digest"]["gitCommit"], git("rev-parse", "HEAD"))
    for architecture, reference in known["platforms"].items():
        statement = signing.verify_statement(reference, "cyclonedx")
        equal(f"bill of materials for {architecture}", statement, json.loads(bill(unpacked, architecture)))


def equal(what: str, found: object, expected: object) -> None:
    """Says that both are the same, or ends."""
    if found != expected:
        sys.exit(f"{what}: the registry has {found}, and not {expected}")
    print(f"{what}: {found if isinstance(found, str) else 'the same'}")


def notes() -> None:
    """The section of the changelog, and how to get and check what was pushed."""
    name, known = version(), pushed()
    text = changelog.section((REPOSITORY / "CHANGELOG.md").read_text(), changelog.name_for(name))
    chart = known["charts"][NAME].split("@")[0]
    text += f"\n\n### Get it\n\n```sh\nhelm upgrade --install openstack-ccm oci://{chart} --version {name} --namespace kube-system\n```\n\n"
    text += f"| | Digest |\n| --- | --- |\n| image | `{known['image']}` |\n"
    text += "".join(f"| chart {chart} | `{reference}` |\n" for chart, reference in known["charts"].items()) + "\n"
    text += f"```sh\ncosign verify {known['image']} \\\n  --certificate-oidc-issuer {signing.ISSUER} \\\n"
    text += f"  --certificate-identity-regexp '{signing.IDENTITY}'\n```\n\n"
    text += f"The files below are checked by `sha256sum --check --ignore-missing {files.CHECKSUMS}`, and that file by\n\n"
    text += f"```sh\ncosign verify-blob {files.CHECKSUMS} --bundle {files.CHECKSUMS}.sigstore.json \\\n"
    text += f"  --certificate-oidc-issuer {signing.ISSUER} \\\n  --certificate-identity-regexp '{signing.IDENTITY}'\n```\n"
    file = folder() / "notes.md"
    file.write_text(text)
    print(file)


def install(place: Place, kubeconfig: Path) -> None:
    """The released chart, from the registry, on a cluster. Pods are not waited for."""
    options = ["--kubeconfig", kubeconfig, "--namespace", "kube-system", "--version", version(), *place.helm_options()]
    run("helm", "install", "openstack-ccm", f"oci://{place.chart(NAME)}", "--set", "secret.create=false", *options)
    values = json.loads(run("helm", "get", "values", "openstack-ccm", "--all", "--output", "json", *options[:4]))
    equal("image of the installed chart", values["image"]["repository"], place.image)


def dry_run(kubeconfig: Path | None, signed: bool) -> None:
    """Everything but the last word: nothing leaves this machine."""
    check(None)
    if signed and not can_be_had("cosign"):
        print("cosign cannot be built here, and COSIGN names none: nothing is signed, and no signature is verified")
        signed = False
    with tempfile.TemporaryDirectory() as name, Registry(Path(name)) as local:
        place = Place(f"{local.address}/openstack-ccm")
        push(place)
        if signed:
            os.environ.update(COSIGN_PASSWORD="", COSIGN_KEY=f"{name}/release.key", COSIGN_PUBLIC_KEY=f"{name}/release.pub")
            run("cosign", "generate-key-pair", "--output-key-prefix", f"{name}/release")
            sign()
        verify(place, signed)
        if signed:
            refuse_strangers(Path(name), folder())
            refuse_changes(folder())
        files.try_out(place, layout())
        notes()
        if kubeconfig:
            install(place, kubeconfig)
    record().unlink()
    print("dry run: everything can be released" if signed else "dry run: everything can be released; signatures were left out")


def refuse_strangers(keys: Path, published: Path) -> None:
    """A verification that accepts any key would show nothing."""
    run("cosign", "generate-key-pair", "--output-key-prefix", keys / "stranger")
    os.environ["COSIGN_PUBLIC_KEY"] = f"{keys}/stranger.pub"
    for verifies in (lambda: signing.verify(pushed()["image"]), lambda: signing.verify_file(published / files.CHECKSUMS)):
        try:
            verifies()
        except SystemExit:
            continue
        sys.exit("signature: another key is accepted too")
    print("signature: another key is refused")


def refuse_changes(published: Path) -> None:
    """Nor would one that accepts any file."""
    with tempfile.TemporaryDirectory() as name:
        for file in published.glob(f"{files.CHECKSUMS}*"):
            shutil.copy(file, name)
        changed = Path(name) / files.CHECKSUMS
        changed.write_text(changed.read_text().replace("0", "1"))
        try:
            signing.verify_file(changed)
        except SystemExit:
            print("signature: a changed file is refused")
            return
    sys.exit("signature: a changed file is accepted too")


if __name__ == "__main__":
    main()
