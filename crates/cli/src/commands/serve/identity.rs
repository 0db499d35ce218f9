//! The file of `--identity`: trusted issuers, and what the owners of their tokens may do.

use std::path::{Path, PathBuf};

use toolcrib_mcp::Identify;

/// What the file says.
pub(super) struct Read {
    pub(super) identify: Box<dyn Identify>,
    pub(super) issuers: Vec<String>,
    /// Files that it names and that no tool may access.
    pub(super) private_files: Vec<PathBuf>,
}

#[cfg(not(feature = "identity"))]
pub(super) fn read(_: &Path, _: bool) -> Result<Read, String> {
    Err("this program was built without identities".to_owned())
}

#[cfg(feature = "identity")]
pub(super) use self::with_issuers::read;

#[cfg(feature = "identity")]
mod with_issuers {
    use std::sync::Arc;

    use toolcrib::{Principal, check_trusted_file, toml_problem};
    use toolcrib_identity::{Identity, KeyTimes, NotIdentified, ScopeName, Settings};
    use toolcrib_mcp::{Caller, Identify, Identifying, Scope, Scopes, Unidentified, WorkspaceId};

    use super::{Path, PathBuf, Read};
    use crate::output;

    /// Larger than any list of grants.
    const MAX_BYTES: u64 = 1 << 20;

    /// Reads the file. Fails if it is invalid, or if other users could change it.
    pub(in super::super) fn read(file: &Path, has_workspaces: bool) -> Result<Read, String> {
        let read = || {
            let text = text(file)?;
            let mut settings: Settings = toml::from_str(&text).map_err(|error| {
                let problem = toml_problem(&text, error.span().as_ref(), error.message());
                problem.unwrap_or_else(|| error.to_string())
            })?;
            let private_files = named_files(&mut settings)?;
            let report = |problem: &str| output::warning(problem);
            let identity = Identity::new(settings, has_workspaces, KeyTimes::default(), report)?;
            let issuers = identity.issuers().map(str::to_owned).collect();
            Ok(Read { identify: Box::new(Callers(identity)), issuers, private_files })
        };
        read().map_err(|problem: String| format!("--identity {}: {problem}", file.display()))
    }

    fn text(file: &Path) -> Result<String, String> {
        let failed = |error: std::io::Error| error.to_string();
        check_trusted_file(file)?;
        if std::fs::metadata(file).map_err(failed)?.len() > MAX_BYTES {
            return Err(format!("it has more than {MAX_BYTES} bytes"));
        }
        std::fs::read_to_string(file).map_err(failed)
    }

    /// Makes the paths of files absolute, and returns those that no tool may access. Fails if one cannot be read, or if
    /// other users could forge tokens with it.
    fn named_files(settings: &mut Settings) -> Result<Vec<PathBuf>, String> {
        let mut private = Vec::new();
        for issuer in &mut settings.issuer {
            for (file, is_private, is_trusted) in [
                (&mut issuer.jwks_file, true, true),
                (&mut issuer.bearer_file, true, false),
                (&mut issuer.ca_file, false, true),
            ] {
                let Some(path) = file else { continue };
                let failed = |error: std::io::Error| format!("{}: {error}", path.display());
                let absolute = std::path::absolute(&*path).map_err(failed)?;
                std::fs::File::open(&absolute).map_err(failed)?;
                if is_trusted {
                    check_trusted_file(&absolute)?;
                }
                private.extend(is_private.then(|| absolute.clone()));
                *file = Some(absolute);
            }
        }
        Ok(private)
    }

    struct Callers(Identity);

    impl Identify for Callers {
        fn identify<'a>(
            &'a self,
            token: &'a [u8],
            resource: &'a str,
            workspace: Option<&'a WorkspaceId>,
        ) -> Identifying<'a> {
            Box::pin(async move {
                let workspace = workspace.map(WorkspaceId::as_str);
                let found = self.0.identify(token, resource, workspace).await;
                let found = found.map_err(|problem| match problem {
                    NotIdentified::Invalid(why) => Unidentified::Invalid(why),
                    NotIdentified::Unavailable => Unidentified::Unavailable,
                })?;
                let (issuer, subject) = (found.issuer, found.subject);
                Ok(Caller {
                    principal: Arc::new(Principal { issuer, subject }),
                    in_token: scopes(found.in_token),
                    granted: scopes(found.granted),
                })
            })
        }

        fn issuers(&self) -> Vec<String> {
            self.0.issuers().map(str::to_owned).collect()
        }

        fn initial_scopes(&self) -> Vec<Scope> {
            self.0.initial_scopes().iter().copied().filter_map(scope).collect()
        }

        fn scope_prefix(&self) -> String {
            self.0.scope_prefix().to_owned()
        }
    }

    fn scopes(names: impl IntoIterator<Item = ScopeName>) -> Scopes {
        names.into_iter().filter_map(scope).collect()
    }

    fn scope(name: ScopeName) -> Option<Scope> {
        Scope::named(name.as_str())
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::fs::PermissionsExt as _;

        use super::*;

        #[test]
        fn every_scope_has_a_counterpart() {
            assert!(ScopeName::ALL.into_iter().all(|name| scope(name).is_some()));
            assert_eq!(ScopeName::ALL.len(), Scope::ALL.len());
        }

        #[test]
        fn a_file_that_others_could_change_is_refused() {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("identity.toml");
            let issuer = "[[issuer]]\nurl = \"https://i.example\"\njwks_file = \"missing.json\"\n";
            for (text, mode, problem) in [
                (issuer, 0o666, "chmod go-w"),
                (issuer, 0o644, "missing.json"),
                ("", 0o644, "[[issuer]] is missing"),
                ("issuers = 5", 0o644, "unknown key `issuers`"),
            ] {
                std::fs::write(&file, text).unwrap();
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
                let refusal = read(&file, false).err().unwrap();
                assert!(refusal.contains(problem), "{refusal}");
            }
        }

        #[test]
        fn files_with_which_others_could_forge_tokens_are_refused() {
            let directory = tempfile::tempdir().unwrap();
            let own = directory.path().join("own");
            std::fs::create_dir(&own).unwrap();
            let (file, named) = (own.join("identity.toml"), directory.path().join("named"));
            let set_mode = |path: &Path, mode| {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            };
            std::fs::write(&named, "{\"keys\": []}").unwrap();
            for (key, mode) in [("jwks_file", 0o666), ("ca_file", 0o666), ("jwks_file", 0o644)] {
                let name = named.display();
                let text = format!("[[issuer]]\nurl = \"https://i.example\"\n{key} = \"{name}\"\n");
                std::fs::write(&file, text).unwrap();
                set_mode(&file, 0o644);
                set_mode(&named, mode);
                let refusal = read(&file, false).err().unwrap_or_default();
                let is_refused = refusal.contains("named; run `chmod go-w`");
                assert_eq!(is_refused, mode == 0o666, "{refusal}");
            }
            set_mode(&own, 0o777);
            let refusal = read(&file, false).err().unwrap();
            assert!(refusal.contains("other users could replace"), "{refusal}");
        }
    }
}
