// The start of a tab.

import { render } from "preact";
import { App } from "./app";
import { listenForKeys } from "./keyboard";
import { connect } from "./live/worker_link";
import { applyTheme } from "./settings";


applyTheme();
listenForKeys();
const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App problem={null} />, root);
  void connect().then((problem) => problem !== null && render(<App problem={problem} />, root));
}
