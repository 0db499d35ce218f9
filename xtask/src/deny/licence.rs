//! Evaluates SPDX licence expressions against the allowed licences.
//!
//! ```text
//! either  = both { ("OR" | "/") both }
//! both    = single { "AND" single }
//! single  = "(" either ")" | licence [ "WITH" exception ]
//! ```
//! `/` is the notation for `OR` before SPDX; many published manifests still use it.

/// Whether the allowed licences satisfy the expression. Fails at a syntax error.
///
/// An exception is part of the licence's name: allowing `Apache-2.0` does not allow
/// `Apache-2.0 WITH LLVM-exception`, as in cargo-deny.
pub(super) fn satisfied(expression: &str, allowed: impl Fn(&str) -> bool) -> Result<bool, String> {
    let tokens = tokens(expression);
    let mut parser = Parser { rest: &tokens, allowed: &allowed };
    let value = parser.either()?;
    match parser.rest.first() {
        None => Ok(value),
        Some(token) => Err(format!("`{token}` is not expected there")),
    }
}

fn tokens(expression: &str) -> Vec<String> {
    let mut spaced = expression.to_owned();
    for sign in ["(", ")", "/"] {
        spaced = spaced.replace(sign, &format!(" {sign} "));
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// Evaluates while it parses. All parts are parsed even if the value is known, so that a syntax error after
/// an `OR` is reported.
struct Parser<'a, F> {
    rest: &'a [String],
    allowed: &'a F,
}

impl<F: Fn(&str) -> bool> Parser<'_, F> {
    fn either(&mut self) -> Result<bool, String> {
        let mut value = self.both()?;
        while self.eat("OR") || self.eat("/") {
            value |= self.both()?;
        }
        Ok(value)
    }

    fn both(&mut self) -> Result<bool, String> {
        let mut value = self.single()?;
        while self.eat("AND") {
            value &= self.single()?;
        }
        Ok(value)
    }

    fn single(&mut self) -> Result<bool, String> {
        if self.eat("(") {
            let value = self.either()?;
            return if self.eat(")") { Ok(value) } else { Err("a `)` is missing".to_owned()) };
        }
        let licence = self.name()?;
        if self.eat("WITH") {
            let exception = self.name()?;
            return Ok((self.allowed)(&format!("{licence} WITH {exception}")));
        }
        Ok((self.allowed)(&licence))
    }

    fn name(&mut self) -> Result<String, String> {
        match self.rest.split_first() {
            Some((name, rest))
                if !["OR", "/", "AND", "WITH", "(", ")"].contains(&name.as_str()) =>
            {
                self.rest = rest;
                Ok(name.clone())
            }
            Some((token, _)) => Err(format!("a licence is missing before `{token}`")),
            None => Err("a licence is missing at the end".to_owned()),
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if first == token => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str) -> Result<bool, String> {
        let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"];
        satisfied(expression, |licence| allowed.contains(&licence))
    }

    #[test]
    fn evaluates_expressions() {
        let cases = [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("GPL-3.0-only OR MIT", true),
            ("MIT/GPL-3.0-only", true),
            ("MIT / Apache-2.0", true),
            ("GPL-2.0/LGPL-3.0", false),
            ("MIT AND GPL-3.0-only", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR Apache-2.0) AND GPL-3.0-only", false),
            ("(MIT OR (GPL-3.0-only AND Zlib)) AND Unicode-3.0", true),
            // AND binds tighter than OR.
            ("MIT OR GPL-3.0-only AND GPL-2.0-only", true),
            ("GPL-3.0-only AND GPL-2.0-only OR MIT", true),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0-only", true),
            ("MIT WITH LLVM-exception", false),
            ("Apache-2.0+", false),
        ];
        for (expression, expected) in cases {
            assert_eq!(check(expression), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn reports_syntax_errors_even_if_the_value_is_known() {
        let cases = [
            ("", "a licence is missing at the end"),
            ("MIT OR", "a licence is missing at the end"),
            ("MIT OR AND", "a licence is missing before `AND`"),
            ("(MIT", "a `)` is missing"),
            ("MIT)", "`)` is not expected there"),
            ("MIT Apache-2.0", "`Apache-2.0` is not expected there"),
        ];
        for (expression, expected) in cases {
            assert_eq!(check(expression), Err(expected.to_owned()), "{expression}");
        }
    }
}
