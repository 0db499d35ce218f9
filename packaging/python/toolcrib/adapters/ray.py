"""Ray: a workspace as an actor, which every driver and task of the cluster finds by its name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypedDict, cast

from toolcrib import AsyncSession, Change, Completed, Info, InvalidArgument, Listing, Reply, Restored, Stat, Written
from toolcrib._operations import Unset

from ._framework import from_package

with from_package("ray"):
    import ray
    import ray.exceptions
    from ray import ObjectRef
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

NAMESPACE = "toolcrib"
"""The namespace of the actors, so that all drivers find them."""


GONE = (ray.exceptions.RayActorError, ray.exceptions.ActorUnschedulableError)
"""The errors of calls whose actor or node ended. The calls may have had effects."""

# Ray's types of actors are incomplete.
_ray: Any = ray

# `list` is a method of `Workspace`.
_Changes = list[Change]
_Definitions = list[dict[str, Any]]


class Place(TypedDict):
    """Where a workspace is: its node, its directory there, and the processes of its actor and of the program."""

    node: str
    root: str
    actor: int
    program: int | None


class Workspace:
    """A workspace on some node of the cluster. It can be sent to tasks and other actors.

    The methods are those of `AsyncSession`, and return references: `ray.get(workspace.read("a.txt"))`, or
    `await workspace.read("a.txt")`. A call that fails raises its `ToolcribError` there.
    """

    def __init__(self, name: str, actor: Any) -> None:
        self.name = name
        self._actor = actor

    def call(self, tool: str, args: Mapping[str, Any] | None = None, /, **named: Any) -> ObjectRef[Reply]:
        """Calls a tool: `call("Read", file_path="a.py")`, or with the arguments of a model: `call(name, arguments)`."""
        return self._run("call", tool, {**(args or {}), **named})

    def exec(
        self,
        command: str | list[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | str = b"",
        timeout: float | None = None,
        max_output: int | None = None,
    ) -> ObjectRef[Completed]:
        """Runs a command to its end: a list of arguments, or a text for bash."""
        return self._run("exec", command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, max_output=max_output)

    def read(self, path: str, offset: int = 0, limit: int | None = None) -> ObjectRef[bytes]:
        """The bytes of a file."""
        return self._run("read", path, offset, limit)

    def write(
        self, path: str, data: bytes | str, append: bool = False, executable: bool | None = None
    ) -> ObjectRef[Written]:
        """Writes a file, or appends to it. Missing directories are made."""
        return self._run("write", path, data, append, executable)

    def stat(self, path: str, follow: bool = True) -> ObjectRef[Stat]:
        """Kind, size, mode and modification time of a path."""
        return self._run("stat", path, follow)

    def list(self, path: str = ".") -> ObjectRef[Listing]:
        """The entries of a directory."""
        return self._run("list", path)

    def mkdir(self, path: str, parents: bool = True, exist_ok: bool = True) -> ObjectRef[bool]:
        """Makes a directory."""
        return self._run("mkdir", path, parents, exist_ok)

    def remove(self, path: str, recursive: bool = False, missing_ok: bool = False) -> ObjectRef[int]:
        """Removes a file or a directory."""
        return self._run("remove", path, recursive, missing_ok)

    def move(self, source: str, target: str, overwrite: bool = False) -> ObjectRef[int | None]:
        """Moves a file or a directory."""
        return self._run("move", source, target, overwrite)

    def snapshot(self) -> ObjectRef[int]:
        """The present point in the journal, for `restore`. It stays valid if the actor is restarted."""
        return self._run("snapshot")

    def restore(self, snapshot: int) -> ObjectRef[Restored]:
        """Reverts all changes since a snapshot: resets the workspace for the next rollout."""
        return self._run("restore", snapshot)

    def history(self, limit: int = 20) -> ObjectRef[_Changes]:
        """The newest changes in the journal."""
        return self._run("history", limit)

    def undo(
        self,
        steps: int | None = None,
        *,
        id: int | None | Unset = Unset.UNSET,
        since: int | None | Unset = Unset.UNSET,
    ) -> ObjectRef[Restored]:
        """Reverts the last change, the last `steps`, the one with an `id`, or all `since` an id."""
        return self._run("undo", steps, id=id, since=since)

    def tools(self, format: str = "anthropic") -> ObjectRef[_Definitions]:
        """The definitions of all tools for a model API."""
        return self._run("tools", format)

    def info(self) -> ObjectRef[Info]:
        """Version, roots, the session's /tmp and the sandbox."""
        return self._run("info")

    def place(self) -> ObjectRef[Place]:
        """Where the workspace is."""
        return cast("ObjectRef[Place]", self._actor.place.remote())

    def close(self) -> None:
        """Ends running calls, the program and the actor. The files stay. The name can be used again."""
        try:
            ray.get(self._run("close"))
        except GONE:
            pass
        finally:
            _ray.kill(self._actor, no_restart=True)

    def _run(self, method: str, *args: Any, **named: Any) -> ObjectRef[Any]:
        # The name is shown in Ray's lists of tasks.
        return cast("ObjectRef[Any]", self._actor.run.options(name=f"toolcrib.{method}").remote(method, args, named))


