"""Where an artifact comes from, as a predicate of SLSA: https://slsa.dev/spec/v1.0/provenance"""

from collections.abc import Mapping

SOURCE = "https://github.com/openstack-ccm/openstack-ccm"
# The page that says what the parameters mean.
BUILD_TYPE = f"{SOURCE}/blob/main/docs/guides/release.md#provenance"
# Whoever runs the targets on a machine of their own.
BY_HAND = f"{SOURCE}/blob/main/release/README.md#by-hand"


def predicate(environment: Mapping[str, str], commit: str, version: str, architectures: list[str], finished: str) -> dict:
    """The predicate for everything that was built from a commit. In a workflow, its variables name the builder:
    https://docs.github.com/en/actions/reference/workflows-and-actions/variables"""
    server = environment.get("GITHUB_SERVER_URL")
    builder, invocation = BY_HAND, None
    if server:
        builder = f"{server}/{environment['GITHUB_WORKFLOW_REF']}"
        run, attempt = environment["GITHUB_RUN_ID"], environment["GITHUB_RUN_ATTEMPT"]
        invocation = f"{server}/{environment['GITHUB_REPOSITORY']}/actions/runs/{run}/attempts/{attempt}"
    source = f"{server}/{environment['GITHUB_REPOSITORY']}" if server else SOURCE
    reference = environment.get("GITHUB_REF", f"refs/tags/v{version}")
    metadata = {"finishedOn": finished} | ({"invocationId": invocation} if invocation else {})
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"source": source, "ref": reference, "version": version, "architectures": architectures},
            "resolvedDependencies": [{"uri": f"git+{source}@{reference}", "digest": {"gitCommit": commit}}],
        },
        "runDetails": {"builder": {"id": builder}, "metadata": metadata},
    }
