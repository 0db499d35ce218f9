// Desktop notifications. They only open the page: a notification cuts text, so nobody can approve in one.

import { setting } from "../settings";
import { visibleText } from "../text/visible_text";

export function notifyOnDesktop(message: { tool: string; client: string; waiting: number }): void {
  if (!setting("notifications") || !("Notification" in window) || Notification.permission !== "granted") {
    return;
  }
  const who = message.client === "" ? "An agent" : visibleText(message.client);
  const more = message.waiting > 1 ? ` ${message.waiting} requests are waiting.` : "";
  const body = `${who} asks for approval of ${visibleText(message.tool)}.${more}`;
  const notification = new Notification("Toolcrib: approval needed", { body, tag: "toolcrib-waiting", icon: "/favicon.svg" });
  notification.onclick = () => {
    window.focus();
    location.hash = "#/waiting";
    notification.close();
  };
}

/** Asks the person for permission. Must be called from a click. Returns whether it was given. */
export async function allowNotifications(): Promise<boolean> {
  return "Notification" in window && (await Notification.requestPermission()) === "granted";
}
