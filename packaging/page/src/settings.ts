// Settings of this browser.

import { useEffect, useState } from "preact/hooks";

export interface Settings {
  theme: "system" | "light" | "dark";
  singleKeys: boolean;
  notifications: boolean;
}

const KEY = "toolcrib-settings";
const DEFAULTS: Settings = { theme: "system", singleKeys: true, notifications: false };
const listeners = new Set<() => void>();
let settings: Settings = load();

export function setting<K extends keyof Settings>(name: K): Settings[K] {
  return settings[name];
}

export function change<K extends keyof Settings>(name: K, value: Settings[K]): void {
  settings = { ...settings, [name]: value };
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // A full or forbidden store: the setting lasts until the tab is closed.
  }
  applyTheme();
  listeners.forEach((listener) => listener());
}

export function useSettings(): Settings {
  const [value, setValue] = useState(settings);
  useEffect(() => {
    const listener = () => setValue(settings);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return value;
}

export function applyTheme(): void {
  document.documentElement.style.colorScheme = settings.theme === "system" ? "" : settings.theme;
}

function load(): Settings {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Settings>;
    return {
      theme: kept.theme === "light" || kept.theme === "dark" ? kept.theme : "system",
      singleKeys: kept.singleKeys !== false,
      notifications: kept.notifications === true,
    };
  } catch {
    return DEFAULTS;
  }
}
