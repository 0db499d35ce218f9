// The icons of the navigation.

const SHAPES: Record<string, string> = {
  waiting: "M12 3a6 6 0 0 0-6 6v4l-2 4h16l-2-4V9a6 6 0 0 0-6-6Zm-2.5 17a2.5 2.5 0 0 0 5 0",
  now: "M3 12h4l3-8 4 16 3-8h4",
  timeline: "M4 6h2M4 12h2M4 18h2M10 6h10M10 12h10M10 18h10",
  sandbox: "M12 3 4 6v6c0 4.5 3.4 7.7 8 9 4.6-1.3 8-4.5 8-9V6l-8-3Z",
  rules: "M6 3h9l4 4v14H6V3Zm3 8h7M9 15h7",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 4.5v5M8 14.5v5",
  help: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5v.5",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" width="20" height="20" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={SHAPES[name] ?? ""} />
    </svg>
  );
}
