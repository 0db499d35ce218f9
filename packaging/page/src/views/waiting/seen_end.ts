// Whether the end of a content was on the screen.

import { useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

/** A marker for the end of a content, and whether it was visible once. Scroll boxes around it count. */
export function useSeenEnd<T extends HTMLElement>(): [RefObject<T | null>, boolean] {
  const marker = useRef<T>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const element = marker.current;
    if (!element || seen) {
      return undefined;
    }
    // Any part of the marker counts: at a fraction of a pixel, its last part cannot be scrolled into view.
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting) && document.visibilityState === "visible") {
        setSeen(true);
        observer.disconnect();
      }
    }, { threshold: 0 });
    observer.observe(element);
    // A tab that was in the background at that moment looks again.
    const again = () => {
      observer.unobserve(element);
      observer.observe(element);
    };
    document.addEventListener("visibilitychange", again);
    return () => {
      observer.disconnect();
      document.removeEventListener("visibilitychange", again);
    };
  }, [seen]);
  return [marker, seen];
}
