//! Files on their way from a hub into the cache: several at once, each checked, broken ones resumed.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Code, Error, Result};

use super::cache::RepoCache;
use super::client::Client;
use super::fetch::Progress;
use super::listing::RemoteFile;
use super::oid::{CommitId, Hasher, Oid};
use super::repo::RepoId;
use super::transport::Answer;

/// How many files are on their way at once.
const PARALLEL: usize = 8;
/// How often a file is asked for when the connection breaks and little arrives.
const ATTEMPTS: u32 = 3;
/// Less than this is not worth going on with: it is asked for again.
const WORTH_KEEPING: u64 = 1 << 20;

/// What a download is about.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) client: &'a Client,
    pub(super) repo: &'a RepoId,
    pub(super) commit: &'a CommitId,
}

/// Brings `files` into the cache, and tells `progress` of the bytes.
///
/// # Errors
/// The first failure in the order of `files`; no further file is begun after one.
pub(super) fn bring_all(
    source: Source<'_>,
    cached: &RepoCache,
    files: &[&RemoteFile],
    progress: &mut dyn Progress,
) -> Result<()> {
    // A large file that comes last would keep one thread busy while the others are done.
    let mut order: Vec<_> = (0..files.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(files[*at].size));
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let progress = Mutex::new(progress);
    let advance = |bytes| {
        if let Ok(mut progress) = progress.lock() {
            progress.advance(bytes);
        }
    };
    let work = || {
        let mut ends = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            let end = bring(source, cached, files[at], &advance);
            failed.fetch_or(end.is_err(), Ordering::Relaxed);
            ends.push((at, end));
        }
        ends
    };
    let mut ends = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..PARALLEL.min(files.len())).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| vec![(0, Err(Error::new(Code::Io, "a download panicked")))])
        });
        joined.flatten().collect::<Vec<_>>()
    });
    ends.sort_by_key(|(at, _)| *at);
    // What came whole is kept, although another file failed.
    let whole = ends.iter().filter(|(_, end)| end.is_ok()).map(|(at, _)| &files[*at].oid);
    let admitted = cached.admit(whole);
    ends.into_iter().try_for_each(|(_, end)| end).and(admitted)
}

/// Gathers one content, going on where an earlier download broke off.
fn bring(source: Source<'_>, cached: &RepoCache, file: &RemoteFile, advance: &dyn Fn(u64)) -> Result<()> {
    let place = cached.part(&file.oid);
    let fail = |e| Error::io(&place, e);
    loop {
        let mut part =
            File::options().create(true).truncate(false).read(true).write(true).open(&place).map_err(fail)?;
        let mut arrival = Arrival::new(file);
        arrival.take_part(&mut part).map_err(fail)?;
        let resumed = arrival.received > 0;
        let result = arrival.receive_all(source, &mut part, advance).and_then(|()| arrival.finish());
        match result {
            Ok(()) => return Ok(()),
            Err(e)
                if e.code() == Code::Unreachable
                    && part.metadata().is_ok_and(|m| m.len() >= WORTH_KEEPING) =>
            {
                return Err(e);
            }
            // What was there before may have been the wrong half.
            Err(e) if resumed && e.code() == Code::Content => fs_err::remove_file(&place).map_err(fail)?,
            Err(e) => {
                // It names the reason already.
                let _ = fs_err::remove_file(&place);
                return Err(e);
            }
        }
    }
}

/// How far a file has come.
pub(super) struct Arrival<'a> {
    file: &'a RemoteFile,
    hasher: Hasher,
    received: u64,
}

impl<'a> Arrival<'a> {
    /// Nothing of `file` yet.
    pub(super) fn new(file: &'a RemoteFile) -> Self {
        Self { file, hasher: file.oid.hasher(file.size), received: 0 }
    }

