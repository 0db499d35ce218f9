"""A coding agent in forty lines. The model is a script; the two commented lines put a real one in its place."""

import tempfile
from pathlib import Path
from typing import Any

import toolcrib

Block = dict[str, Any]
SCRIPT: list[list[Block]] = [
    [{"type": "tool_use", "id": "1", "name": "Grep", "input": {"pattern": "def add", "output_mode": "content"}}],
    [{"type": "tool_use", "id": "2", "name": "Edit",
      "input": {"file_path": "sums.py", "old_string": "a - b", "new_string": "a + b"}}],
    [{"type": "tool_use", "id": "3", "name": "Bash", "input": {"command": "python3 -c 'import sums; print(sums.add(2, 3))'"}}],
    [{"type": "text", "text": "`add` subtracted its arguments. It adds them now, and `add(2, 3)` is 5."}],
]


def model(messages: list[Block], tools: list[Block]) -> list[Block]:
    return SCRIPT[sum(message["role"] == "assistant" for message in messages)]
# client = anthropic.Anthropic()
# model = lambda messages, tools: client.messages.create(model="claude-sonnet-4-5", max_tokens=4096, messages=messages, tools=tools).model_dump()["content"]


def run_agent(session: toolcrib.Session, task: str) -> str:
    tools = session.tools("anthropic")
    messages: list[Block] = [{"role": "user", "content": task}]
    while True:
        answer = model(messages, tools)
        messages.append({"role": "assistant", "content": answer})
        results: list[Block] = []
        for use in (block for block in answer if block["type"] == "tool_use"):
            reply = session.call(use["name"], use["input"])
            print(f"{use['name']}: {reply.output.rstrip()}\n")
            results.append({"type": "tool_result", "tool_use_id": use["id"], "content": reply.output,
                            "is_error": not reply.success})
        if not results:
            return "".join(block["text"] for block in answer if block["type"] == "text")
        messages.append({"role": "user", "content": results})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as project:
        Path(project, "sums.py").write_text("def add(a, b):\n    return a - b\n")
        with toolcrib.Session(project) as session:
            print(run_agent(session, "add(2, 3) is -1. Fix it."))
