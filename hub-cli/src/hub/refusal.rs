//! What a hub's refusals mean, in words that are safe to show.

use std::io::Read;
use std::time::Duration;

use reqwest::blocking::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::error::{Code, Error};

/// The largest part of an error page that is read for its message.
const MAX_ERROR: u64 = 16 << 10;

/// The error for an answer that is not of success.
pub(super) fn refused(response: Response, what: &str) -> Error {
    let status = response.status();
    let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let (name, mut message) = (header("x-error-code"), header("x-error-message"));
    let mut body = Vec::new();
    // The body only adds words: without it the status says enough.
    let _ = response.take(MAX_ERROR).read_to_end(&mut body);
    if message.is_none() {
        let json: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
        message = json.and_then(|v| Some(v.get("error")?.as_str()?.to_owned()));
    }
    let said = message.map(|m| format!(": {}", printable(&m))).unwrap_or_default();
    let error = |code, text: String| Error::new(code, text);
    match (status.as_u16(), name.as_deref()) {
        (_, Some("RevisionNotFound")) => {
            error(Code::RevisionNotFound, format!("the hub has no such revision of {what}"))
        }
        (_, Some("EntryNotFound")) => error(Code::FileNotFound, format!("the hub has no {what}")),
        (_, Some("RepoNotFound")) => error(Code::RepoNotFound, format!("the hub has no repository {what}")),
        (401 | 403, _) => error(Code::NotAllowed, format!("the hub refuses access to {what}{said}")),
        (404, _) => error(Code::RepoNotFound, format!("the hub knows nothing of {what}{said}")),
        _ => error(Code::Status, format!("the hub answered {status} about {what}{said}")),
    }
}

pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds.min(30)))
}

/// The last cause of an error, which is the one that says something.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// The start of a body, for a message.
pub(super) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(60)]);
    format!("{:?}", printable(&text))
}

/// Text of a stranger without control characters, which could rewrite the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(300).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
