//! The embedded hub: the Hugging Face Hub's protocol for kernel repositories, out of one folder.
//!
//! Unmodified clients (`kernels`, `huggingface_hub`, `hf-hub`, this crate) read and write it with
//! `HF_ENDPOINT` set to its address. Files are uploaded inline with their commit; nothing redirects.

mod access;
mod files;
mod listing;
mod publish;
mod refs;
mod repos;
mod respond;
mod routes;
mod store;
mod time;
mod upload;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::error::{Code, Error, Result};

use access::Access;
use store::Store;

/// How to run a hub.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder that holds everything; made if missing.
    pub root: PathBuf,
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 lets the system choose.
    pub port: u16,
    /// The file with the token that writes need; made if missing. Without one, writes are open, which
    /// is allowed on loopback addresses only.
    pub token_file: Option<PathBuf>,
    /// Owners whose kernels Python clients may load without `trust_remote_code`.
    pub trusted: BTreeSet<String>,
    /// Entries in one page of a listing.
    pub page_size: usize,
    /// The largest file, in bytes.
    pub max_file: usize,
    /// The largest upload of one commit, in bytes.
    pub max_upload: u64,
}

impl Config {
    /// A hub on a free port of this machine, for the folder `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            host: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            token_file: None,
            trusted: BTreeSet::new(),
            page_size: 1000,
            max_file: 512 << 20,
            max_upload: 2 << 30,
        }
    }
}

/// What every request handler can see.
#[derive(Clone)]
struct App(Arc<AppState>);

struct AppState {
    store: Store,
    access: Access,
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
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Hub {
    /// Starts a hub on a thread of its own and returns when it accepts connections.
    ///
    /// # Errors
    /// `H0501`..`H0505` for the folder, the address and the token; `H0105` for the token file.
    pub fn start(config: Config) -> Result<Self> {
        let access = match &config.token_file {
            Some(path) => Access::from_file(path)?,
            None if config.host.is_loopback() => Access::Open,
            None => {
                let message = format!(
                    "{} can be reached from other machines, and no token protects writes",
                    config.host
                );
                return Err(Error::new(Code::OpenWrites, message).help("pass --token-file PATH"));
            }
        };
        let store = Store::open(&config.root)?;
        let wanted = SocketAddr::new(config.host, config.port);
        let cannot_bind =
            move |e: std::io::Error| Error::new(Code::Bind, format!("cannot listen on {wanted}: {e}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(cannot_bind)?;
        let listener = runtime.block_on(TcpListener::bind(wanted)).map_err(cannot_bind)?;
        let address = listener.local_addr().map_err(cannot_bind)?;

        let app = App(Arc::new(AppState { store, access, address, config }));
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async {
                let service = routes::router(app);
                axum::serve(listener, service)
                    .with_graceful_shutdown(async {
                        // A dropped sender means the same as a message.
                        let _ = stopped.await;
                    })
                    .await
                    .map_err(cannot_bind)
            })
        };
        let thread = std::thread::Builder::new().name("hub".into()).spawn(serve).map_err(cannot_bind)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address for `HF_ENDPOINT`, such as `http://127.0.0.1:8000`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
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
        self.stop.take();
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
