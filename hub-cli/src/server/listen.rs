//! The socket: plain or TLS, with limits on what arrives before a request is known, and an end without
//! cutting off requests.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use axum_server::{Handle, Server};

use crate::error::{Code, Error, Result};

use super::config::Tls;

/// The largest head of a request, in bytes, and the most headers in it.
const HEAD_SIZE: usize = 64 << 10;
const HEADERS: usize = 100;
/// How long requests that are running may take after the hub was told to stop.
pub(super) const FAREWELL: Duration = Duration::from_secs(20);

/// Listens on `wanted`.
///
/// # Errors
/// `H0503`.
pub(super) fn bind(wanted: SocketAddr) -> Result<TcpListener> {
    let failed = |e: std::io::Error| Error::new(Code::Bind, format!("cannot listen on {wanted}: {e}"));
    let listener = TcpListener::bind(wanted).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Reads the certificate and its key.
///
/// # Errors
/// `H0512`.
pub(super) async fn read_tls(tls: &Tls) -> Result<RustlsConfig> {
    RustlsConfig::from_pem_file(&tls.certificate, &tls.key).await.map_err(|e| {
        let files = format!("{} and {}", tls.certificate.display(), tls.key.display());
        Error::new(Code::Tls, format!("{files} are not a certificate and its key: {e}"))
    })
}

/// Answers requests until `handle` says stop.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<RustlsConfig>,
    handle: Handle<SocketAddr>,
    app: Router,
    idle: Duration,
) -> std::io::Result<()> {
    let service = app.into_make_service();
    let server = axum_server::from_tcp(listener)?;
    // The head of an answer and its body are two writes: the second must not wait until the first is acknowledged.
    let prompt = NoDelayAcceptor::new();
    match tls {
        None => limited(server.acceptor(prompt), idle).handle(handle).serve(service).await,
        Some(tls) => {
            let server = server.acceptor(RustlsAcceptor::new(tls).acceptor(prompt));
            limited(server, idle).handle(handle).serve(service).await
        }
    }
}

/// A server that waits for the head of a request no longer than `idle`.
fn limited<A>(mut server: Server<SocketAddr, A>, idle: Duration) -> Server<SocketAddr, A> {
    let http = server.http_builder();
    http.http1().header_read_timeout(idle).max_buf_size(HEAD_SIZE).max_headers(HEADERS);
    http.http2().max_header_list_size(HEAD_SIZE as u32);
    server.first_request_timeout(idle)
}
