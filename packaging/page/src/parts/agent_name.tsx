// Which agent: its client and workspace, and what tells it from others with the same.

import type { Server } from "../api_schema";
import { useStore } from "../live/store";
import { time } from "../text/format";
import { visibleText } from "../text/visible_text";
import { Place } from "./labels";
import { Raw } from "./raw";

interface AgentNameProps {
  server: string | undefined;
  client?: string | null | undefined;
  workspace?: string | null | undefined;
  session?: string | undefined;
}

export function AgentName({ server: id, client, workspace, session }: AgentNameProps) {
  const servers = useStore((state) => state.live.servers);
  const sessions = useStore((state) => sessionsOf(state.live, id));
  const server = servers.find((one) => one.server === id);
  const name = client ?? (server ? clientName(server) : null);
  const root = workspace || server?.roots[0];
  // A client that has not sent its name yet may have the same.
  const isSame = (one: Server) => !one.client || clientName(one) === name;
  const isOther = (one: Server) => one.server !== id && one.roots[0] === root && isSame(one);
  return (
    <span class="agent-id">
      {name ? <span class="card-client"><Raw text={name} /></span> : null}
      {root ? <> <Place path={root} /></> : null}
      {server && servers.some(isOther) ? <span class="quiet"> process {server.pid}, started {time(server.started)}</span> : null}
      {session && sessions > 1 ? <span class="quiet"> session <Raw text={session} /></span> : null}
    </span>
  );
}

/** The name of the client, or what is known instead. */
export function clientName(server: Pick<Server, "client" | "program">): string {
  return server.client ?? (server.program === "run" ? "a program" : "a client");
}

/** One line for a list of choices. */
export function agentLine(server: Server, all: Server[]): string {
  const line = `${clientName(server)}, profile ${server.profile}, in ${server.roots[0] ?? "?"}`;
  const isSame = (one: Server) => one.roots[0] === server.roots[0] && clientName(one) === clientName(server);
  return visibleText(all.filter(isSame).length > 1 ? `${line}, process ${server.pid}` : line);
}

/** How many sessions of a server have requests or calls now. */
function sessionsOf(live: { waiting: Of[]; running: Of[] }, server: string | undefined): number {
  const all = [...live.waiting, ...live.running].filter((one) => one.server === server);
  return new Set(all.map((one) => one.session)).size;
}

interface Of {
  server?: string;
  session: string;
}
