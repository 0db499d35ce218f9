// The rules file with line numbers, when each rule last decided, an explainer, and adding and removing with a preview.

import { useState } from "preact/hooks";
import { getRules } from "../api";
import type { Rule, Rules } from "../api_schema";
import { EditSteps } from "../parts/edit_rule_steps";
import { DecisionLabel, ruleName } from "../parts/labels";
import { Empty, ErrorNote, useLoaded, useNow } from "../parts/loading";
import { Raw } from "../parts/raw";
import { ago, plural } from "../text/format";
import { Explainer } from "./explainer";

export function RulesView() {
  const loaded = useLoaded(getRules, []);
  const rules = loaded.value;
  return (
    <div class="view">
      <div class="view-head">
        <h1>Rules</h1>
        {rules ? <p class="view-sub code"><Raw text={rules.file} /></p> : null}
      </div>
      <ErrorNote message={loaded.error} />
      {rules ? (
        <div class="columns">
          <div class="column-main">
            {rules.problem ? <p class="note note-error"><Raw text={rules.problem} layout /></p> : null}
            <RulesFile rules={rules} onChange={loaded.set} />
          </div>
          <div class="column-side">
            <AddRule onChange={loaded.set} />
            <Explainer />
          </div>
        </div>
      ) : loaded.error === null ? <p class="quiet">Loading…</p> : null}
    </div>
  );
}

/** A stretch of the file: one rule, or lines between rules. */
interface Stretch {
  rule: Rule | null;
  first: number;
  lines: string[];
}

function RulesFile({ rules, onChange }: { rules: Rules; onChange: (rules: Rules) => void }) {
  const stretches = split(rules);
  if (rules.text.trim() === "") {
    return <Empty title="No rules yet"><p>Without rules, the profile of each agent decides. “Always” in a request adds a rule here.</p></Empty>;
  }
  return (
    <ol class="rules-file">
      {stretches.map((stretch) => <StretchView key={`${stretch.first}:${stretch.lines.join("\n")}`} stretch={stretch} onChange={onChange} />)}
    </ol>
  );
}

function StretchView({ stretch, onChange }: { stretch: Stretch; onChange: (rules: Rules) => void }) {
  const { rule, first, lines } = stretch;
  const now = useNow();
  const text = lines.join("\n");
  const remove = { remove: { first_line: first, last_line: first + lines.length - 1, text } };
  return (
    <li class={rule ? "stretch rule" : "stretch"}>
      {rule ? (
        <div class="rule-head">
          <DecisionLabel decision={rule.decision} />
          <span class="rule-title"><Raw text={ruleName(rule.name)} /></span>
          <span class="quiet">
            {rule.decided_30_days === 0 ? "decided no call in 30 days" : `${plural(rule.decided_30_days, "call")} in 30 days`}
            {rule.last_decided ? `, last ${ago(rule.last_decided, now)}` : ""}
          </span>
        </div>
      ) : null}
      <div class="rule-lines code">
        {lines.map((line, index) => (
          <div class="line">
            <span class="line-number" aria-hidden="true">{first + index}</span>
            <span class="line-text"><Raw text={line} layout /></span>
          </div>
        ))}
      </div>
      {rule ? <EditSteps edit={remove} open="Remove…" confirm="Remove this rule" onChange={onChange} /> : null}
    </li>
  );
}

function AddRule({ onChange }: { onChange: (rules: Rules) => void }) {
  const [toml, setToml] = useState("");
  return (
    <section class="side-card" aria-labelledby="add-title">
      <h2 id="add-title">Add a rule</h2>
      <label class="stacked">
        <span class="hidden-text">The rule as TOML</span>
        <textarea
          class="field code" rows={6} spellcheck={false} value={toml} maxLength={20_000}
          placeholder={'[[rule]]\nname = "tests"\ndecision = "allow"\nkind = "command"\ncommands = ["npm test"]'}
          onInput={(event) => setToml(event.currentTarget.value)}
        />
      </label>
      <EditSteps key={toml} edit={{ add: toml }} open="Preview…" confirm="Add this rule" disabled={toml.trim() === ""} onChange={(rules) => {
        setToml("");
        onChange(rules);
      }} />
    </section>
  );
}

function split(rules: Rules): Stretch[] {
  const lines = rules.text.replace(/\n$/, "").split("\n");
  const stretches: Stretch[] = [];
  let at = 1;
  const take = (rule: Rule | null, last: number) => {
    const taken = lines.slice(at - 1, last);
    if (rule || taken.some((line) => line.trim() !== "")) {
      stretches.push({ rule, first: at, lines: taken });
    }
    at = Math.max(at, last + 1);
  };
  for (const rule of rules.rules.toSorted((a, b) => a.first_line - b.first_line)) {
    take(null, rule.first_line - 1);
    take(rule, Math.min(rule.last_line, lines.length));
  }
  take(null, lines.length);
  return stretches;
}
