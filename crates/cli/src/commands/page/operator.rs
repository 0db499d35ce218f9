//! The settings of the operator, for the page.

use std::path::{Path, PathBuf};

use toolcrib::{Runtime, UnknownProfile};
use toolcrib_page::{ExplainedSubject, Operator, RulesNotReplaced};

use crate::args::Common;
use crate::commands::{operator_runtime_of, policy, runtime_with_rules};
use crate::config::Config;
use crate::rules;

/// The options of `toolcrib page`. The configuration is read again for each request.
pub(super) struct PageOperator {
    common: Common,
}

impl PageOperator {
    pub(super) fn new(common: &Common) -> PageOperator {
        PageOperator { common: common.clone() }
    }

    /// The options of an agent in a workspace, with its profile if that is known.
    fn agent_options(&self, workspace: &Path, profile: Option<&str>) -> Result<Common, String> {
        let mut common = self.common.for_workspace(workspace);
        if let Some(name) = profile {
            let profile = name.parse().map_err(|error: UnknownProfile| error.to_string())?;
            common.profile = Some(profile);
        }
        Ok(common)
    }
}

impl Operator for PageOperator {
    fn operator_runtime(&self, workspace: &Path) -> Result<Runtime, String> {
        let common = self.common.for_workspace(workspace);
        operator_runtime_of(&common, &common.roots(), &Config::of(&common)?)
    }

    fn agent_runtime(
        &self,
        workspace: &Path,
        profile: Option<&str>,
        rules: Option<&str>,
    ) -> Result<Runtime, String> {
        let common = self.agent_options(workspace, profile)?;
        let config = Config::of(&common)?;
        let rules = match rules {
            Some(text) => rules::effective_with(text, &common, &config)?,
            None => rules::read(&common, &config)?,
        };
        runtime_with_rules(&common, rules)
    }

    fn explain(
        &self,
        workspace: &Path,
        profile: Option<&str>,
        subject: &ExplainedSubject,
    ) -> Result<String, String> {
        let runtime = self.agent_runtime(workspace, profile, None)?;
        let common = self.agent_options(workspace, profile)?;
        match subject {
            ExplainedSubject::Command(text) => policy::test_text(&common, &runtime, text),
            ExplainedSubject::Call { tool, arguments } => {
                policy::explain_text(&common, &runtime, tool, arguments.clone())
            }
            ExplainedSubject::Host(target) => policy::host_text(&common, &runtime, target),
        }
    }

    fn rules_file(&self) -> Option<PathBuf> {
        rules::user_text(&self.common).ok().map(|(path, _)| path)
    }

    fn rules_text(&self) -> Result<String, String> {
        rules::user_text(&self.common).map(|(_, text)| text)
    }

    fn replace_rules(&self, was: &str, new: &str) -> Result<(), RulesNotReplaced> {
        let replaced = rules::user_text(&self.common)
            .and_then(|(path, _)| rules::replace_if_unchanged(&path, was, new));
        match replaced {
            Ok(true) => Ok(()),
            Ok(false) => Err(RulesNotReplaced::Changed),
            Err(problem) => Err(RulesNotReplaced::Failed(problem)),
        }
    }

    fn with_rules(&self, text: &str, rules: &str) -> Result<String, String> {
        let new = rules::with(text, rules)?;
        Ok(new.unwrap_or_else(|| text.to_owned()))
    }
}
