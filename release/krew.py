"""The manifest of the kubectl plugin: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/"""

import json
import re
from pathlib import Path

from artifacts import NAME, digest
from provenance import SOURCE

SHORT = "Load balancers of OpenStack: status, plan, doctor"
LONG = """Shows how Services of type LoadBalancer are published in a cluster with openstack-ccm, follows a packet to a Service
from pods, nodes and outside and says where it ends, and plans what a change would do in OpenStack before it is made."""
# What krew-index accepts, as JSON Schema.
SCHEMA = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "krew.googlecontainertools.github.com/v1alpha2"},
        "kind": {"const": "Plugin"},
        "metadata": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "pattern": r"^[a-z][a-z0-9-]*$"}}},
        "spec": {
            "type": "object",
            "required": ["version", "shortDescription", "platforms"],
            "properties": {
                "version": {"type": "string", "pattern": r"^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$"},
                "homepage": {"type": "string", "pattern": r"^https://"},
                "shortDescription": {"type": "string", "pattern": r"^.{1,50}$"},
                "description": {"type": "string"},
                "platforms": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["uri", "sha256", "bin", "files", "selector"],
                        "properties": {
                            "uri": {"type": "string", "pattern": r"^https://\S+\.tar\.gz$"},
                            "sha256": {"type": "string", "pattern": r"^[0-9a-f]{64}$"},
                            "bin": {"type": "string", "pattern": r"^[^/]+$"},
                            "files": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["from", "to"]}},
                            "selector": {"type": "object", "required": ["matchLabels"]},
                        },
                    },
                },
            },
        },
    },
}
TYPES = {"object": dict, "array": list, "string": str}


def manifest(version: str, archives: dict[tuple[str, str], Path]) -> dict:
    """The manifest for archives, by system (linux, darwin) and architecture."""
    def platform(of: tuple[str, str], archive: Path) -> dict:
        system, architecture = of
        return {
            "selector": {"matchLabels": {"os": system, "arch": architecture}},
            "uri": f"{SOURCE}/releases/download/v{version}/{archive.name}",
            "sha256": digest(archive.read_bytes()).removeprefix("sha256:"),
            "bin": NAME,
            "files": [{"from": NAME, "to": "."}, {"from": "LICENSE", "to": "."}],
        }

    made = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": {
            "version": f"v{version}",
            "homepage": SOURCE,
            "shortDescription": SHORT,
            "description": LONG,
            "platforms": [platform(*pair) for pair in sorted(archives.items())],
        },
    }
    if found := faults(made, SCHEMA):
        raise ValueError(f"krew would refuse the manifest: {'; '.join(found)}")
    return made


def faults(value: object, schema: dict, place: str = "") -> list[str]:
    """What is wrong with a value, by the part of JSON Schema that the schema above uses."""
    if "const" in schema and value != schema["const"]:
        return [f"{place} is not {schema['const']}"]
    if "type" in schema and not isinstance(value, TYPES[schema["type"]]):
        return [f"{place} is no {schema['type']}"]
    found = []
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        found.append(f"{place} does not match {schema['pattern']}")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            found.append(f"{place} has too few entries")
        for index, entry in enumerate(value):
            found += faults(entry, schema.get("items", {}), f"{place}[{index}]")
    if isinstance(value, dict):
        found += [f"{place}.{key} is missing" for key in schema.get("required", []) if key not in value]
        for key, part in schema.get("properties", {}).items():
            if key in value:
                found += faults(value[key], part, f"{place}.{key}")
    return found


def yaml(value: object, indent: str = "") -> str:
    """The value as YAML, with every text in quotes."""
    if isinstance(value, dict):
        return "".join(f"{indent}{key}:{nested(part, indent)}" for key, part in value.items())
    return "".join(f"{indent}-{nested(part, indent)}" for part in value)


def nested(value: object, indent: str) -> str:
    """What stands behind a key or a dash."""
    return "\n" + yaml(value, indent + "  ") if isinstance(value, (dict, list)) else f" {json.dumps(value)}\n"
