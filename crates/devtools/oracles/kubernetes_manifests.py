"""Checks packaging/kubernetes with the definitions of agent-sandbox, and that the program accepts their arguments.

Usage: kubernetes_manifests.py PATH-OF-TOOLCRIB DIRECTORY-OF-MANIFESTS DIRECTORY-OF-DEFINITIONS

Stops at the first failure and exits with 1.
"""

import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import jsonschema
import yaml


def strict(schema: object) -> object:
    """A schema in which unknown fields are errors. A cluster drops them silently."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: strict(part) for key, part in schema.items()}
    if schema.pop("x-kubernetes-int-or-string", False):
        schema.pop("type", None)
        schema.pop("anyOf", None)
    is_open = schema.get("x-kubernetes-preserve-unknown-fields", False)
    if isinstance(schema.get("properties"), dict) and not is_open:
        schema.setdefault("additionalProperties", False)
    return schema


def definitions(directory: Path) -> dict[tuple[str, str], dict]:
    found = {}
    for file in directory.glob("*.yaml"):
        definition = yaml.safe_load(file.read_text())["spec"]
        for version in definition["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object"}
            name = f"{definition['group']}/{version['name']}"
            found[name, definition["names"]["kind"]] = schema
    assert found, f"no definitions in {directory}"
    return found


def starts(program: str, template: dict) -> None:
    """The arguments of the container start a server that becomes ready."""
    pod = template["spec"]["podTemplate"]["spec"]
    (container,) = pod["containers"]
    arguments = [word for word in container["args"] if not word.startswith(("--rest=", "--grpc="))]
    assert len(arguments) + 2 == len(container["args"]), container["args"]
    with tempfile.TemporaryDirectory() as top:
        paths = [mount["mountPath"] for mount in container["volumeMounts"]]
        # The image has the directory of the journal. Volumes are open to all users.
        for path, mode in [*((path, 0o777) for path in paths), ("/var/lib/toolcrib", 0o700), ("/home", 0o755)]:
            made = Path(top + path)
            made.mkdir(parents=True)
            made.chmod(mode)
            arguments = [word.replace(f"={path}", f"={top}{path}") if word.endswith(f"={path}") else word for word in arguments]
        if "gvisor" in template["metadata"]["name"]:
            ran = subprocess.run([program, *arguments], capture_output=True, text=True)
            assert "not in gVisor" in ran.stderr, ran
            return
        environment = {**os.environ, "HOME": f"{top}/home"}
        server = subprocess.Popen([program, *arguments, "--rest=0", "--grpc=0"], env=environment,
                                  stderr=subprocess.PIPE, text=True)
        try:
            said = server.stderr.readline()
            assert "http://" in said, said + server.stderr.read()
            port = said.split("http://127.0.0.1:")[1].split("/")[0]
            probe = container["readinessProbe"]["httpGet"]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{probe['path']}") as answer:
                assert answer.status == 200
        finally:
            server.kill()
            server.wait()
            server.stderr.close()


def main() -> None:
    program, manifests, directory = (Path(argument).resolve() for argument in sys.argv[1:])
    known = definitions(directory)
    names = set()
    for file in sorted(manifests.glob("*.yaml")):
        manifest = yaml.safe_load(file.read_text())
        jsonschema.validate(manifest, known[manifest["apiVersion"], manifest["kind"]])
        if manifest["kind"] == "SandboxTemplate":
            names.add(manifest["metadata"]["name"])
            starts(str(program), manifest)
        print(f"ok: {file.name}")
    pool = yaml.safe_load((manifests / "warm-pool.yaml").read_text())
    assert pool["spec"]["sandboxTemplateRef"]["name"] in names
    # An unknown field is found.
    wrong = yaml.safe_load((manifests / "sandbox-template.yaml").read_text())
    wrong["spec"]["podTemplate"]["spec"]["containers"][0]["imagePolicy"] = "Always"
    try:
        jsonschema.validate(wrong, known[wrong["apiVersion"], wrong["kind"]])
    except jsonschema.ValidationError:
        return
    raise AssertionError("an unknown field was accepted")


if __name__ == "__main__":
    main()
