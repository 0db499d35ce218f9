//! The page of hidden paths and protected files, from the tables that are enforced.

use toolcrib::user_machine::secret_paths as hidden_paths;

pub(super) fn page() -> String {
    let mut page = super::generated("Hidden paths and protected files");
    page += "\n## Protected files\n\nTools and commands cannot write these files, because other programs execute them \
             automatically. git is an [exception](sandbox.md#git). A pattern applies at any depth and to everything \
             beneath it; `*` matches within one component. Case and invisible characters are ignored. `protect` \
             adds patterns, `allow_protected` removes them.\n\n";
    page += &list(toolcrib::Protection::default().patterns());
    page += "\n## Hidden paths\n\nTools and commands do not see these paths. `allow_hidden` makes individual \
             paths visible.\n";
    for (kind, paths) in hidden_paths::by_kind() {
        page += &format!("\n### In a home: {kind}\n\n{}", list(paths.iter().copied()));
    }
    page += &format!("\n### System files\n\n{}", list(hidden_paths::of_system().iter().copied()));
    page += "\n### Named by a variable\n\nThe path in the variable, followed by the rest of the entry.\n\n";
    page += &list(hidden_paths::by_variable().map(|(name, beneath)| match beneath {
        "" => format!("${name}"),
        beneath => format!("${name}/{beneath}"),
    }));
    page
}

fn list(items: impl Iterator<Item = impl AsRef<str>>) -> String {
    items.map(|item| format!("- `{}`\n", item.as_ref())).collect()
}
