"""Harbor: trials with the oracle agent."""

import tempfile
import unittest
from pathlib import Path
from typing import Any

from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

TASK = """
version = "1.0"

[agent]
timeout_sec = 120

[verifier]
timeout_sec = 120

[environment]
"""
SOLVE = """#!/bin/bash
set -e
test "$(cat given.txt)" = given
pwd > /app/where.txt
echo solved > /app/answer.txt
touch OUTSIDE/escaped || true
"""
TEST = """#!/bin/bash
if grep -qx solved /app/answer.txt && grep -qx /app /app/where.txt; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
"""


class Harbor(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def task(self, solution: str) -> Path:
        root = self.directory / "task"
        files = {
            "task.toml": TASK,
            "instruction.md": "Solve it.\n",
            "environment/Dockerfile": "FROM debian\n",
            "environment/given.txt": "given\n",
            "solution/solve.sh": solution.replace("OUTSIDE", str(self.directory)),
            "tests/test.sh": TEST,
        }
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
        return root

    async def run_trial(self, solution: str) -> Any:
        environment = EnvironmentConfig(import_path="toolcrib.adapters.harbor:ToolcribEnvironment")
        config = TrialConfig(
            task=TaskConfig(path=self.task(solution)),
            trials_dir=self.directory / "trials",
            agent=AgentConfig(name="oracle"),
            environment=environment,
        )
        trial = await Trial.create(config)
        return await trial.run()

    async def test_oracle_solves_the_task(self) -> None:
        result = await self.run_trial(SOLVE)
        self.assertIsNone(result.exception_info)
        self.assertEqual(result.verifier_result.rewards, {"reward": 1.0})
        self.assertFalse((self.directory / "escaped").exists())
        self.assertFalse(Path("/app/answer.txt").exists())

    async def test_wrong_solution_has_no_reward(self) -> None:
        result = await self.run_trial("#!/bin/bash\necho wrong > /app/answer.txt\n")
        self.assertIsNone(result.exception_info)
        self.assertEqual(result.verifier_result.rewards, {"reward": 0.0})


if __name__ == "__main__":
    unittest.main()
