// The number of waiting requests in the title and the icon of the tab.

const SIZE = 64;

export function showCount(count: number, online: boolean): void {
  const name = "Toolcrib";
  document.title = !online ? `(offline) ${name}` : count === 0 ? name : `(${count}) ${name}`;
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (link) {
    const address = count === 0 ? "/favicon.svg" : draw(count) ?? "/favicon.svg";
    link.type = address.startsWith("data:") ? "image/png" : "image/svg+xml";
    link.href = address;
  }
}

function draw(count: number): string | null {
  const canvas = document.createElement("canvas");
  canvas.width = SIZE;
  canvas.height = SIZE;
  const context = canvas.getContext("2d");
  if (!context) {
    return null;
  }
  context.fillStyle = "#b4470a";
  context.beginPath();
  context.roundRect(0, 0, SIZE, SIZE, 14);
  context.fill();
  context.fillStyle = "#ffffff";
  context.font = `bold ${count > 9 ? 40 : 48}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(count > 99 ? "99" : String(count), SIZE / 2, SIZE / 2 + 3);
  return canvas.toDataURL("image/png");
}
