// Asks how a call would be decided, and why.

import { useState } from "preact/hooks";
import { explain, listWorkspaces } from "../api";
import { ErrorNote, useAction, useLoaded } from "../parts/loading";
import { Raw } from "../parts/raw";
import { useStore } from "../live/store";
import { visibleText } from "../text/visible_text";

type Subject = "command" | "path" | "host";

const SUBJECTS: Record<Subject, { tools: string[]; placeholder: string }> = {
  command: { tools: ["Bash"], placeholder: "git push origin main" },
  path: { tools: ["Read", "Write", "Edit"], placeholder: "src/main.rs" },
  host: { tools: ["Bash"], placeholder: "example.com:443" },
};

export function Explainer() {
  const [subject, setSubject] = useState<Subject>("command");
  const [tool, setTool] = useState("Bash");
  const [text, setText] = useState("");
  const [chosen, setWorkspace] = useState("");
  const [result, setResult] = useState<string | null>(null);
  const action = useAction();
  const known = useLoaded(listWorkspaces, []);
  const roots = useStore((state) => state.live.servers).flatMap((server) => server.roots);
  const workspaces = [...new Set([...roots, ...(known.value?.workspaces ?? []).map((one) => one.path)])];
  const workspace = chosen === "" ? workspaces[0] ?? "" : chosen;
  const choose = (next: Subject) => {
    setSubject(next);
    setTool(SUBJECTS[next].tools[0] ?? "Bash");
  };
  const ask = () => action.run(async () => {
    setResult(null);
    setResult((await explain({ tool, [subject]: text, workspace })).text);
  });
  return (
    <section class="side-card" aria-labelledby="explain-title">
      <h2 id="explain-title">Explain a decision</h2>
      <form class="explain" onSubmit={(event) => {
        event.preventDefault();
        ask();
      }}>
        <select class="field" aria-label="Kind" value={subject} onChange={(event) => choose(event.currentTarget.value as Subject)}>
          <option value="command">Command</option>
          <option value="path">Path</option>
          <option value="host">Host</option>
        </select>
        {SUBJECTS[subject].tools.length > 1 ? (
          <select class="field" aria-label="Tool" value={tool} onChange={(event) => setTool(event.currentTarget.value)}>
            {SUBJECTS[subject].tools.map((one) => <option>{one}</option>)}
          </select>
        ) : null}
        <input class="field code explain-text" aria-label={subject} placeholder={SUBJECTS[subject].placeholder} value={text} spellcheck={false} autocomplete="off" onInput={(event) => setText(event.currentTarget.value)} />
        <select class="field explain-text" aria-label="Workspace" value={workspace} onChange={(event) => setWorkspace(event.currentTarget.value)}>
          {workspaces.length === 0 ? <option value="">no workspace known</option> : null}
          {workspaces.map((one) => <option value={one}>{visibleText(one)}</option>)}
        </select>
        <button type="submit" class="button" disabled={action.busy || text.trim() === ""}>Explain</button>
      </form>
      <ErrorNote message={action.error} />
      {result === null ? null : <pre class="explanation code" tabIndex={0} role="region" aria-label="Explanation"><Raw text={result} layout /></pre>}
    </section>
  );
}
