//! Where the hub is, and who asks: its address and the access token.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use crate::error::{Code, Error, Result};

/// The address of a hub, without a trailing slash: scheme, host, port and perhaps a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Url);

impl Endpoint {
    /// The public hub.
    pub const DEFAULT: &str = "https://huggingface.co";

    /// Checks `text`, as it stands in HF_ENDPOINT.
    ///
    /// # Errors
    /// `H0104`.
    pub fn parse(text: &str) -> Result<Self> {
        let bad =
            |why: &str| Error::new(Code::Endpoint, format!("{text:?} is not the address of a hub: {why}"));
        let url = Url::parse(text.trim().trim_end_matches('/')).map_err(|e| bad(&e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("it must start with http:// or https://"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(bad("it names no host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it holds a user name or password; use HF_TOKEN"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad("it has a query or fragment"));
        }
        Ok(Self(url))
    }

    /// The URL of `segments` below this address, each escaped as one segment.
    pub(crate) fn url<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.0.clone();
        let mut path = url.path_segments_mut().expect("http URLs have a path");
        path.pop_if_empty();
        for segment in segments {
            // `push` escapes everything but the dots that `RepoPath` refuses.
            path.push(segment);
        }
        drop(path);
        url
    }

    /// Whether `url` is on this hub: same scheme, host and port.
    pub(crate) fn is_origin_of(&self, url: &Url) -> bool {
        self.0.origin() == url.origin()
    }

    /// Whether what is sent there can be read by nobody else: https, or this machine.
    pub fn is_private_channel(&self) -> bool {
        self.0.scheme() == "https" || is_this_machine(&self.0)
    }
}

/// Whether `url` leads to this machine.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

/// An access token. It shows itself to nobody but the hub.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Checks a token as it stands in HF_TOKEN.
    ///
    /// # Errors
    /// `H0105`.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Error::new(
                Code::Token,
                "the access token is not one line of visible ASCII characters",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The secret itself.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_escaped() {
        let hub = Endpoint::parse("http://127.0.0.1:8000/hf/").unwrap();
        assert_eq!(hub.to_string(), "http://127.0.0.1:8000/hf");
        assert_eq!(
            hub.url(["api", "refs/heads/v1", "a b?#%"]).as_str(),
            "http://127.0.0.1:8000/hf/api/refs%2Fheads%2Fv1/a%20b%3F%23%25"
        );
        for bad in
            ["", "huggingface.co", "ftp://x", "file:///etc", "http://", "https://user:pw@x", "https://x?y"]
        {
            assert_eq!(Endpoint::parse(bad).unwrap_err().code(), Code::Endpoint, "{bad:?}");
        }
    }

    #[test]
    fn only_https_and_this_machine_are_private() {
        for (address, private) in [
            ("https://huggingface.co", true),
            ("http://localhost:1", true),
            ("http://127.0.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://hub.lan", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(Endpoint::parse(address).unwrap().is_private_channel(), private, "{address}");
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        assert_eq!(format!("{:?}", Token::parse(" hf_secret\n").unwrap()), "Token(..)");
        assert!(Token::parse("a\nb").is_err());
    }
}