    /// Takes what an earlier download left in `part`, and leaves the file's position at its end.
    fn take_part(&mut self, part: &mut File) -> std::io::Result<()> {
        if part.metadata()?.len() > self.file.size {
            part.set_len(0)?;
        }
        part.rewind()?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            match part.read(&mut buffer)? {
                0 => return Ok(()),
                count => {
                    self.hasher.update(&buffer[..count]);
                    self.received += count as u64;
                }
            }
        }
    }

    /// Takes all of the file from a reader, and checks it.
    ///
    /// # Errors
    /// `H0301` and `H0302`.
    pub(super) fn take_all(mut self, mut from: impl Read, into: &mut impl Write) -> Result<()> {
        let path = &self.file.path;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let fail = |e| Error::new(Code::Io, format!("{path} cannot be copied: {e}"));
            let count = from.read(&mut buffer).map_err(fail)?;
            if count == 0 {
                break;
            }
            self.received += count as u64;
            self.hasher.update(&buffer[..count]);
            into.write_all(&buffer[..count]).map_err(fail)?;
        }
        if self.received != self.file.size {
            let message =
                format!("{path} is listed with {} bytes, and {} are there", self.file.size, self.received);
            return Err(Error::new(Code::Size, message));
        }
        self.finish()
    }

    /// Asks for what is missing until all of it has come, and writes it to `into` as it comes.
    ///
    /// # Errors
    /// Those of [`Arrival::receive`], `H0201` once it has broken too often.
    pub(super) fn receive_all(
        &mut self,
        source: Source<'_>,
        into: &mut impl Write,
        advance: &dyn Fn(u64),
    ) -> Result<()> {
        let mut attempt = 1;
        let mut counted = self.received;
        while self.received < self.file.size || self.file.size == 0 {
            let result = self.receive(source, into, advance);
            if self.received - counted >= WORTH_KEEPING {
                (attempt, counted) = (0, self.received);
            }
            match result {
                Ok(()) => break,
                Err(e) if e.code() == Code::Unreachable && attempt < ATTEMPTS => attempt += 1,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Asks once for what is missing, and writes it to `into` as it comes.
    ///
    /// # Errors
    /// `H0201` if the connection breaks: another call goes on from there. `H0301` and `H0308` if the answer is
    /// not about this file.
    fn receive(&mut self, source: Source<'_>, into: &mut impl Write, advance: &dyn Fn(u64)) -> Result<()> {
        let RemoteFile { path, size, .. } = self.file;
        let mut answer = source.client.request(source.repo, source.commit, path, self.received)?;
        let mut known = self.check_headers(&answer, source.commit)?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = match answer.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(e) => {
                    let message = format!("{path} broke off after {} of {size} bytes: {e}", self.received);
                    return Err(Error::new(Code::Unreachable, message).because(e));
                }
            };
            let skipped = known.min(count as u64);
            known -= skipped;
            let fresh = &buffer[skipped as usize..count];
            if self.received + fresh.len() as u64 > *size {
                return Err(Error::new(
                    Code::Size,
                    format!("{path} is listed with {size} bytes, and the hub sends more"),
                ));
            }
            self.hasher.update(fresh);
            into.write_all(fresh)
                .map_err(|e| Error::new(Code::Io, format!("{path} cannot be written: {e}")).because(e))?;
            self.received += fresh.len() as u64;
            advance(fresh.len() as u64);
        }
        if self.received == *size {
            return Ok(());
        }
        let message = format!("{path} is listed with {size} bytes, and {} arrived", self.received);
        Err(Error::new(Code::Size, message))
    }

    /// Checks that all of the file has come and that it is what was listed.
    ///
    /// # Errors
    /// `H0302`.
    pub(super) fn finish(self) -> Result<()> {
        let RemoteFile { path, oid, .. } = self.file;
        let actual = self.hasher.finish();
        if actual == *oid {
            return Ok(());
        }
        let message = format!("{path} is listed with the id {oid}, and what arrived has {actual}");
        Err(Error::new(Code::Content, message))
    }

    /// Compares what the answer says about the file with what the listing said; returns how many of its first
    /// bytes are here already.
    fn check_headers(&self, answer: &Answer, commit: &CommitId) -> Result<u64> {
        let RemoteFile { path, oid, size } = self.file;
        let start = match answer.starts_at() {
            None => 0,
            Some((start, whole)) if start == self.received && whole == *size => start,
            Some((start, whole)) => {
                let message = format!(
                    "{path} was asked for from byte {} of {size}, and byte {start} of {whole} came",
                    self.received
                );
                return Err(Error::new(Code::Contradiction, message));
            }
        };
        if let Some(length) = answer.content_length().filter(|length| *length != size - start) {
            return Err(Error::new(
                Code::Size,
                format!(
                    "{path} is listed with {size} bytes, and announced with {}",
                    start.saturating_add(length)
                ),
            ));
        }
        // A store behind a redirect has ETags of its own.
        if !answer.from_hub {
            return Ok(self.received - start);
        }
        if let Some(other) = answer.header("x-repo-commit").filter(|c| *c != commit.as_str()) {
            return Err(Error::new(
                Code::Contradiction,
                format!("{path} was asked for at {commit}, and the hub answers for {other:?}"),
            ));
        }
        if let Some(etag) = answer.header("x-linked-etag").or_else(|| answer.header("etag")) {
            let etag = Oid::parse(etag.trim_start_matches("W/").trim_matches('"'))?;
            if etag != *oid {
                return Err(Error::new(
                    Code::Contradiction,
                    format!("{path} is listed with the id {oid}, and sent with the ETag {etag}"),
                ));
            }
        }
        Ok(self.received - start)
    }
}
