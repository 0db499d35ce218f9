"""What adapters share. The adapters are tested with their frameworks, in `frameworks`."""

import unittest

from support import SessionTest, toolcrib
from toolcrib.adapters._selection import selected


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


if __name__ == "__main__":
    unittest.main()
