// All calls, newest first, with filters and search; the chosen call beside the list.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CallFilter } from "../../api";
import { useKeys } from "../../keyboard";
import { useStore } from "../../live/store";
import { announce } from "../../parts/announce";
import { OutcomeMark, Place, Tool } from "../../parts/labels";
import { Empty, ErrorNote } from "../../parts/loading";
import { Raw } from "../../parts/raw";
import { go, href, parseRoute, type Route } from "../../router";
import { date, duration, number, plural, time } from "../../text/format";
import { CallDetail } from "./call_detail";
import { CallList, type CallRow } from "./call_list";
import { FilterBar } from "./filter_bar";
import { VirtualRows } from "./virtual_rows";

const REFRESH_MS = 300;
const NARROW = "(max-width: 47.99rem)";
const FILTERS = ["text", "tool", "workspace", "server", "session", "path", "outcome"] as const;

export function TimelineView({ route }: { route: Route }) {
  const filter = filterOf(route.params);
  const filterKey = JSON.stringify(filter);
  const list = useCallList(filter, filterKey);
  const rowHeight = useMatch(NARROW) ? 56 : 36;
  const [range, setRange] = useState<[number, number]>([0, 0]);
  const search = useRef<HTMLInputElement>(null);
  const at = list.rows.findIndex((row) => row.id === route.id);
  const [moved, setMoved] = useState<number | null>(null);

  useEffect(() => {
    if (route.params.get("focus") === "search") {
      search.current?.focus();
      go(href("timeline", route.id, paramsOf(filter)), true);
    }
  }, [route.params]);
  const choose = (index: number) => {
    const row = list.rows[Math.min(Math.max(index, 0), list.rows.length - 1)];
    if (row) {
      setMoved(list.rows.indexOf(row));
      go(href("timeline", row.id, route.params), true);
    }
  };
  useKeys({
    j: () => choose(at < 0 ? range[0] : at + 1),
    k: () => choose(at < 0 ? range[0] : at - 1),
    u: () => {
      const change = list.rows[at]?.change;
      if (change !== undefined && change !== null) {
        go(href("change", change));
      }
    },
    "/": () => search.current?.focus(),
    ...(route.id === null ? {} : { Escape: () => go(href("timeline", null, route.params), true) }),
  });
  const setFilter = (part: CallFilter) => {
    // A text filter is set after a pause: the others may have changed since it was typed.
    const current = filterOf(parseRoute(location.hash).params);
    go(href("timeline", null, paramsOf({ ...current, ...part })), true);
  };
  const onRange = (first: number, last: number) => {
    setRange([first, last]);
    list.want(last + 50);
  };
  const top = list.rows[range[0]];
  return (
    <div class={route.id === null ? "view timeline" : "view timeline with-detail"}>
      <div class="view-head">
        <h1>Timeline</h1>
        <p class="view-sub">{subtitle(list, filter)}</p>
      </div>
      <FilterBar filter={filter} onChange={setFilter} search={search} />
      <ErrorNote message={list.error} />
      <div class="split">
        <div class="list-pane">
          <p class="list-day" aria-hidden="true">{top ? date(top.started) : " "}</p>
          <VirtualRows
            count={list.length}
            rowHeight={rowHeight}
            label="Calls"
            inserted={list.added}
            selected={moved}
            onRange={onRange}
            row={(index) => <Row row={list.rows[index]} chosen={route.id} params={route.params} />}
          />
          {list.rows.length === 0 && !list.loading && list.error === null ? (
            <Empty title={filterKey === "{}" ? "No calls yet" : "No call matches"}>
              <p>{filterKey === "{}" ? "Every call of an agent is listed here, also after it has ended." : "Remove a filter, or search for another word."}</p>
            </Empty>
          ) : null}
        </div>
        {route.id === null ? null : (
          <CallDetail
            key={route.id}
            id={route.id}
            onClose={() => go(href("timeline", null, route.params), true)}
            onFilter={setFilter}
          />
        )}
      </div>
    </div>
  );
}

function Row({ row, chosen, params }: { row: CallRow | undefined; chosen: string | null; params: URLSearchParams }) {
  if (!row) {
    return <span class="row row-loading" aria-hidden="true">Loading…</span>;
  }
  return (
    <a class="row" href={href("timeline", row.id, params)} aria-current={row.id === chosen ? "true" : undefined}>
      <time class="row-clock">{time(row.started)}</time>
      <OutcomeMark call={row} />
      <Tool name={row.tool} />
      <span class="row-title code"><Raw text={row.title} /></span>
      <span class="row-facts">
        {row.dry_run ? <span class="fact">dry run</span> : null}
        {row.files_changed && !row.dry_run ? <span class="fact">{plural(row.files_changed, "file")}</span> : null}
        {row.refusals > 0 ? <span class="fact fact-warn">{row.refusals} refused</span> : null}
        {row.workspace ? <Place path={row.workspace} /> : null}
      </span>
      <span class="row-time quiet">{row.outcome === "running" ? "" : duration(row.ms)}</span>
    </a>
  );
}

/** The list for a filter, renewed after calls have ended. */
function useCallList(filter: CallFilter, key: string): CallList {
  const [, setTurn] = useState(0);
  const list = useMemo(() => new CallList(filter, () => setTurn((turn) => turn + 1)), [key]);
  useEffect(() => {
    list.start();
    return () => list.close();
  }, [list]);
  const ended = useStore((state) => state.live.journalNews);
  const first = useRef(ended);
  useEffect(() => {
    if (ended === first.current) {
      return undefined;
    }
    const timer = setTimeout(() => {
      const before = list.added;
      void list.refresh().then(() => {
        if (list.added > before) {
          announce("polite", plural(list.added - before, "new call"));
        }
      });
    }, REFRESH_MS);
    return () => clearTimeout(timer);
  }, [ended, list]);
  return list;
}

function subtitle(list: CallList, filter: CallFilter): string {
  if (list.rows.length === 0 && list.loading) {
    return "Loading…";
  }
  const all = list.complete ? list.rows.length : list.total;
  const noun = Object.keys(filter).length === 0 ? "call" : "matching call";
  return all === null ? `${number(list.rows.length)} ${noun}s loaded, newest first` : `${plural(all, noun)}, newest first`;
}

function filterOf(params: URLSearchParams): CallFilter {
  return Object.fromEntries(FILTERS.flatMap((name) => {
    const value = params.get(name);
    return value ? [[name, value]] : [];
  }));
}

function paramsOf(filter: CallFilter): URLSearchParams {
  return new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== undefined && value !== ""));
}

function useMatch(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const listener = () => setMatches(media.matches);
    media.addEventListener("change", listener);
    return () => media.removeEventListener("change", listener);
  }, [query]);
  return matches;
}
