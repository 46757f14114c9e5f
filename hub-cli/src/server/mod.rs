//! The embedded hub: the Hugging Face Hub's protocol for kernel repositories, out of one folder.
//!
//! Unmodified clients (`kernels`, `huggingface_hub`, `hf-hub`, this crate) read and write it with
//! `HF_ENDPOINT` set to its address. Files are sent inline with their commit, or before it through LFS;
//! nothing redirects.

pub(crate) mod access;
mod config;
mod files;
mod large;
mod listen;
mod listing;
mod observe;
mod owners;
mod pages;
mod publish;
mod pulls;
mod refs;
mod repos;
mod respond;
mod routes;
pub(crate) mod store;
mod time;
mod upload;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::error::{Code, Error, Result};

use access::Access;
use access::links::LinkKey;
use observe::Metrics;
use store::Store;

pub use config::{Config, Tls};
pub use upload::{CommitHeader, CommitRecord};

/// How many requests may read or write files at once; more wait their turn. Without a limit that is near,
/// every burst leaves hundreds of threads behind, each with a stack and freed memory that it keeps.
const BLOCKING_THREADS: usize = 32;

/// What every request handler can see.
#[derive(Clone)]
pub(crate) struct App(Arc<AppState>);

pub(crate) struct AppState {
    store: Store,
    access: Access,
    links: LinkKey,
    metrics: Metrics,
    address: SocketAddr,
    config: Config,
}

impl std::ops::Deref for App {
    type Target = AppState;

    fn deref(&self) -> &AppState {
        &self.0
    }
}

/// A running hub; it stops when this is dropped.
#[derive(Debug)]
pub struct Hub {
    address: SocketAddr,
    https: bool,
    open: bool,
    handle: axum_server::Handle<SocketAddr>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Hub {
    /// Starts a hub on a thread of its own and returns when it accepts connections.
    ///
    /// # Errors
    /// `H0501`..`H0505` for the folder, the address and the tokens; `H0105` for the token file; `H0512`
    /// for the certificate.
    pub fn start(config: Config) -> Result<Self> {
        let store = Store::open_in(&config.root, config.store.as_deref())?;
        let access = Access::new(&store, config.token_file.as_deref(), config.trusted.clone())?;
        if access.is_open() && !config.host.is_loopback() {
            let message =
                format!("{} can be reached from other machines, and no token protects writes", config.host);
            return Err(Error::new(Code::OpenWrites, message)
                .help("make tokens with `kernels-cli hub token create`, or pass --token-file PATH"));
        }
        let links = LinkKey::of(&store)?;
        let failed = |e: std::io::Error| Error::new(Code::Bind, format!("the hub cannot be run: {e}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(BLOCKING_THREADS)
            .enable_all()
            .build()
            .map_err(failed)?;
        let tls = config.tls.as_ref().map(|tls| runtime.block_on(listen::read_tls(tls))).transpose()?;
        let listener = listen::bind(SocketAddr::new(config.host, config.port))?;
        let address = listener.local_addr().map_err(failed)?;
        let (https, open) = (tls.is_some(), access.is_open());
        let handle = axum_server::Handle::new();

        let (served, idle) = (handle.clone(), config.idle);
        let metrics = Metrics::default();
        let app = App(Arc::new(AppState { store, access, links, metrics, address, config }));
        let serve = move || {
            let service = routes::router(app);
            runtime.block_on(listen::serve(listener, tls, served, service, idle)).map_err(failed)
        };
        let thread = std::thread::Builder::new().name("hub".into()).spawn(serve).map_err(failed)?;
        Ok(Self { address, https, open, handle, thread: Some(thread) })
    }

    /// The address for `HF_ENDPOINT`, such as `http://127.0.0.1:8000`.
    pub fn endpoint(&self) -> String {
        format!("{}://{}", if self.https { "https" } else { "http" }, self.address)
    }

    /// Whether nobody needed a token when it started.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Serves until Ctrl-C or, on Unix, SIGTERM; then finishes the requests that are running.
    ///
    /// # Errors
    /// If the signals cannot be listened for, or serving failed.
    pub fn run_until_signal(mut self) -> Result<()> {
        let failed = |e: std::io::Error| Error::new(Code::Bind, format!("cannot wait for signals: {e}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        runtime.block_on(signal()).map_err(failed)?;
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<()> {
        self.handle.graceful_shutdown(Some(listen::FAREWELL));
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(Error::new(Code::Bind, "the hub's thread panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // Whoever wants to know calls `run_until_signal`.
        let _ = self.shut_down();
    }
}

async fn signal() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            result = tokio::signal::ctrl_c() => result,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
