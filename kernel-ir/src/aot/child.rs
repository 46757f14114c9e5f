//! A child process in which libtpu is loaded, seen from the parent: requests with a time limit, and what it said when
//! it died.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::protocol::{CHILD, PREFIX, Reply, Request};

/// How much of the end of libtpu's stderr is kept for one request.
const MAX_LOG: usize = 256 << 10;

/// How long the rest of stderr may take to arrive once the process has ended.
const DRAIN: Duration = Duration::from_secs(2);

/// What libtpu needs to hear so that it neither asks the cloud for a machine, nor guards one, nor writes log files.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("TPU_SKIP_MDS_QUERY", "1"),
    ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1"),
    ("TPU_LOG_DIR", "disabled"),
    (CHILD, "1"),
];

/// Why a request got no reply.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The process ended.
    Ended {
        /// A signal or an exit code.
        ending: String,
        /// The fatal line of its log, else the last line.
        reason: String,
    },
    /// The process did not answer in time, and was killed.
    TimedOut,
    /// The process could not be started.
    NotStarted(io::Error),
}

/// A running child.
#[derive(Debug)]
pub(crate) struct Child {
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    replies: Receiver<String>,
    log: Arc<Mutex<Vec<u8>>>,
    /// Disconnected once stderr is closed and wholly in `log`.
    log_end: Receiver<()>,
}

impl Child {
    /// Starts `program` as a child; `environment` is set beside what libtpu needs.
    pub(crate) fn start(program: &Path, environment: &[(String, String)]) -> Result<Child, Failure> {
        let mut process = Command::new(program)
            .envs(ENVIRONMENT)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Failure::NotStarted)?;
        let stdin = process.stdin.take();
        let (reply, replies) = channel();
        if let Some(stdout) = process.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line);
                    let Some(line) = line.strip_prefix(PREFIX) else { continue };
                    if reply.send(line.to_owned()).is_err() {
                        break;
                    }
                }
            });
        }
        let log = Arc::new(Mutex::new(Vec::new()));
        let (end, log_end) = channel();
        if let Some(stderr) = process.stderr.take() {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                keep_end(stderr, &log);
                drop(end);
            });
        }
        Ok(Child { process, stdin, replies, log, log_end })
    }

    /// Sends a request and waits for its reply. After a failure the child is gone.
    pub(crate) fn ask(&mut self, request: &Request, limit: Duration) -> Result<Reply, Failure> {
        lock(&self.log).clear();
        if self.send(request).is_err() {
            return Err(self.ended());
        }
        match self.replies.recv_timeout(limit) {
            Ok(line) => Ok(serde_json::from_str(&line).unwrap_or_else(|error| {
                Reply::Failed(format!("the worker's reply cannot be read: {error}"))
            })),
            Err(RecvTimeoutError::Timeout) => {
                self.stop();
                Err(Failure::TimedOut)
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    /// Whether the process has not ended by itself meanwhile.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stdin.write_all(&line)?;
        stdin.flush()
    }

    /// Waits for a process whose stdout is closed, and reads its last words.
    fn ended(&mut self) -> Failure {
        // A process that has only closed its pipes would keep `wait` waiting.
        self.stdin = None;
        let mut waited = Duration::ZERO;
        let step = Duration::from_millis(20);
        while waited < DRAIN && self.is_alive() {
            thread::sleep(step);
            waited += step;
        }
        let _already_gone = self.process.kill();
        let ending = self.process.wait().map_or_else(|error| error.to_string(), describe);
        let _closed = self.log_end.recv_timeout(DRAIN);
        let log = String::from_utf8_lossy(&lock(&self.log)).into_owned();
        Failure::Ended { reason: last_words(&log).unwrap_or_else(|| ending.clone()), ending }
    }

    fn stop(&mut self) {
        let _already_gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock(log: &Mutex<Vec<u8>>) -> std::sync::MutexGuard<'_, Vec<u8>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep_end(mut stderr: impl Read, log: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 8192];
    while let Ok(length @ 1..) = stderr.read(&mut chunk) {
        let mut log = lock(log);
        log.extend_from_slice(&chunk[..length]);
        if log.len() > MAX_LOG {
            let excess = log.len() - MAX_LOG;
            log.drain(..excess);
        }
    }
}

/// `LOG(FATAL)` writes ``F1130 20:11:15.239037    2660 file.cc:17431] why``; without such a line, the last one.
fn last_words(log: &str) -> Option<String> {
    let fatal = log.lines().find(|line| {
        let digits = line.strip_prefix('F').and_then(|line| line.get(..4));
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) && line.contains("] ")
    });
    match fatal {
        Some(line) => {
            let (head, why) = line.split_once("] ")?;
            let place = head.rsplit(' ').next().unwrap_or(head);
            Some(format!("{} ({place})", why.trim()))
        }
        None => log.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned),
    }
}

#[cfg(unix)]
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    const NAMES: [(i32, &str); 7] = [
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL, perhaps for want of memory"),
        (11, "SIGSEGV"),
        (15, "SIGTERM"),
    ];
    match status.signal() {
        Some(signal) => {
            let name = NAMES.iter().find(|(number, _)| *number == signal);
            name.map_or_else(|| format!("signal {signal}"), |(_, name)| format!("signal {signal} ({name})"))
        }
        None => status.to_string(),
    }
}

#[cfg(not(unix))]
fn describe(status: ExitStatus) -> String {
    status.to_string()
}
