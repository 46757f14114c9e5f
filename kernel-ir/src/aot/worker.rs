//! The child's side: load libtpu, then compile what comes in on stdin until it closes.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::pjrt::{Api, Topology};
use super::protocol::{CHILD, PREFIX, Reply, Request};

/// Whether this program can be its own child.
static SERVES: AtomicBool = AtomicBool::new(false);

/// To be called first thing in `main` by a program that compiles: if the process was started as a child of a
/// [`Compiler`](super::Compiler), it serves it and does not return.
///
/// A program that does not call this needs `tessera-aot-worker` beside it.
pub fn child_main_if_requested() {
    if std::env::var_os(CHILD).is_none() {
        SERVES.store(true, Ordering::Relaxed);
        return;
    }
    let code = match serve() {
        Ok(()) => 0,
        Err(_parent_is_gone) => 1,
    };
    #[allow(
        clippy::exit,
        reason = "the process is a child that has done its work; the program's main must not run"
    )]
    std::process::exit(code);
}

/// Whether [`child_main_if_requested`] was called, so that this program may be started again as a child.
pub(crate) fn serves() -> bool {
    SERVES.load(Ordering::Relaxed)
}

fn serve() -> io::Result<()> {
    let mut requests = io::stdin().lock().lines();
    let Some(first) = requests.next() else { return Ok(()) };
    let api = match parse(&first?) {
        Ok(Request::Load { libtpu }) => Api::load(&libtpu),
        Ok(Request::Compile { .. }) => Err("the first request must load libtpu".to_owned()),
        Err(problem) => Err(problem),
    };
    let api = match api {
        Ok(api) => api,
        Err(problem) => return reply(&Reply::Failed(problem)),
    };
    reply(&Reply::Loaded { api: api.version() })?;
    let mut topologies = HashMap::new();
    for request in requests {
        let compiled = match parse(&request?) {
            Ok(Request::Compile { topology, stablehlo }) => {
                compile(&api, &mut topologies, topology, &stablehlo)
            }
            Ok(Request::Load { .. }) => Err("libtpu is loaded already".to_owned()),
            Err(problem) => Err(problem),
        };
        reply(&compiled.unwrap_or_else(Reply::Failed))?;
    }
    Ok(())
}

fn compile<'a>(
    api: &'a Api,
    topologies: &mut HashMap<String, Topology<'a>>,
    name: String,
    stablehlo: &str,
) -> Result<Reply, String> {
    if !topologies.contains_key(&name) {
        let topology = api.topology(&name)?;
        topologies.insert(name.clone(), topology);
    }
    let topology = &topologies[&name];
    let version = topology.platform_version()?;
    let start = Instant::now();
    let executable = topology.compile(stablehlo.as_bytes())?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(Reply::Compiled { code_bytes: executable.code_bytes()?, seconds, version })
}

fn parse(line: &str) -> Result<Request, String> {
    serde_json::from_str(line).map_err(|error| format!("not a request: {error}"))
}

fn reply(reply: &Reply) -> io::Result<()> {
    let mut line = format!("{PREFIX}{}", serde_json::to_string(reply)?);
    line.push('\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}
