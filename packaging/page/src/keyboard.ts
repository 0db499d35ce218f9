// Single-key commands. They are off while a person types, and can be switched off in the settings.

import { useLayoutEffect, useRef } from "preact/hooks";
import { setting } from "./settings";

type Keys = Record<string, (event: KeyboardEvent) => void>;

const layers: { current: Keys }[] = [];

/** Keys of a component while it is shown. The component that was shown last wins; keys of the frame come last. */
export function useKeys(keys: Keys, ofFrame = false): void {
  const layer = useRef(keys);
  layer.current = keys;
  // Before the component is painted: a key works as soon as its button is visible.
  useLayoutEffect(() => {
    if (ofFrame) {
      layers.unshift(layer);
    } else {
      layers.push(layer);
    }
    return () => {
      layers.splice(layers.indexOf(layer), 1);
    };
  }, []);
}

export function listenForKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat && !"jk".includes(event.key)) {
      return;
    }
    // Escape works in a field too: it closes the panel with the field.
    if (event.key !== "Escape" && (isTyping(event.target) || !setting("singleKeys"))) {
      return;
    }
    const layer = layers.findLast((one) => Object.hasOwn(one.current, event.key));
    if (layer) {
      event.preventDefault();
      layer.current[event.key]?.(event);
    }
  });
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement
    && (target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio]), textarea, select"));
}
