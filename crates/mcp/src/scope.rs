//! What an access token allows.

use std::fmt;

/// A scope of access tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Tools that change nothing.
    Read,
    /// Tools that change files. Includes `Read`.
    Write,
    /// Tools that run commands. Includes `Write`: a command can do that, too.
    Exec,
    /// Answers to questions about calls.
    Approve,
    /// All of it.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Scope; 5] =
        [Scope::Read, Scope::Write, Scope::Exec, Scope::Approve, Scope::Admin];

    /// As in tokens.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Exec => "exec",
            Scope::Approve => "approve",
            Scope::Admin => "admin",
        }
    }

    /// The scope with this name.
    pub fn named(name: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.name() == name)
    }

    fn includes(self) -> &'static [Scope] {
        match self {
            Scope::Read => &[Scope::Read],
            Scope::Write => &[Scope::Read, Scope::Write],
            Scope::Exec => &[Scope::Read, Scope::Write, Scope::Exec],
            Scope::Approve => &[Scope::Approve],
            Scope::Admin => &Scope::ALL,
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Scopes, with all that they include.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a scope is among them.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let all = scopes.into_iter().flat_map(|scope| scope.includes());
        Scopes(all.fold(0, |bits, scope| bits | scope.bit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broader_scope_includes_narrower_ones() {
        let of = |scopes: &[Scope]| scopes.iter().copied().collect::<Scopes>();
        let names = |scopes: &[Scope]| {
            let found = of(scopes);
            let all = Scope::ALL.into_iter().filter(|scope| found.contains(*scope));
            all.map(Scope::name).collect::<Vec<_>>().join(" ")
        };
        assert!(of(&[]).is_empty());
        assert_eq!(names(&[Scope::Read]), "read");
        assert_eq!(names(&[Scope::Write]), "read write");
        assert_eq!(names(&[Scope::Exec]), "read write exec");
        assert_eq!(names(&[Scope::Approve, Scope::Read]), "read approve");
        assert_eq!(names(&[Scope::Admin]), "read write exec approve admin");
        for scope in Scope::ALL {
            assert_eq!(Scope::named(scope.name()), Some(scope));
        }
        assert_eq!(Scope::named("Read"), None);
    }
}
