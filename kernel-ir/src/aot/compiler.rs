//! The compiler: a few child processes, each with libtpu loaded, and the jobs they take.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::child::{Child, Failure};
use super::error::AotError;
use super::locate;
use super::protocol::{Reply, Request};
use crate::target::Generation;

/// How the compiler runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// libtpu.so; looked for if `None` (see [`Compiler::new`]).
    pub libtpu: Option<PathBuf>,
    /// The program to run as a child; looked for if `None`.
    pub worker: Option<PathBuf>,
    /// How many children may run at once.
    pub workers: usize,
    /// How long one program may take to compile.
    pub limit: Duration,
    /// Variables to set for the children, such as `LIBTPU_INIT_ARGS`.
    pub environment: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            libtpu: None,
            worker: None,
            workers: 2,
            limit: Duration::from_secs(300),
            environment: Vec::new(),
        }
    }
}

/// How long libtpu may take to load from a cold disk: it has half a gigabyte.
const LOAD_LIMIT: Duration = Duration::from_secs(120);

/// A program to compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The kernel's name, for messages.
    pub kernel: String,
    /// What to compile it for.
    pub generation: Generation,
    /// The text of a StableHLO program, as [`CustomCall`](crate::mosaic::call::CustomCall) writes it.
    pub stablehlo: String,
}

/// A program that libtpu has compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// What it was compiled for.
    pub generation: Generation,
    /// The size of the machine code, in bytes.
    pub code_bytes: u64,
    /// How long the compiler took.
    pub seconds: f64,
    /// What libtpu says of itself: platform and build.
    pub libtpu: String,
}

/// A job that is done, told to the progress callback of [`Compiler::compile_all`].
#[derive(Debug)]
pub struct Progress<'a> {
    /// Jobs done so far, this one included.
    pub done: usize,
    /// All jobs.
    pub total: usize,
    /// The job.
    pub job: &'a Job,
    /// What became of it.
    pub result: &'a Result<Compiled, AotError>,
}

/// Compiles Mosaic modules for TPUs, with no TPU.
///
/// libtpu runs in child processes, since it aborts on some kernels. A child stays for later jobs, so libtpu is loaded
/// once; one that died is replaced. All methods may be called from several threads.
#[derive(Debug)]
pub struct Compiler {
    libtpu: PathBuf,
    worker: PathBuf,
    options: Options,
    pool: Mutex<Pool>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Child>,
    busy: usize,
}

impl Compiler {
    /// A compiler with the libtpu of this machine: `TPU_LIBRARY_PATH`, else the `libtpu` package of the Python that
    /// `TESSERA_PYTHON` names, of a `.venv` here or above, of the active environment, of `python3`, or of the user.
    ///
    /// # Errors
    /// [`AotError::NoLibtpu`], [`AotError::NoWorker`].
    pub fn new() -> Result<Compiler, AotError> {
        Compiler::with_options(Options::default())
    }

    /// A compiler that runs as `options` say.
    ///
    /// # Errors
    /// Those of [`Compiler::new`].
    pub fn with_options(options: Options) -> Result<Compiler, AotError> {
        let libtpu = match &options.libtpu {
            Some(path) if path.is_file() => path.clone(),
            Some(path) => return Err(AotError::NoLibtpu { looked: vec![path.clone()] }),
            None => locate::libtpu().map_err(|looked| AotError::NoLibtpu { looked })?,
        };
        let worker = match &options.worker {
            Some(path) => path.clone(),
            None => locate::worker().map_err(|problem| AotError::NoWorker { problem })?,
        };
        Ok(Compiler { libtpu, worker, options, pool: Mutex::default(), freed: Condvar::new() })
    }

    /// The libtpu.so that compiles.
    pub fn libtpu(&self) -> &std::path::Path {
        &self.libtpu
    }

