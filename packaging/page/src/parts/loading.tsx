// Values that arrive later, and the state of an action.

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "../api";
import { useStore } from "../live/store";

export interface Loaded<T> {
  value: T | null;
  error: string | null;
  reload: () => void;
  set: (value: T) => void;
}

/** Loads a value, and again when a key changes. A late reply for an old key is dropped. */
export function useLoaded<T>(load: () => Promise<T>, keys: readonly unknown[]): Loaded<T> {
  const [value, set] = useState<T | null>(null);
  const [error, setError] = useState<string | null>(null);
  const turn = useRef(0);
  const reload = useCallback(() => {
    const mine = ++turn.current;
    load().then(
      (loaded) => {
        if (mine === turn.current) {
          set(() => loaded);
          setError(null);
        }
      },
      (reason: unknown) => {
        if (mine === turn.current) {
          setError(messageOf(reason));
        }
      },
    );
  }, keys);
  const link = useStore((state) => state.link);
  useEffect(() => {
    if (link === "live" && error !== null) {
      reload();
    }
  }, [link]);
  useEffect(() => {
    reload();
    return () => {
      turn.current += 1;
    };
  }, [reload]);
  return { value, error, reload, set };
}

export interface Action {
  busy: boolean;
  error: string | null;
  run: (work: () => Promise<void>) => void;
  clear: () => void;
}

/** An action that a button starts: once at a time, with its error. */
export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const isBusy = useRef(false);
  const run = (work: () => Promise<void>) => {
    if (isBusy.current) {
      return;
    }
    isBusy.current = true;
    setBusy(true);
    setError(null);
    const end = (message: string | null) => {
      isBusy.current = false;
      setBusy(false);
      setError(message);
    };
    work().then(() => end(null), (reason: unknown) => end(messageOf(reason)));
  };
  return { busy, error, run, clear: () => setError(null) };
}

export function ErrorNote({ message }: { message: string | null }) {
  return message === null ? null : <p class="note note-error" role="alert">{message}</p>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** The current time, renewed every second while the component is shown. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