class WorkspaceActor:
    """The actor of a workspace: a session whose methods it runs. If its process ends, so does the program."""

    def __init__(self, root: str, create: bool, options: Mapping[str, Any]) -> None:
        if create:
            os.makedirs(root, exist_ok=True)
        if not os.path.isdir(root):
            # Fails here rather than at the first call, so that the name is free again.
            raise NotADirectoryError(f"the node {ray.get_runtime_context().get_node_id()} has no directory {root}")
        self._root = root
        self._session = AsyncSession(root, **options)

    async def run(self, method: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Runs a method of the session."""
        return await getattr(self._session, method)(*args, **named)

    async def place(self) -> Place:
        """Where the workspace is."""
        node = ray.get_runtime_context().get_node_id()
        return {"node": node, "root": self._root, "actor": os.getpid(), "program": self._session.pid}


def open_workspace(
    name: str,
    root: str | os.PathLike[str],
    *,
    create: bool = False,
    shared: bool = False,
    node: str | None = None,
    num_cpus: float = 0.05,
    resources: Mapping[str, float] | None = None,
    max_concurrency: int = 1000,
    namespace: str = NAMESPACE,
    actor_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Workspace:
    """Opens the workspace with this name, or finds it if it is open.

    The actor is detached: it outlives this driver until `Workspace.close`. If its process ends, Ray starts it again on
    the same node, where it opens the same directory with its journal. Calls that ran then raise one
    of the errors `GONE` and are not repeated, because they may have had effects. If the node is lost, so is the workspace,
    unless it is `shared`.

    Args:
        name: The name of the workspace in the cluster.
        root: An absolute path: its directory on the node.
        create: Whether the directory is made if it does not exist.
        shared: Whether the directory is on storage that all nodes mount at this path. The actor may then be started
            again on another node if its own is lost.
        node: The id of the node; default: one that Ray chooses.
        num_cpus: What the actor takes of the node for Ray's placement. Commands are not limited by it.
        resources: Custom resources of Ray that the actor takes.
        max_concurrency: How many calls may run at the same time; more of them wait.
        namespace: The namespace of the actor.
        actor_options: More options of the Ray actor, such as `runtime_env`.
        options: The arguments of `AsyncSession`: `profile`, `network`, `rules`, `state`, `env` and others.
    """
    path = os.fspath(root)
    if not os.path.isabs(path):
        raise InvalidArgument(f"`root` is not an absolute path: {path}", "The node has another working directory.")
    needs: dict[str, Any] = {"num_cpus": num_cpus, "resources": dict(resources or {})}
    if node is None and not shared:
        node = _choose_node(name, namespace, needs)
    strategy = "SPREAD" if node is None else NodeAffinitySchedulingStrategy(node, soft=shared)
    actor_class: Any = _ray.remote(WorkspaceActor)
    actor: Any = actor_class.options(
        name=name,
        namespace=namespace,
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        max_concurrency=max_concurrency,
        scheduling_strategy=strategy,
        **needs,
        **(actor_options or {}),
    ).remote(path, create, options)
    workspace = Workspace(name, actor)
    found = ray.get(workspace.place())["root"]
    if found != path:
        raise InvalidArgument(f"the workspace {name} is open at {found}, not at {path}", "Close it first.")
    return workspace


def find_workspace(name: str, *, namespace: str = NAMESPACE) -> Workspace:
    """The open workspace with this name. Raises `ValueError` if there is none."""
    return Workspace(name, _ray.get_actor(name, namespace=namespace))


def _choose_node(name: str, namespace: str, needs: Mapping[str, Any]) -> str:
    """The node of a workspace that is open, or the one where Ray starts a task with the same needs.

    The actor is bound to its node, because Ray may otherwise start it again on one that does not have the directory.
    """
    try:
        return str(ray.get(find_workspace(name, namespace=namespace).place())["node"])
    except (ValueError, *GONE):
        task: Any = _ray.remote(_node_of_this_task)
        return str(_ray.get(task.options(scheduling_strategy="SPREAD", **needs).remote()))


def _node_of_this_task() -> str:
    return ray.get_runtime_context().get_node_id()
