// Routes in the fragment of the address: `#/view/id?name=value`.

import { useEffect, useState } from "preact/hooks";

export const VIEWS = ["waiting", "now", "timeline", "sandbox", "rules"] as const;
export type View = (typeof VIEWS)[number] | "change";

export interface Route {
  view: View;
  id: string | null;
  params: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [name = "", id = ""] = path.split("/", 2);
  const view = name === "change" || (VIEWS as readonly string[]).includes(name) ? (name as View) : "waiting";
  return { view, id: id === "" ? null : safeDecode(id), params: new URLSearchParams(search) };
}

export function href(view: View, id?: string | number | null, params?: URLSearchParams): string {
  const search = params?.toString() ?? "";
  const tail = id === undefined || id === null ? "" : `/${encodeURIComponent(String(id))}`;
  return `#/${view}${tail}${search === "" ? "" : `?${search}`}`;
}

export function go(target: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", target);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = target;
  }
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const listener = () => setRoute(parseRoute(location.hash));
    addEventListener("hashchange", listener);
    return () => removeEventListener("hashchange", listener);
  }, []);
  return route;
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
