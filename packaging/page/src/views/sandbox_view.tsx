// What the sandbox refused, with the setting that would allow it.

import { useEffect, useRef, useState } from "preact/hooks";
import { listRefusals, messageOf } from "../api";
import type { RefusalRow, Server } from "../api_schema";
import { useStore } from "../live/store";
import { AgentName } from "../parts/agent_name";
import { EditSteps } from "../parts/edit_rule_steps";
import { Place, SandboxLine, Tool } from "../parts/labels";
import { Empty, ErrorNote } from "../parts/loading";
import { Raw } from "../parts/raw";
import { href } from "../router";
import { dateAndTime, number } from "../text/format";

export function SandboxView() {
  const servers = useStore((state) => state.live.servers);
  const ended = useStore((state) => state.live.journalNews);
  const [rows, setRows] = useState<RefusalRow[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const extended = useRef(false);

  const load = (before: string | null) => {
    listRefusals(before).then(
      (page) => {
        setRows((old) => (before === null ? page.refusals : [...(old ?? []), ...page.refusals]));
        setNext(page.next ?? null);
        setError(null);
      },
      (reason: unknown) => setError(messageOf(reason)),
    );
  };
  useEffect(() => {
    if (extended.current) {
      return undefined;
    }
    const timer = setTimeout(() => load(null), rows === null ? 0 : 500);
    return () => clearTimeout(timer);
  }, [ended]);
  const more = () => {
    extended.current = true;
    load(next);
  };
  return (
    <div class="view">
      <div class="view-head">
        <h1>Sandbox</h1>
        <p class="view-sub">What was refused to commands</p>
      </div>
      {servers.some((server) => server.sandbox !== "") ? (
        <ul class="sandboxes" aria-label="Sandboxes of the connected agents">
          {bySandbox(servers).map(([sandbox, same]) => (
            <li key={sandbox}>
              <p>{same.map((server, index) => <>{index === 0 ? "" : ", "}<AgentName server={server.server} /></>)}</p>
              <SandboxLine text={sandbox} />
            </li>
          ))}
        </ul>
      ) : null}
      <ErrorNote message={error} />
      <ul class="refusal-rows">
        {(rows ?? []).map((row) => (
          <li class="refusal-row">
            <p class="refusal-what code"><Raw text={row.what} />{row.count > 1 ? <span class="tag">{number(row.count)} times</span> : null}</p>
            {row.setting ? <p class="refusal-setting"><Raw text={row.setting} /></p> : null}
            {row.rule ? <AllowingRule toml={row.rule} onAdded={() => load(null)} /> : null}
            <p class="refusal-facts quiet">
              <Tool name={row.tool} /> <Place path={row.workspace} /> <time>{dateAndTime(row.at)}</time>
              {row.call ? <> <a href={href("timeline", row.call)}>Show the call</a></> : null}
            </p>
          </li>
        ))}
      </ul>
      {rows?.length === 0 ? <Empty title="Nothing was refused"><p>Writes outside the workspace, hidden files and network connections that the sandbox refuses are listed here.</p></Empty> : null}
      {next === null ? null : <button type="button" class="button" onClick={more}>Show older refusals</button>}
    </div>
  );
}

/** The rule that would allow a host, and the steps to add it. */
function AllowingRule({ toml, onAdded }: { toml: string; onAdded: () => void }) {
  const [added, setAdded] = useState(false);
  if (added) {
    return <p class="refusal-rule" role="status">The rule was added. Running agents use it at their next call.</p>;
  }
  return (
    <div class="refusal-rule">
      <p>This rule would allow it:</p>
      <pre class="toml code"><Raw text={toml} layout /></pre>
      <EditSteps edit={{ add: toml }} open="Add this rule…" confirm="Add this rule" onChange={() => {
        setAdded(true);
        onAdded();
      }} />
    </div>
  );
}

/** The agents by their sandbox. Most have the same. */
function bySandbox(servers: Server[]): [string, Server[]][] {
  const groups = new Map<string, Server[]>();
  for (const server of servers.filter((one) => one.sandbox !== "")) {
    groups.set(server.sandbox, [...(groups.get(server.sandbox) ?? []), server]);
  }
  return [...groups];
}
