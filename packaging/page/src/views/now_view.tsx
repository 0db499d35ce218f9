// Running calls with live output, the agents that are connected, and what just finished.

import { useState } from "preact/hooks";
import { stopCall } from "../api";
import type { RunningCall, Server } from "../api_schema";
import { isWaiting, runningCount } from "../live/live_state";
import { useStore } from "../live/store";
import { AgentName, clientName } from "../parts/agent_name";
import { Accesses, OutcomeMark, SandboxLine, titleOf, Tool } from "../parts/labels";
import { LiveOutput } from "../parts/live_output";
import { Empty, ErrorNote, useAction, useNow } from "../parts/loading";
import { Raw } from "../parts/raw";
import { href } from "../router";
import { ago, dateAndTime, duration, elapsed, plural } from "../text/format";

const OPEN_AT_FIRST = 3;

export function NowView() {
  const live = useStore((state) => state.live);
  const known = useStore((state) => state.known);
  const running = runningCount(live);
  return (
    <div class="view">
      <div class="view-head">
        <h1>Now</h1>
        <p class="view-sub">
          {running === 0 ? "No call is running" : `${plural(running, "call")} running`}
          {live.servers.length === 0 ? "" : `, ${plural(live.servers.length, "agent")} connected`}
        </p>
      </div>
      <div class="columns">
        <div class="column-main">
          <div class="cards">
            {live.running.map((call, index) => (
              <RunningCard key={call.id} call={call} asks={isWaiting(live, call)} openAtFirst={index < OPEN_AT_FIRST} />
            ))}
          </div>
          {live.running.length === 0 && known ? (
            <Empty title="Nothing runs right now"><p>Commands and other calls of your agents appear here while they run.</p></Empty>
          ) : null}
          {live.recent.length > 0 ? <RecentCalls /> : null}
        </div>
        <Agents servers={live.servers} />
      </div>
    </div>
  );
}

function RunningCard({ call, asks, openAtFirst }: { call: RunningCall; asks: boolean; openAtFirst: boolean }) {
  const now = useNow();
  const isCommand = Boolean(call.job) || (call.accesses ?? []).some((access) => access.effect === "command");
  const [open, setOpen] = useState(openAtFirst);
  const others = (call.accesses ?? []).filter((access) => access.effect !== "command");
  return (
    <article class="card" aria-label={`${call.tool}, running`}>
      <header class="card-head">
        {asks ? null : <span class="pulse" aria-hidden="true" />}
        <h2><Tool name={call.tool} /></h2>
        <AgentName server={call.server} workspace={call.workspace} session={call.session} />
        {call.in_background ? <span class="tag">in the background</span> : null}
        <span class="card-wait" aria-hidden="true">{elapsed(now - call.started)}</span>
      </header>
      <p class="running-title code"><Raw text={titleOf(call)} /></p>
      {call.description ? <p class="card-words">“<Raw text={call.description} />”</p> : null}
      {others.length > 0 ? <Accesses accesses={others} /> : null}
      {asks ? <p class="note note-wait">It waits for your answer. <a href={href("waiting")}>Review</a></p> : null}
      {isCommand && !asks ? (
        <>
          {open ? <LiveOutput call={call.id} running /> : null}
          <div class="card-foot">
            <button type="button" class="button" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Hide output" : "Show output"}</button>
            <StopButton call={call} />
          </div>
        </>
      ) : null}
    </article>
  );
}

function StopButton({ call }: { call: RunningCall }) {
  const [asked, setAsked] = useState(false);
  const action = useAction();
  const stop = () => action.run(async () => {
    await stopCall(call.id);
    setAsked(false);
  });
  if (!asked) {
    return <button type="button" class="button" onClick={() => setAsked(true)}>Stop…</button>;
  }
  return (
    <>
      <button type="button" class="button answer-deny" disabled={action.busy} onClick={stop}>Stop the command</button>
      <button type="button" class="button" onClick={() => setAsked(false)}>Let it run</button>
      <ErrorNote message={action.error} />
    </>
  );
}

function RecentCalls() {
  const recent = useStore((state) => state.live.recent).filter((call) => call.outcome !== "running").slice(0, 10);
  return (
    <section class="recent" aria-labelledby="recent-title">
      <h2 id="recent-title">Just finished</h2>
      <ul class="rows">
        {recent.map((call) => (
          <li key={call.id}>
            <a class="row" href={href("timeline", call.id)}>
              <OutcomeMark call={call} />
              <Tool name={call.tool} />
              <span class="row-title code"><Raw text={titleOf(call)} /></span>
              {call.dry_run ? <span class="tag">dry run</span> : null}
              <span class="row-time quiet">{duration(call.ms)}</span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Agents({ servers }: { servers: Server[] }) {
  const now = useNow();
  return (
    <aside class="column-side" aria-labelledby="agents-title">
      <h2 id="agents-title">Agents</h2>
      {servers.length === 0 ? <p class="quiet">No agent is connected. One appears here as soon as a client starts <code>toolcrib serve</code>.</p> : null}
      <ul class="agents">
        {servers.map((server) => (
          <li key={server.server} class="agent">
            <p class="agent-name"><Raw text={clientName(server)} /></p>
            {server.roots.map((root) => <p class="agent-root code"><Raw text={root} /></p>)}
            <dl class="pairs">
              <dt>Profile</dt><dd><Raw text={server.profile} />, network <Raw text={server.network} /></dd>
              {server.sandbox === "" ? null : <><dt>Sandbox</dt><dd><SandboxLine text={server.sandbox} brief /></dd></>}
              <dt>Started</dt><dd title={dateAndTime(server.started)}>{ago(server.started, now)} (process {server.pid})</dd>
            </dl>
          </li>
        ))}
      </ul>
    </aside>
  );
}
