"""What adapters share. The adapters are tested with their frameworks, in `frameworks`."""

import importlib
import re
import sys
import unittest
from pathlib import Path
from unittest import mock

from support import SessionTest, toolcrib
from toolcrib.adapters._selection import selected

FRAMEWORKS = Path(__file__).resolve().parents[1] / "frameworks"


class SelectionTest(SessionTest):
    def test_tools_are_selected_by_their_names(self) -> None:
        with self.session() as session:
            definitions = session.tools("mcp")
        self.assertEqual(selected(definitions, None), definitions)
        self.assertEqual([each["name"] for each in selected(definitions, ["Grep", "Read"])], ["Read", "Grep"])
        self.assertEqual([each["name"] for each in selected(definitions, "Read")], ["Read"])
        self.assertEqual(selected(definitions, []), [])

    def test_an_unknown_name_is_an_error(self) -> None:
        with self.session() as session:
            definitions = session.tools("mcp")
        with self.assertRaisesRegex(toolcrib.InvalidArgument, "no tool Reed\nDid you mean Read\\? Its tools are: .*Grep"):
            selected(definitions, ["Read", "Reed"])
        with self.assertRaisesRegex(toolcrib.InvalidArgument, "no tool Search\nIts tools are: Read, "):
            selected(definitions, ["Search"])


class FrameworkTest(unittest.TestCase):
    def test_a_missing_framework_is_named_with_its_package(self) -> None:
        modules = {"claude_agent": "claude_agent_sdk", "google_adk": "google", "openai_agents": "agents", "swe_rex": "swerex"}
        modules |= {"langchain": "langchain_core", "openhands": "mcp"}
        names = sorted(path.parent.name for path in FRAMEWORKS.glob("*/requirements.txt"))
        self.assertIn("ray", names)
        for name in names:
            package = re.split(r"[=\[]", (FRAMEWORKS / name / "requirements.txt").read_text(), maxsplit=1)[0]
            # None makes the import fail although the framework may be installed.
            missing = {modules.get(name, name): None, f"toolcrib.adapters.{name}": None}
            with self.subTest(adapter=name), mock.patch.dict(sys.modules, missing):
                del sys.modules[f"toolcrib.adapters.{name}"]
                with self.assertRaisesRegex(ModuleNotFoundError, f": pip install -U {package}$"):
                    importlib.import_module(f"toolcrib.adapters.{name}")


if __name__ == "__main__":
    unittest.main()
