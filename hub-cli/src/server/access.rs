//! Who may do what: the hub's token, and the rules that protect a hub without one.

use std::net::IpAddr;
use std::path::Path;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use fs_err as fs;
use sha2::{Digest, Sha256};

use crate::atomic;
use crate::error::{Code, Error, Result};

use super::App;
use super::respond::{Answer, Refusal};

/// The name under which writes are recorded: this hub has one user.
pub(super) const USER: &str = "local";

/// Who may write, and who may read private repositories.
#[derive(Clone, Debug)]
pub(super) enum Access {
    /// Everyone who can reach the socket, which is then on this machine only.
    Open,
    /// Those who send the token with this SHA-256.
    Token([u8; 32]),
}

impl Access {
    /// The token in `path`; a new one is made, readable by this user alone, if there is no such file.
    pub(super) fn from_file(path: &Path) -> Result<Self> {
        if !path.exists() {
            let mut random = [0; 24];
            getrandom::fill(&mut random).map_err(|e| Error::io(path, e.into()))?;
            write_secret(path, &format!("hub_{}", hex::encode(random)))?;
        }
        let token = fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
        let token = token.trim();
        if token.len() < 16 || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Error::new(
                Code::Token,
                format!("{} does not hold a token of at least 16 visible characters", path.display()),
            ));
        }
        Ok(Self::Token(Sha256::digest(token).into()))
    }

    /// Whether a request with these headers may write.
    pub(super) fn may_write(&self, headers: &HeaderMap) -> bool {
        match self {
            Self::Open => true,
            Self::Token(expected) => {
                bearer(headers).is_some_and(|token| same(expected, &Sha256::digest(token).into()))
            }
        }
    }

    /// Whether a request with these headers is from somebody known.
    pub(super) fn is_known(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some() && self.may_write(headers)
    }
}

/// Lets a request pass if its caller may make it: every request that changes something needs write
/// access, and no web page may use its visitor's browser to reach a hub on this machine.
pub(super) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    match check(&app, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn check(app: &App, request: &Request) -> Answer<()> {
    let headers = request.headers();
    if matches!(app.access, Access::Open) && !names_this_machine(headers) {
        return Err(Refusal::no_token("a hub without a token answers to 127.0.0.1 and localhost only"));
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD) || is_query(request.uri().path());
    if reads {
        return Ok(());
    }
    if headers.contains_key(header::ORIGIN) {
        return Err(Refusal::no_token("web pages may not write to this hub"));
    }
    if !app.access.may_write(headers) {
        return Err(Refusal::no_token("writing needs this hub's token: set HF_TOKEN"));
    }
    Ok(())
}

/// Requests that are POSTed but change nothing.
fn is_query(path: &str) -> bool {
    path == "/api/validate-yaml"
        || (path.starts_with("/api/kernels/") && path.split('/').nth(5) == Some("paths-info"))
}

/// Whether the request was addressed to this machine by number or as localhost. A name that a foreign
/// DNS server resolves to 127.0.0.1 is how web pages reach local services.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|h| h.to_str().ok()) else { return true };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Compares in a time that does not depend on where the bytes differ.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |different, (x, y)| different | (x ^ y))) == 0
}

fn write_secret(path: &Path, token: &str) -> Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    atomic::make_folder(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|e| Error::io(folder, e))?;
    std::io::Write::write_all(&mut file, format!("{token}\n").as_bytes()).map_err(|e| Error::io(path, e))?;
    file.as_file().sync_all().map_err(|e| Error::io(path, e))?;
    // A temporary file is readable by its owner only, and keeps that mode.
    file.persist_noclobber(path).map_err(|e| Error::io(path, e.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_new_token_file_is_private_and_opens_the_hub() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/token");
        let access = Access::from_file(&path).unwrap();
        let token = fs::read_to_string(&path).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(token.trim().len() >= 36);
        assert!(access.may_write(&headers(&[(header::AUTHORIZATION, &format!("Bearer {}", token.trim()))])));
        assert!(!access.may_write(&headers(&[(header::AUTHORIZATION, "Bearer hub_wrong")])));
        assert!(!access.may_write(&HeaderMap::new()));
    }

    #[test]
    fn only_names_of_this_machine_reach_an_open_hub() {
        for (host, allowed) in [
            ("127.0.0.1:8000", true),
            ("localhost", true),
            ("[::1]:80", true),
            ("evil.example:8000", false),
            ("192.168.1.7", false),
            ("127.0.0.1.evil.example", false),
        ] {
            assert_eq!(names_this_machine(&headers(&[(header::HOST, host)])), allowed, "{host}");
        }
    }
}
