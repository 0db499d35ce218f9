// The last height of each card on the screen, and the card that had the focus when it was answered.

const heights = new Map<string, number>();
let focused: string | null = null;

export function keepHeight(id: string, height: number): void {
  heights.set(id, height);
  if (heights.size > 500) {
    heights.delete(heights.keys().next().value ?? "");
  }
}

export function heightOf(id: string): number | undefined {
  return heights.get(id);
}

export function keepFocus(id: string): void {
  focused = id;
}

/** Whether this card had the focus. Answers once. */
export function takeFocus(id: string): boolean {
  const had = focused === id;
  focused = had ? null : focused;
  return had;
}