    /// Compiles one program. Waits while all children are busy.
    ///
    /// # Errors
    /// [`AotError`]: libtpu rejects the program, crashes on it, takes too long, or does not load.
    pub fn compile(&self, job: &Job) -> Result<Compiled, AotError> {
        let mut seat = self.seat();
        let mut child = match seat.child.take() {
            Some(child) => child,
            None => self.start()?,
        };
        let request = Request::Compile {
            topology: job.generation.topology().to_owned(),
            stablehlo: job.stablehlo.clone(),
        };
        let (kernel, generation) = (&job.kernel, job.generation);
        let reply = child.ask(&request, self.options.limit).map_err(|failure| match failure {
            Failure::Ended { ending, reason } => {
                AotError::Crashed { kernel: kernel.clone(), generation, reason, ending }
            }
            Failure::TimedOut => {
                AotError::Timeout { kernel: kernel.clone(), generation, limit: self.options.limit }
            }
            Failure::NotStarted(error) => AotError::NoWorker { problem: error.to_string() },
        })?;
        seat.child = Some(child);
        match reply {
            Reply::Compiled { code_bytes, seconds, version } => Ok(Compiled {
                generation,
                code_bytes: u64::try_from(code_bytes).unwrap_or(0),
                seconds,
                libtpu: version,
            }),
            Reply::Failed(message) => Err(AotError::rejected(kernel, generation, message)),
            Reply::Loaded { .. } => Err(AotError::NoWorker { problem: "it answers out of turn".to_owned() }),
        }
    }

    /// Compiles all jobs, several at a time, and tells `progress` of each as it is done. Results are in the order of
    /// the jobs.
    pub fn compile_all(
        &self,
        jobs: &[Job],
        progress: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Vec<Result<Compiled, AotError>> {
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            let mut results = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(at) else { break results };
                let result = self.compile(job);
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                progress(Progress { done, total: jobs.len(), job, result: &result });
                results.push((at, result));
            }
        };
        let threads = self.workers().min(jobs.len());
        let mut results: Vec<(usize, Result<Compiled, AotError>)> = thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        results.sort_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }

    fn workers(&self) -> usize {
        self.options.workers.max(1)
    }

    /// Starts a child and loads libtpu in it.
    fn start(&self) -> Result<Child, AotError> {
        let problem = |failure| match failure {
            Failure::Ended { ending, reason } if ending == reason => format!("it ended with {ending}"),
            Failure::Ended { ending, reason } => format!("it ended with {ending}: {reason}"),
            Failure::TimedOut => format!("libtpu did not load within {} s", LOAD_LIMIT.as_secs()),
            Failure::NotStarted(error) => format!("{}: {error}", self.worker.display()),
        };
        let loaded = Child::start(&self.worker, &self.options.environment).and_then(|mut child| {
            let reply = child.ask(&Request::Load { libtpu: self.libtpu.clone() }, LOAD_LIMIT)?;
            Ok((child, reply))
        });
        match loaded.map_err(|failure| AotError::NoWorker { problem: problem(failure) })? {
            (child, Reply::Loaded { .. }) => Ok(child),
            (_, Reply::Failed(message)) => {
                Err(AotError::NoWorker { problem: format!("{}: {message}", self.libtpu.display()) })
            }
            (_, Reply::Compiled { .. }) => {
                Err(AotError::NoWorker { problem: "it answers out of turn".to_owned() })
            }
        }
    }

    /// Waits for a place to run a child, with an idle one in it if there is one.
    fn seat(&self) -> Seat<'_> {
        let pool = self.lock();
        let full = |pool: &mut Pool| pool.busy >= self.workers();
        let mut pool = self.freed.wait_while(pool, full).unwrap_or_else(PoisonError::into_inner);
        pool.busy += 1;
        let child = pool.idle.pop().and_then(|mut child| child.is_alive().then_some(child));
        Seat { compiler: self, child }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to run one child; what is in it when dropped stays for the next job.
struct Seat<'a> {
    compiler: &'a Compiler,
    child: Option<Child>,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut pool = self.compiler.lock();
        pool.busy -= 1;
        pool.idle.extend(self.child.take());
        drop(pool);
        self.compiler.freed.notify_one();
    }
}
