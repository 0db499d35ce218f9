#!/usr/bin/env python3
"""Collects the results of a job array of workspaces.sbatch.

    python3 collect.py TASKS RESULTS > all.jsonl

Prints one line of JSON for each task: its id, the number of calls, and the calls that failed. Tasks without a result are
named on stderr, as an option for the next sbatch. The exit status is 1 if there are any.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def result(file: Path) -> dict[str, Any]:
    """What came of a task."""
    replies = [json.loads(line) for line in file.read_text().splitlines()]
    failed = [{"id": reply.get("id"), "error": reply["error"]["kind"]} for reply in replies if not reply["success"]]
    return {"task": int(file.stem), "calls": len(replies), "failed": failed}


def main(tasks: Path, results: Path) -> int:
    wanted = {int(file.stem) for file in tasks.glob("*.jsonl")}
    found = sorted((file for file in results.glob("*.jsonl")), key=lambda file: int(file.stem))
    for file in found:
        print(json.dumps(result(file)))
    missing = sorted(wanted - {int(file.stem) for file in found})
    if missing:
        print("no result: --array=" + ",".join(map(str, missing)), file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
