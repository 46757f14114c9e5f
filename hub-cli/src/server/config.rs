//! How to run a hub.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// How to run a hub.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder that holds everything; made if missing.
    pub root: PathBuf,
    /// The object store for everything but this server's own files, such as `s3://bucket/folder`.
    pub store: Option<String>,
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 lets the system choose.
    pub port: u16,
    /// The certificate and its key, to serve https.
    pub tls: Option<Tls>,
    /// The file with the operator's token; made if missing. Without one, and without tokens of users,
    /// writes are open, which is allowed on loopback addresses only.
    pub token_file: Option<PathBuf>,
    /// Owners whose kernels Python clients may load without `trust_remote_code`.
    pub trusted: BTreeSet<String>,
    /// The most bytes that one owner may store, unless the operator has recorded another limit.
    pub quota: Option<u64>,
    /// Entries in one page of a listing.
    pub page_size: usize,
    /// The largest file that is sent inline with its commit, in bytes.
    pub max_file: usize,
    /// The largest upload of one commit, in bytes.
    pub max_upload: u64,
    /// The largest file that is sent through LFS, in bytes.
    pub max_large: u64,
    /// Files from this size in bytes on are asked for through LFS; by default those that cannot be inlined.
    pub lfs_from: Option<u64>,
    /// The size of a part of a file that is sent in parts, in bytes.
    pub part_size: u64,
    /// The longest pause while a request arrives.
    pub idle: Duration,
    /// The longest time that one request may take to be answered.
    pub longest: Duration,
}

/// The files for https, both in PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate, followed by those that signed it.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl Config {
    /// A hub on a free port of this machine, for the folder `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            store: None,
            host: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            tls: None,
            token_file: None,
            trusted: BTreeSet::new(),
            quota: None,
            page_size: 1000,
            max_file: 512 << 20,
            max_upload: 2 << 30,
            max_large: 64 << 30,
            lfs_from: None,
            part_size: 64 << 20,
            idle: Duration::from_secs(30),
            longest: Duration::from_secs(3600),
        }
    }
}
