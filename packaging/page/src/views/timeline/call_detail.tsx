// One call: what was asked, what happened, what it changed, what was refused, where it connected.

import type { ComponentChildren } from "preact";
import { getCall, getChange, type CallFilter } from "../../api";
import type { Call, CommandEnd, Connection } from "../../api_schema";
import { useStore } from "../../live/store";
import { clientName } from "../../parts/agent_name";
import { DiffFile } from "../../parts/diff_view";
import { Accesses, answeredText, DecisionLabel, OutcomeMark, ruleName, Tool } from "../../parts/labels";
import { LiveOutput } from "../../parts/live_output";
import { ErrorNote, useLoaded } from "../../parts/loading";
import { LongRaw, Raw } from "../../parts/raw";
import { href } from "../../router";
import { bytes, dateAndTime, duration, plural } from "../../text/format";

interface CallDetailProps {
  id: string;
  onClose: () => void;
  onFilter: (part: CallFilter) => void;
}

export function CallDetail({ id, onClose, onFilter }: CallDetailProps) {
  const loaded = useLoaded(() => getCall(id), [id]);
  const call = loaded.value;
  return (
    <section class="detail" aria-label="Call">
      <div class="detail-head">
        {call ? <><OutcomeMark call={call} words /><h2><Tool name={call.tool} /></h2></> : <h2>Call</h2>}
        <button type="button" class="button close" onClick={onClose}>Close</button>
      </div>
      <ErrorNote message={loaded.error} />
      {call ? <CallFacts call={call} onFilter={onFilter} /> : loaded.error === null ? <p class="quiet">Loading…</p> : null}
    </section>
  );
}

function CallFacts({ call, onFilter }: { call: Call; onFilter: (part: CallFilter) => void }) {
  const commands = (call.accesses ?? []).filter((access) => access.effect === "command");
  const others = (call.accesses ?? []).filter((access) => access.effect !== "command");
  const isCommand = commands.length > 0 || Boolean(call.job);
  return (
    <>
      <pre class="detail-title code"><LongRaw text={commandOf(call) ?? call.title} layout /></pre>
      {call.description ? <p class="card-words">“<Raw text={call.description} />”</p> : null}
      {call.message ? <p class={call.outcome === "done" || call.outcome === null ? "note" : "note note-error"}>{call.error_kind ? <b><Raw text={call.error_kind} />: </b> : null}<LongRaw text={call.message} layout /></p> : null}
      <dl class="pairs">
        <dt>Started</dt><dd>{dateAndTime(call.started)}{call.ms === null ? "" : `, the call took ${duration(call.ms)}`}{call.dry_run ? ", dry run" : ""}</dd>
        {call.command_end ? <><dt>Command</dt><dd>{commandEndText(call, call.command_end)}</dd></> : null}
        {call.workspace ? <><dt>Workspace</dt><dd class="code"><Raw text={call.workspace} /> <FilterLink onClick={() => onFilter({ workspace: call.workspace ?? "" })} /></dd></> : null}
        <dt>Agent</dt><dd><AgentOf call={call} /> <FilterLink onClick={() => onFilter({ session: call.session, ...(call.server ? { server: call.server } : {}) })} /></dd>
        {call.decision ? <><dt>Decision</dt><dd><DecisionLabel decision={call.decision} />{call.rule ? <> by <span class="code"><Raw text={ruleName(call.rule)} /></span></> : null}
          {call.answered ? `. ${answeredText(call.answered)}.` : ""}</dd></> : null}
      </dl>
      {others.length > 0 ? <Part title="Accesses"><Accesses accesses={others} /></Part> : null}
      {call.change !== undefined && call.change !== null ? <ChangePart id={String(call.change)} /> : null}
      {(call.refusals ?? []).length > 0 ? (
        <Part title="Refused by the sandbox">
          <ul class="refusals">
            {(call.refusals ?? []).map((refusal) => (
              <li><span class="code"><Raw text={refusal.what} /></span>{refusal.setting ? <span class="quiet"><Raw text={refusal.setting} /></span> : null}</li>
            ))}
          </ul>
        </Part>
      ) : null}
      {(call.connections ?? []).length > 0 ? <Part title="Connections"><Connections connections={call.connections ?? []} /></Part> : null}
      {isCommand ? <Part title="Output"><LiveOutput call={call.id} running={call.outcome === "running"} /></Part> : null}
      {call.arguments === undefined || call.arguments === null ? null : (
        <Part title="Arguments"><pre class="arguments code"><LongRaw text={argumentText(call.arguments)} layout /></pre></Part>
      )}
    </>
  );
}

const STATUSES: Record<string, string> = {
  completed: "ended successfully", failed: "failed", killed: "was killed", timeout: "was ended at its time limit",
};

/** How the command ended that went on after its call. */
function commandEndText(call: Call, end: CommandEnd): string {
  if (end.status === "server_ended") {
    return "It went on after the call, and ended with its server";
  }
  const after = end.at ? ` after ${duration(end.at - call.started)}` : "";
  const code = end.exit_code === undefined || end.exit_code === null ? "" : ` with exit code ${end.exit_code}`;
  return `It went on after the call, and ${STATUSES[end.status] ?? end.status}${code}${after}`;
}

/** The client if it still runs, the process and the session. */
function AgentOf({ call }: { call: Call }) {
  const server = useStore((state) => state.live.servers.find((one) => one.server === call.server));
  const process = call.server?.split("-")[0];
  const parts = [server ? clientName(server) : null, process ? `process ${process}` : null, `session ${call.session}`];
  return <Raw text={parts.filter((part) => part !== null).join(", ")} />;
}

function FilterLink({ onClick }: { onClick: () => void }) {
  return <button type="button" class="link" onClick={onClick}>only these</button>;
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return <section class="part"><h3>{title}</h3>{children}</section>;
}

function ChangePart({ id }: { id: string }) {
  const loaded = useLoaded(() => getChange(id), [id]);
  const change = loaded.value;
  return (
    <section class="part">
      <h3>
        Change <Raw text={id} />
        {change ? <span class="quiet"> {plural(change.files.length, "file")}{change.undone ? ", undone" : change.undone_in_part ? ", partly undone" : ""}</span> : null}
      </h3>
      <p><a class="button" href={href("change", id)}>{change?.undone ? "Open or redo" : "Open or undo"}<kbd aria-hidden="true">u</kbd></a></p>
      <ErrorNote message={loaded.error} />
      {change?.files.slice(0, 20).map((file) => <DiffFile file={file} />)}
      {(change?.files.length ?? 0) > 20 ? <p class="quiet">and {plural((change?.files.length ?? 0) - 20, "more file")}</p> : null}
    </section>
  );
}

function Connections({ connections }: { connections: Connection[] }) {
  return (
    <ul class="connections">
      {connections.map((one) => (
        <li>
          <DecisionLabel decision={one.decision} />
          <span class="code"><Raw text={one.host} />:{one.port}</span>
          <span class="quiet">
            {one.bytes_up || one.bytes_down ? `${bytes(one.bytes_up ?? 0)} sent, ${bytes(one.bytes_down ?? 0)} received` : ""}
            {one.why ? <Raw text={one.why} /> : null}
          </span>
        </li>
      ))}
    </ul>
  );
}

function commandOf(call: Call): string | null {
  const command = (call.arguments as { command?: unknown } | null | undefined)?.command;
  return typeof command === "string" ? command : null;
}

function argumentText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
