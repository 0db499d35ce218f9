// A home with two agents at work, for screenshots and measurements.

import { tmpdir } from "node:os";
import { join } from "node:path";
import { Home } from "../tests/program.mjs";

const RULES = `# Rules for all workspaces.

[[rule]]
name = "tests"
decision = "allow"
kind = "command"
commands = ["npm test", "cargo test **"]

[[rule]]
name = "publishing"
decision = "ask"
kind = "command"
commands = ["npm publish", "git push"]
why = "it leaves this machine"

[[rule]]
name = "no-force"
decision = "deny"
kind = "command"
commands = ["git push --force"]
`;

const CART = `import { Money } from "./money";
import { sum } from "./sum";

export class Cart {
  readonly lines: Line[] = [];

  add(line: Line) {
    this.lines.push(line);
  }

  get isEmpty() {
    return this.lines.length === 0;
  }

  total(): Money {
    return sum(this.lines.map((line) => line.price));
  }
}
`;

const TEST_SCRIPT = `#!/bin/sh
printf '\\033[1mRunning 24 tests\\033[0m\\n'
for name in cart/add cart/remove cart/total invoice/lines invoice/tax money/round money/format sum/empty; do
  printf '\\033[32m✓\\033[0m %s\\n' "$name"
done
printf '\\033[31m✕\\033[0m invoice/discount  \\033[1mexpected 12.00, got 11.40\\033[0m\\n'
printf 'waiting for the watcher…\\n'
sleep 600
`;

export async function demoHome() {
  // The pictures show the name. The directory must not exist: it is removed at the end.
  const home = await Home.create(RULES, "", process.env.DEMO_HOME ?? join(tmpdir(), "ana"));
  const shop = await home.workspace("shop", {
    "src/cart.ts": CART, "src/old.ts": "export {};\n", "watch.sh": TEST_SCRIPT, "README.md": "# Shop\n", "package.json": "{}\n",
  });
  const billing = await home.workspace("billing", { "src/invoice.rs": "/// The total of an invoice.\npub fn total(lines: &[Money]) -> Money {\n    lines.iter().sum()\n}\n", "notes.md": "# Notes\n" });
  return { home, shop, billing };
}

/** Calls of every kind: done, failed, denied, refused, changes. */
export async function fillTimeline(agent, other) {
  await agent.call("Grep", { pattern: "total", path: "src" });
  await agent.call("Read", { file_path: "src/cart.ts" });
  await agent.call("Bash", { command: "npm test || ls node_modules", description: "Run the tests" });
  await other.call("LS", { path: "." });
  await other.call("Bash", { command: "cat /etc/shadow; touch /usr/local/bin/tool; curl -s https://example.com", description: "Look around" });
  await other.call("Bash", { command: "git push --force origin main" });
  await other.call("Write", { file_path: "notes.md", content: "# Notes\n\nTotals include tax.\n" });
  await agent.call("Bash", { command: "rm src/old.ts && mkdir -p docs && echo '# Cart' > docs/cart.md", description: "Tidy up" });
  await agent.call("Read", { file_path: "src/missing.ts" });
  await agent.call("MultiEdit", {
    file_path: "src/cart.ts",
    edits: [
      { old_string: "import { sum } from \"./sum\";", new_string: "import { sum } from \"./sum\";\nimport { tax } from \"./tax\";" },
      { old_string: "    return sum(this.lines.map((line) => line.price));", new_string: "    const net = sum(this.lines.map((line) => line.price * line.count));\n    return net + tax(net);" },
    ],
  });
}
