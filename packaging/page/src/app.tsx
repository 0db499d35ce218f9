// The frame of the page: navigation, the state of the link, and the current view.

import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "./keyboard";
import { runningCount, waitingCount } from "./live/live_state";
import type { Link } from "./live/messages";
import { useStore } from "./live/store";
import { retryNow } from "./live/worker_link";
import { announce, LiveRegions } from "./parts/announce";
import { HelpDialog, SettingsDialog } from "./parts/dialogs";
import { Icon } from "./parts/icons";
import { go, href, useRoute, VIEWS, type Route, type View } from "./router";
import { showCount } from "./tab_badge";
import { plural } from "./text/format";
import { ChangeView } from "./views/change_view";
import { NowView } from "./views/now_view";
import { RulesView } from "./views/rules_view";
import { SandboxView } from "./views/sandbox_view";
import { TimelineView } from "./views/timeline/timeline_view";
import { WaitingView } from "./views/waiting/waiting_view";

const NAMES: Record<View, string> = {
  waiting: "Waiting", now: "Now", timeline: "Timeline", change: "Change", sandbox: "Sandbox", rules: "Rules",
};

export function App({ problem }: { problem: string | null }) {
  const route = useRoute();
  const link = useStore((state) => state.link);
  const waiting = useStore((state) => state.live.waiting.length);
  const asking = useStore((state) => waitingCount(state.live));
  const running = useStore((state) => runningCount(state.live));
  const missed = useStore((state) => state.live.missed);
  const [dialog, setDialog] = useState<"help" | "settings" | null>(null);
  const signedIn = link === "connecting" || link === "live" || link === "gone";

  useEffect(() => showCount(waiting, link !== "gone"), [waiting, link]);
  useAnnouncedRequests(asking);
  useKeys({
    "?": () => setDialog("help"),
    "/": () => go(href("timeline", null, new URLSearchParams({ focus: "search" }))),
    ...Object.fromEntries(VIEWS.map((view, index) => [String(index + 1), () => go(href(view))])),
  }, true);
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault();
        document.getElementById("content")?.focus();
      }}>Skip to the content</a>
      <header class="bar">
        <a class="brand" href={href("waiting")}><img src="/favicon.svg" alt="" width="24" height="24" />Toolcrib</a>
        <nav class="nav" aria-label="Views">
          {VIEWS.map((view) => (
            <a href={href(view)} aria-current={isCurrent(view, route) ? "page" : undefined}>
              <Icon name={view} /><span>{NAMES[view]}</span>
              <NavCount view={view} waiting={waiting} running={running} />
            </a>
          ))}
        </nav>
        <div class="bar-end">
          <LinkState link={link} />
          <button type="button" class="icon-button" aria-label="Keyboard help" title="Keyboard help (?)" onClick={() => setDialog("help")}><Icon name="help" /></button>
          <button type="button" class="icon-button" aria-label="Settings" title="Settings" onClick={() => setDialog("settings")}><Icon name="settings" /></button>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <LinkBanner link={link} problem={problem} />
        {missed > 0 ? <p class="note note-warn banner">{plural(missed, "event")} could not be shown live. The timeline has all calls.</p> : null}
        {asking > 0 && route.view !== "waiting" ? (
          <p class="note note-wait banner">{plural(asking, "request")} {asking === 1 ? "waits" : "wait"} for your answer. <a href={href("waiting")}>Review</a></p>
        ) : null}
        {problem === null && signedIn ? <CurrentView route={route} /> : null}
      </main>
      <LiveRegions />
      {dialog === "help" ? <HelpDialog onClose={() => setDialog(null)} /> : null}
      {dialog === "settings" ? <SettingsDialog onClose={() => setDialog(null)} /> : null}
    </>
  );
}

function CurrentView({ route }: { route: Route }) {
  switch (route.view) {
    case "now":
      return <NowView />;
    case "timeline":
      return <TimelineView route={route} />;
    case "change":
      return <ChangeView id={route.id} />;
    case "sandbox":
      return <SandboxView />;
    case "rules":
      return <RulesView />;
    default:
      return <WaitingView />;
  }
}

function isCurrent(view: View, route: Route): boolean {
  return route.view === view || (view === "timeline" && route.view === "change");
}

function NavCount({ view, waiting, running }: { view: View; waiting: number; running: number }) {
  if (view === "waiting" && waiting > 0) {
    return <Count kind="count count-wait" value={waiting} text={plural(waiting, "request")} />;
  }
  return view === "now" && running > 0 ? <Count kind="count" value={running} text={`${running} running`} /> : null;
}

/** A number beside a link. Screen readers say what it counts. */
function Count({ kind, value, text }: { kind: string; value: number; text: string }) {
  return <span class={kind}><span aria-hidden="true">{value}</span><span class="hidden-text">, {text}</span></span>;
}

const LINK_WORDS: Record<Link, string> = {
  starting: "connecting", no_token: "not signed in", connecting: "connecting", live: "live", gone: "offline", refused: "not signed in",
};

function LinkState({ link }: { link: Link }) {
  return <span class={`link-state link-${link}`} role="status"><span class="dot" aria-hidden="true" /><span>{LINK_WORDS[link]}</span></span>;
}

function LinkBanner({ link, problem }: { link: Link; problem: string | null }) {
  if (problem !== null) {
    return <Notice title="This page cannot run here"><p>{problem}</p></Notice>;
  }
  if (link === "gone") {
    return (
      <div class="note note-error banner" role="alert">
        <span>The page process does not answer. Your agents go on without it. Start it again with <code>toolcrib page</code>. What you see below may be old.</span>{" "}
        <button type="button" class="button small" onClick={retryNow}>Try now</button>
      </div>
    );
  }
  if (link === "no_token" || link === "refused") {
    return (
      <Notice title={link === "refused" ? "This tab is not signed in any more" : "This tab is not signed in"}>
        <p>Each start address works once. Run <code>toolcrib page --open</code> in a terminal: it opens a new one.</p>
      </Notice>
    );
  }
  return null;
}

function Notice({ title, children }: { title: string; children: preact.ComponentChildren }) {
  return <div class="view"><div class="empty"><h1 class="empty-title">{title}</h1>{children}</div></div>;
}

/** Tells screen readers about new requests, once for several. */
function useAnnouncedRequests(waiting: number): void {
  const before = useRef(waiting);
  useEffect(() => {
    if (waiting > before.current) {
      announce("assertive", `${plural(waiting, "request")} ${waiting === 1 ? "waits" : "wait"} for approval`);
    } else if (waiting < before.current) {
      // The text of a live region stays readable: it must not name requests that are answered.
      announce("assertive", "");
      announce("polite", waiting === 0 ? "No request waits" : `${plural(waiting, "request")} left`);
    }
    before.current = waiting;
  }, [waiting]);
}
