"""How the image runs: the last stage of the Containerfile, as the configuration of an OCI image.

https://github.com/opencontainers/image-spec/blob/main/config.md
"""

import json
import shlex

# The files of the image, which both ways take from build.py.
ROOT = ["--from=build", "/root-of-image/", "/"]


def configuration(text: str) -> dict:
    """What the instructions after the last FROM mean. An instruction that is not understood here is an error, so that
    it cannot have an effect in one way of building alone."""
    result: dict = {"Env": [], "Labels": {}}
    for line in last_stage(text):
        name, _, rest = line.partition(" ")
        match name, shlex.split(rest):
            case "COPY", words if words == ROOT:
                pass
            case "WORKDIR", [folder]:
                result["WorkingDir"] = folder
            case "USER", [user]:
                result["User"] = user
            case "ENV", pairs if all("=" in pair for pair in pairs):
                result["Env"] += pairs
            case "LABEL", pairs if all("=" in pair for pair in pairs):
                result["Labels"].update(pair.split("=", 1) for pair in pairs)
            case "CMD", _ if rest.startswith("["):
                result["Cmd"] = json.loads(rest)
            case _:
                raise ValueError(f"image/build.py does not know what this means in the last stage of the Containerfile: {line}")
    return result


def last_stage(text: str) -> list[str]:
    """Instructions after the last FROM, each in one line."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    instructions = [line.strip() for line in "\n".join(lines).replace("\\\n", " ").splitlines()]
    start = max(index for index, line in enumerate(instructions) if line.startswith("FROM "))
    return instructions[start + 1 :]
