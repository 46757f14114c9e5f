//! What all pages share: the frame, the style, and the headers that keep browsers careful.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::super::respond::Refusal;

// `user-select: all`: one click selects what is to be copied, with scripts or without. On a narrow screen the cells of
// a row stand below each other.
const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --link: light-dark(#0b57d0, #8ab4f8); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
form { display: flex; gap: .5rem; margin-bottom: 1rem; } input { flex: 1; min-width: 0; max-width: 24rem; }
input, button { font: inherit; padding: .2rem .6rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem 1.2rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th, td.number, td.date { white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
th:last-child, td:last-child { padding-right: 0; }
code, pre { font: 14px/1.5 ui-monospace, monospace; }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: .4rem; white-space: pre-wrap; -webkit-user-select: all; user-select: all; }
.tag { display: inline-block; background: var(--soft); border-radius: .3rem; padding: 0 .4rem; margin-bottom: .1rem; }
.quiet { color: light-dark(#5f6368, #9aa0a6); }
@media (max-width: 40rem) {
  body { margin: 1rem auto; } thead { display: none; }
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td, td.number { display: block; text-align: left; padding: .1rem 0; border: 0; }
}
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
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
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
