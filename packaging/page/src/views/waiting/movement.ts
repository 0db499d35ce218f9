// Blocks answers for a moment after the list moved, so that nobody approves a request that slid under the pointer.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

export const DEAD_MS = 400;

export interface Movement {
  list: RefObject<HTMLDivElement | null>;
  /** Whether the list moved a moment ago. */
  settling: boolean;
  /** Asks at the time of a click: a render may be late. */
  isDead: () => boolean;
  /** Blocks answers as after a movement: the keys have another target. */
  block: () => void;
}

/** Compares the places of the cards after each render of the list. */
export function useMovement(): Movement {
  const list = useRef<HTMLDivElement>(null);
  const places = useRef(new Map<string, number>());
  const movedAt = useRef(performance.now());
  const [settling, setSettling] = useState(true);

  useLayoutEffect(() => {
    const before = places.current;
    const after = placesOf(list.current);
    places.current = after;
    const moved = [...after].some(([id, top]) => Math.abs((before.get(id) ?? Number.NaN) - top) > 1 || !before.has(id));
    if (moved || before.size !== after.size) {
      movedAt.current = performance.now();
      setSettling(true);
    }
  });
  useLayoutEffect(() => {
    if (!settling) {
      return undefined;
    }
    const timer = setInterval(() => {
      if (performance.now() - movedAt.current >= DEAD_MS) {
        setSettling(false);
      }
    }, 50);
    return () => clearInterval(timer);
  }, [settling]);

  const block = () => {
    movedAt.current = performance.now();
    setSettling(true);
  };
  return { list, settling, isDead: () => performance.now() - movedAt.current < DEAD_MS, block };
}

/** The distance of each card from the top of the list, which scrolling does not change. */
function placesOf(list: HTMLElement | null): Map<string, number> {
  const cards = list?.querySelectorAll<HTMLElement>("[data-question]") ?? [];
  return new Map([...cards].map((card) => [card.dataset["question"] ?? "", card.offsetTop]));
}
