// Asks how a call would be decided, and why.

import { useState } from "preact/hooks";
import { explain, listWorkspaces } from "../api";
import { ErrorNote, useAction, useLoaded } from "../parts/loading";
import { Raw } from "../parts/raw";
import { useStore } from "../live/store";
import type { Server } from "../api_schema";
import { agentLine } from "../parts/agent_name";
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
  const [chosen, setAgent] = useState("");
  const [result, setResult] = useState<string | null>(null);
  const action = useAction();
  const known = useLoaded(listWorkspaces, []);
  const servers = useStore((state) => state.live.servers);
  const agents = agentsOf(servers, (known.value?.workspaces ?? []).map((one) => one.path));
  const agent = agents.find((one) => one.key === chosen) ?? agents[0];
  const choose = (next: Subject) => {
    setSubject(next);
    setTool(SUBJECTS[next].tools[0] ?? "Bash");
  };
  const ask = () => action.run(async () => {
    setResult(null);
    const { workspace, profile } = agent ?? { workspace: "" };
    setResult((await explain({ tool, [subject]: text, workspace, ...(profile ? { profile } : {}) })).text);
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
        <select class="field explain-text" aria-label="Agent" value={agent?.key ?? ""} onChange={(event) => setAgent(event.currentTarget.value)}>
          {agents.length === 0 ? <option value="">no agent known</option> : null}
          {agents.map((one) => <option value={one.key}>{one.name}</option>)}
        </select>
        <button type="submit" class="button" disabled={action.busy || text.trim() === ""}>Explain</button>
      </form>
      <ErrorNote message={action.error} />
      {result === null ? null : <pre class="explanation code" tabIndex={0} role="region" aria-label="Explanation"><Raw text={result} layout /></pre>}
    </section>
  );
}

/** Whose settings decide: a connected agent with its profile, or a workspace with the profile of the configuration. */
interface ExplainedAgent {
  key: string;
  name: string;
  workspace: string;
  profile?: string;
}

function agentsOf(servers: Server[], workspaces: string[]): ExplainedAgent[] {
  const connected = servers.flatMap((server): ExplainedAgent[] => {
    const workspace = server.roots[0];
    return workspace === undefined ? [] : [{ key: server.server, name: agentLine(server, servers), workspace, profile: server.profile }];
  });
  const others = workspaces.map((path) => ({ key: path, name: `profile of config.toml, in ${visibleText(path)}`, workspace: path }));
  return [...connected, ...others];
}
