//! Whom a user trusts to sign: the name in a certificate, or a pattern of such names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};

/// The address of a workflow or of a person, or the beginning of addresses and `*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Identity(String);

impl Identity {
    /// Whether `name`, from a certificate, is this identity.
    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(start) => name.len() > start.len() && name.starts_with(start),
            None => name == self.0,
        }
    }

    /// As the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Identity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why| {
            Error::new(Code::Key, format!("{text:?} is not an identity: {why}")).help(
                "write it as the certificate does, or its beginning up to a `/` or `@` and then `*`, such as \
                 'https://github.com/acme/kernels/*'",
            )
        };
        if text.is_empty() || text.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err(wrong("it is empty, or has spaces"));
        }
        let Some(start) = text.strip_suffix('*') else {
            return match text.contains('*') {
                true => Err(wrong("`*` may only be the last character")),
                false => Ok(Self(text.to_owned())),
            };
        };
        if start.contains('*') || !start.ends_with(['/', '@']) {
            return Err(wrong("`*` may only be the last character, after `/` or `@`"));
        }
        // A host alone would trust everybody who has an account there.
        let path = start.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        if path.is_none_or(|(host, path)| host.is_empty() || path.trim_matches(['/', '@']).is_empty()) {
            return Err(wrong("it names a host and nobody there"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Identity {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|e: Error| e.to_string())
    }
}

impl From<Identity> for String {
    fn from(identity: Identity) -> Self {
        identity.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_end_where_a_name_does() {
        let acme: Identity = "https://github.com/acme/*".parse().unwrap();
        assert!(acme.matches("https://github.com/acme/kernels/.github/workflows/build.yaml@refs/heads/main"));
        for other in ["https://github.com/acme-evil/x", "https://github.com/acme/", "https://github.com/", ""]
        {
            assert!(!acme.matches(other), "{other}");
        }
        let person: Identity = "a@acme.com".parse().unwrap();
        assert!(
            person.matches("a@acme.com")
                && !person.matches("aa@acme.com")
                && !person.matches("a@acme.com.evil")
        );
        "https://github.com/acme/kernels/.github/workflows/build.yaml@*".parse::<Identity>().unwrap();
        for wrong in [
            "",
            "*",
            "a b",
            "https://github.com/*",
            "https://github.com//*",
            "https:///acme/*",
            "https://*",
            "https://github.com/ac*",
            "https://github.com/*/build",
            "https://github.com/a/*/*",
            "*@acme.com",
        ] {
            assert_eq!(wrong.parse::<Identity>().unwrap_err().code(), Code::Key, "{wrong}");
        }
    }
}
