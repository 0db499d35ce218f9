// Times, durations, sizes and paths for people.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const stamp = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
const count = new Intl.NumberFormat();

export const time = (at: number) => clock.format(at);
export const date = (at: number) => day.format(at);
export const dateAndTime = (at: number) => stamp.format(at);
export const number = (value: number) => count.format(value);

/** Empty if it is not known. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) {
    return "";
  }
  if (ms < 1_000) {
    return `${Math.round(ms)} ms`;
  }
  const seconds = ms / 1_000;
  if (seconds < 60) {
    return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  }
  const minutes = Math.floor(seconds / 60);
  const rest = Math.floor(seconds % 60);
  return minutes < 60 ? `${minutes} min ${rest} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A duration in whole seconds, for clocks that run. */
export function elapsed(ms: number): string {
  const seconds = Math.max(1, Math.floor(ms / 1_000));
  return seconds < 60 ? `${seconds} s` : duration(seconds * 1_000);
}

export function ago(at: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - at) / 1_000));
  if (seconds < 60) {
    return "a moment ago";
  }
  const units: [number, string][] = [[86_400, "day"], [3_600, "hour"], [60, "minute"]];
  for (const [size, name] of units) {
    const value = Math.floor(seconds / size);
    if (value >= 1) {
      return `${count.format(value)} ${name}${value === 1 ? "" : "s"} ago`;
    }
  }
  return "now";
}

export function bytes(value: number): string {
  if (value < 1_000) {
    return `${value} B`;
  }
  const unit = value < 1_000_000 ? "kB" : value < 1_000_000_000 ? "MB" : "GB";
  const size = { kB: 1e3, MB: 1e6, GB: 1e9 }[unit] ?? 1;
  const scaled = value / size;
  return `${scaled < 10 ? scaled.toFixed(1) : Math.round(scaled)} ${unit}`;
}

/** `1 file`, `2 files`. */
export const plural = (value: number, one: string, many = `${one}s`) => `${count.format(value)} ${value === 1 ? one : many}`;

/** The last component of a path. */
export function baseName(path: string): string {
  return path.replace(/\/+$/, "").split("/").pop() || path;
}
