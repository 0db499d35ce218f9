// Live regions for screen readers: polite news, and one assertive message for new requests.

import { useEffect, useState } from "preact/hooks";

type Tone = "polite" | "assertive";

let say: (tone: Tone, text: string) => void = () => undefined;

export function announce(tone: Tone, text: string): void {
  say(tone, text);
}

export function LiveRegions() {
  const [texts, setTexts] = useState<Record<Tone, string>>({ polite: "", assertive: "" });
  useEffect(() => {
    const timers: Partial<Record<Tone, ReturnType<typeof setTimeout>>> = {};
    say = (tone, text) => {
      // Several events at once are one message: the last one.
      clearTimeout(timers[tone]);
      timers[tone] = setTimeout(() => setTexts((before) => ({ ...before, [tone]: text })), 250);
    };
  }, []);
  return (
    <>
      <div class="hidden-text" aria-live="polite">{texts.polite}</div>
      <div class="hidden-text" role="alert" aria-live="assertive">{texts.assertive}</div>
    </>
  );
}
