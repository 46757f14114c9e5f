//! What all pages share: the frame, the style, and the headers that keep browsers careful.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::super::respond::Refusal;

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --link: light-dark(#0b57d0, #8ab4f8); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code, pre { font: 14px/1.5 ui-monospace, monospace; }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: .4rem; overflow-x: auto; user-select: all; }
.tag { background: var(--soft); border-radius: .3rem; padding: 0 .4rem; margin-right: .3rem; white-space: nowrap; }
.quiet { opacity: .7; }
";

/// A page with this title.
pub(super) fn page(title: &str, body: &Markup) -> Response {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { a href="/" { "Kernels" } }
                main { h1 { (title) } (body) }
            }
        }
    };
    let mut response = Html(document.into_string()).into_response();
    let headers = response.headers_mut();
    // What a package's author wrote is shown as text; should an escape ever be missed, nothing runs.
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    );
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// The page instead of one that cannot be shown.
pub(super) fn failure(refusal: &Refusal) -> Response {
    let mut response = page("This page is not here", &html! { p { (refusal.message()) } });
    *response.status_mut() = refusal.status();
    if refusal.status() == StatusCode::UNAUTHORIZED {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}
