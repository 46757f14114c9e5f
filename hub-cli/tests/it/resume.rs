//! Downloads over connections that break: what arrived is kept, and nothing wrong is.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hub_cli::hub::{Silent, Version, fetch, publish};
use hub_cli::package::build::build;
use hub_cli::{Code, Result};

use crate::support::{Bench, Toys, client, contents, repo, wanted, write_source};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 6 * MIB;

/// A proxy that cuts its first connections after so many bytes of answers.
struct Cutter {
    address: SocketAddr,
    /// Connections that are still to be cut.
    cuts: Arc<AtomicUsize>,
    /// Bytes of answers that went through.
    sent: Arc<AtomicU64>,
    /// Once so many went through, every connection is cut.
    limit: Arc<AtomicU64>,
}

impl Cutter {
    fn new(upstream: &str, cuts: usize, after: u64) -> Self {
        let upstream = upstream.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let cutter = Self {
            address: listener.local_addr().unwrap(),
            cuts: Arc::new(cuts.into()),
            sent: Arc::default(),
            limit: Arc::new(u64::MAX.into()),
        };
        let shared = (cutter.cuts.clone(), cutter.sent.clone(), cutter.limit.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(hub) = TcpStream::connect(&upstream) else { return };
                let (mut from_client, mut to_hub) = (client.try_clone().unwrap(), hub.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_hub));
                let (cuts, sent, limit) = shared.clone();
                std::thread::spawn(move || forward(hub, client, (&cuts, after), (&sent, &limit)));
            }
        });
        cutter
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Forwards answers until there are none, or the connection is one to cut and `after` bytes went through.
fn forward(
    mut hub: TcpStream,
    mut client: TcpStream,
    (cuts, after): (&AtomicUsize, u64),
    (sent, limit): (&AtomicU64, &AtomicU64),
) {
    let (mut buffer, mut forwarded) = (vec![0; 16 << 10], 0);
    while sent.load(Ordering::SeqCst) < limit.load(Ordering::SeqCst) {
        let Ok(count @ 1..) = hub.read(&mut buffer) else { break };
        if client.write_all(&buffer[..count]).is_err() {
            break;
        }
        forwarded += count as u64;
        sent.fetch_add(count as u64, Ordering::SeqCst);
        let cut = |left: usize| left.checked_sub(1);
        if forwarded >= after && cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, cut).is_ok() {
            break;
        }
    }
    let _ = (hub.shutdown(Shutdown::Both), client.shutdown(Shutdown::Both));
}

/// A hub with a package that holds one large file.
fn hub() -> Bench {
    let bench = Bench::new();
    let source = bench.folder.path().join("source");
    write_source(&source, 1, "one");
    let mut state = 1_u32;
    let data = (0..SIZE).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    fs_err::write(source.join("python/data.bin"), data.collect::<Vec<u8>>()).unwrap();
    let package = build(&source, None, &Toys, None).unwrap().package;
    publish(&bench.client(), None, &package, &repo(), Version(1), false).unwrap();
    bench
}

#[test]
fn a_download_goes_on_where_the_connection_broke() -> Result<()> {
    let bench = hub();
    let cutter = Cutter::new(&bench.hub.endpoint(), 2, 2 * MIB);
    let got = fetch(&client(&cutter.endpoint()), &bench.cache(), &wanted(Version(1)), &mut Silent)?;
    assert_eq!(got.variants.len(), 3);
    assert_eq!(cutter.cuts.load(Ordering::SeqCst), 0, "both cuts were made");
    let sent = cutter.sent.load(Ordering::SeqCst);
    assert!(sent < SIZE + MIB, "{sent} bytes for a file of {SIZE}: it was begun again");
    Ok(())
}

#[test]
fn a_file_that_is_only_read_is_asked_for_again_too() -> Result<()> {
    let bench = hub();
    let commit = bench.client().resolve(&repo(), &Version(1).into())?;
    let files = bench.client().files(&repo(), &commit)?;
    let large = files.iter().find(|file| file.size == SIZE).unwrap();
    let cutter = Cutter::new(&bench.hub.endpoint(), 1, 2 * MIB);
    let read = client(&cutter.endpoint()).read(&repo(), &commit, large, SIZE)?;
    assert_eq!((read.len() as u64, cutter.cuts.load(Ordering::SeqCst)), (SIZE, 0));
    Ok(())
}

#[test]
fn a_later_run_goes_on_where_an_earlier_one_gave_up() -> Result<()> {
    let bench = hub();
    let cutter = Cutter::new(&bench.hub.endpoint(), 0, 0);
    let hub = client(&cutter.endpoint());
    // The listing comes through; then the large file breaks off, and after that nothing works any more.
    cutter.limit.store(3 * MIB, Ordering::SeqCst);
    let error = fetch(&hub, &bench.cache(), &wanted(Version(1)), &mut Silent).unwrap_err();
    assert_eq!(error.code(), Code::Unreachable, "{error}");
    let kept = contents(&bench.cache_folder().join("kernels--acme--toy-kernel/incoming"));
    assert_eq!(kept.len(), 1, "only the large file is worth it");
    let kept_bytes = kept.values().next().unwrap().len() as u64;
    assert!(kept_bytes >= MIB, "{kept_bytes}");

    cutter.limit.store(u64::MAX, Ordering::SeqCst);
    let before = cutter.sent.load(Ordering::SeqCst);
    fetch(&hub, &bench.cache(), &wanted(Version(1)), &mut Silent)?;
    let sent = cutter.sent.load(Ordering::SeqCst) - before;
    assert!(sent < SIZE - kept_bytes + MIB, "{sent} bytes, though {kept_bytes} of {SIZE} were here");
    assert!(!bench.cache_folder().join("kernels--acme--toy-kernel/incoming").exists());
    Ok(())
}

#[test]
fn a_wrong_half_is_not_built_upon() -> Result<()> {
    let bench = hub();
    let commit = bench.client().resolve(&repo(), &Version(1).into())?;
    let files = bench.client().files(&repo(), &commit)?;
    let large = files.iter().find(|file| file.size == SIZE).unwrap();
    let incoming = bench.cache_folder().join("kernels--acme--toy-kernel/incoming");
    fs_err::create_dir_all(&incoming).unwrap();
    for wrong in [vec![7; 2 * MIB as usize], vec![7; SIZE as usize], vec![7; SIZE as usize + 1]] {
        fs_err::write(incoming.join(large.oid.as_str()), wrong).unwrap();
        fs_err::write(incoming.join("rubbish"), "x").unwrap();
        let got = bench.get(Version(1))?;
        let file = got.snapshot.join("build/torch-cpu/data.bin");
        assert_eq!(fs_err::metadata(&file).unwrap().len(), SIZE);
        assert!(!incoming.exists());
        fs_err::remove_dir_all(bench.cache_folder().join("kernels--acme--toy-kernel/blobs")).unwrap();
        fs_err::remove_dir_all(bench.cache_folder().join("kernels--acme--toy-kernel/snapshots")).unwrap();
        fs_err::create_dir_all(&incoming).unwrap();
    }
    Ok(())
}
