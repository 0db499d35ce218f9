// The help and the settings.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { allowNotifications } from "../live/notifications";
import { change, useSettings, type Settings } from "../settings";

const KEYS: [string, [string, string][]][] = [
  ["Everywhere", [["1 … 5", "Waiting, Now, Timeline, Sandbox, Rules"], ["?", "this help"], ["/", "search the timeline"], ["Esc", "close"]]],
  ["Requests", [
    ["j  k", "next, previous request"], ["y", "approve once"], ["s", "approve for this session"], ["t", "approve for some minutes"],
    ["a", "always: shows the rule, then asks again"], ["n", "deny, with a message"], ["N", "never: shows the rule, then asks again"],
  ]],
  ["Timeline and changes", [["j  k", "next, previous call"], ["u", "undo: opens the change, then shows the preview"]]],
];

export function HelpDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      {KEYS.map(([name, rows]) => (
        <section class="help-part">
          <h3>{name}</h3>
          <dl class="help-keys">{rows.map(([key, text]) => <><dt>{key.split("  ").map((one) => <kbd>{one}</kbd>)}</dt><dd>{text}</dd></>)}</dl>
        </section>
      ))}
      <p class="quiet">Single keys do nothing while you type. You can switch them off in the settings.</p>
    </Dialog>
  );
}

export function SettingsDialog({ onClose }: { onClose: () => void }) {
  const settings = useSettings();
  const [refused, setRefused] = useState(false);
  const setNotifications = (wanted: boolean) => {
    if (!wanted) {
      change("notifications", false);
      return;
    }
    void allowNotifications().then((allowed) => {
      change("notifications", allowed);
      setRefused(!allowed);
    });
  };
  return (
    <Dialog title="Settings" onClose={onClose}>
      <fieldset class="setting">
        <legend>Colours</legend>
        {(["system", "light", "dark"] as Settings["theme"][]).map((theme) => (
          <label class="check"><input type="radio" name="theme" checked={settings.theme === theme} onChange={() => change("theme", theme)} />{theme === "system" ? "as the system" : theme}</label>
        ))}
      </fieldset>
      <label class="check setting">
        <input type="checkbox" checked={settings.singleKeys} onChange={(event) => change("singleKeys", event.currentTarget.checked)} />
        Single keys, such as y to approve
      </label>
      <label class="check setting">
        <input type="checkbox" checked={settings.notifications} onChange={(event) => setNotifications(event.currentTarget.checked)} />
        Desktop notification when a request waits for 2 seconds and no tab is visible
      </label>
      {refused ? <p class="note note-warn" role="status">The browser does not allow notifications for this page. Allow them in its settings for this site.</p> : null}
    </Dialog>
  );
}

function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog class="dialog" ref={dialog} aria-labelledby="dialog-title" onClose={onClose}>
      <div class="detail-head">
        <h2 id="dialog-title">{title}</h2>
        <button type="button" class="button close" onClick={() => dialog.current?.close()}>Close</button>
      </div>
      {children}
    </dialog>
  );
}
