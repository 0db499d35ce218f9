// What a rule would have decided in the last days.

import type { RulePreview } from "../api_schema";
import { dateAndTime, plural } from "../text/format";
import { DecisionLabel, Tool } from "./labels";
import { Raw } from "./raw";

export function RulePreviewView({ preview }: { preview: RulePreview }) {
  const { calls, total, days } = preview;
  if (preview.problem) {
    return <p class="note note-error"><Raw text={preview.problem} layout /></p>;
  }
  return (
    <div class="preview">
      <p class="preview-title">
        {total === 0
          ? `No call of the last ${days} days would have been decided differently.`
          : `${plural(total, "call")} of the last ${days} days would have been decided differently:`}
      </p>
      {calls.length === 0 ? null : (
        <ul class="preview-calls">
          {calls.map((call) => (
            <li>
              <span class="preview-change">
                <DecisionLabel decision={call.before} /><span aria-label="becomes"> → </span>
                <DecisionLabel decision={call.after} />
              </span>
              <span class="preview-what code"><Tool name={call.tool} /> <Raw text={call.what} /></span>
              <time class="quiet">{dateAndTime(call.at)}</time>
            </li>
          ))}
        </ul>
      )}
      {preview.note ? <p class="quiet"><Raw text={preview.note} /></p> : null}
      {total > calls.length ? <p class="quiet">and {plural(total - calls.length, "more call")}</p> : null}
    </div>
  );
}
