// A change of the rules file in two steps: the preview, then the edit.

import { useState } from "preact/hooks";
import { editRules, previewRules } from "../api";
import type { RuleEdit, RulePreview, Rules } from "../api_schema";
import { announce } from "./announce";
import { ErrorNote, useAction } from "./loading";
import { RulePreviewView } from "./rule_preview";

interface EditStepsProps {
  edit: RuleEdit;
  open: string;
  confirm: string;
  disabled?: boolean;
  onChange: (rules: Rules) => void;
}

/** First the preview, then the edit. */
export function EditSteps({ edit, open, confirm, disabled = false, onChange }: EditStepsProps) {
  const action = useAction();
  const [preview, setPreview] = useState<RulePreview | null>(null);
  const ask = () => action.run(async () => setPreview(await previewRules(edit)));
  const apply = () => action.run(async () => {
    onChange(await editRules(edit));
    announce("polite", "The rules file was changed");
  });
  return (
    <div class="edit-steps">
      {preview ? (
        <div class="panel">
          <RulePreviewView preview={preview} />
          <div class="panel-buttons">
            <button type="button" class="button answer-deny" disabled={action.busy || Boolean(preview.problem)} onClick={apply}>{confirm}</button>
            <button type="button" class="button" onClick={() => setPreview(null)}>Cancel</button>
          </div>
        </div>
      ) : <button type="button" class="button small" disabled={disabled || action.busy} onClick={ask}>{open}</button>}
      <ErrorNote message={action.error} />
    </div>
  );
}
