//! What every request passes before its handler: it is told who is calling, writes need somebody who may
//! write, and no web page may use its visitor's browser to reach a hub on this machine.

use std::net::IpAddr;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::super::App;
use super::super::respond::{Answer, Refusal};
use super::{Access, Caller};

/// Lets a request pass if its caller may make it, and adds the [`Caller`] to it.
pub(in super::super) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let known = app.clone();
    // It reads a file, or asks an object store.
    if tokio::task::spawn_blocking(move || known.access.refresh(&known.store)).await.is_err() {
        return Refusal::panicked().into_response();
    }
    let caller = app.access.caller(request.headers(), address(&app, request.headers()));
    match check(&app.access, &caller, &request) {
        Ok(()) => {
            request.extensions_mut().insert(caller.clone());
            let mut response = next.run(request).await;
            // For the log.
            response.extensions_mut().insert(caller);
            response
        }
        Err(refusal) => refusal.into_response(),
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Answer<Self> {
        parts.extensions.get::<Self>().cloned().ok_or_else(Refusal::panicked)
    }
}

fn check(access: &Access, caller: &Caller, request: &Request) -> Answer<()> {
    let headers = request.headers();
    if access.is_open() && !names_this_machine(headers) {
        return Err(Refusal::no_token("a hub without a token answers to 127.0.0.1 and localhost only"));
    }
    let path = request.uri().path();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD) || is_query(path);
    if reads {
        return Ok(());
    }
    if headers.contains_key(header::ORIGIN) {
        return Err(Refusal::no_token("web pages may not write to this hub"));
    }
    // Their links carry a permission of their own.
    let is_link = path.starts_with("/large/");
    if !is_link && !caller.may_write_somewhere() {
        return Err(Refusal::no_token("this needs a token of this hub that may write: set HF_TOKEN"));
    }
    Ok(())
}

/// Requests that are POSTed but change nothing.
fn is_query(path: &str) -> bool {
    path == "/api/validate-yaml"
        || (path.starts_with("/api/kernels/") && path.split('/').nth(5) == Some("paths-info"))
}

/// This hub's address as the client wrote it.
fn address(app: &App, headers: &HeaderMap) -> String {
    let plain = |host: &&str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b));
    let scheme = if app.config.tls.is_some() { "https" } else { "http" };
    match headers.get(header::HOST).and_then(|h| h.to_str().ok()).filter(plain) {
        Some(host) => format!("{scheme}://{host}"),
        None => format!("{scheme}://{}", app.address),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            assert_eq!(names_this_machine(&headers), allowed, "{host}");
        }
    }
}
