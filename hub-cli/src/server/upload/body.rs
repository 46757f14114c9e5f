//! A request's body in pieces, in blocks, or in lines, within limits.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, Bytes, HttpBody};

use crate::error::{Code, Error};

use super::super::respond::{Answer, Refusal};

/// A body, a piece at a time.
pub(in super::super) struct Chunks {
    body: Body,
    received: u64,
    limit: u64,
}

impl Chunks {
    /// The pieces of `body`, which may have `limit` bytes.
    pub(in super::super) fn new(body: Body, limit: u64) -> Self {
        Self { body, received: 0, limit }
    }

    /// The next piece.
    pub(in super::super) async fn next(&mut self) -> Answer<Option<Bytes>> {
        loop {
            match poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await {
                None => return Ok(None),
                Some(Err(e)) => return Err(Refusal::bad_request(format!("the body ended early: {e}"))),
                Some(Ok(frame)) => {
                    let Ok(chunk) = frame.into_data() else { continue };
                    self.received += chunk.len() as u64;
                    if self.received > self.limit {
                        let message = format!("the upload is larger than {} bytes", self.limit);
                        return Err(Error::new(Code::TooLarge, message).into());
                    }
                    return Ok(Some(chunk));
                }
            }
        }
    }

    /// The next pieces together, `size` bytes or a little more; fewer only at the end.
    pub(in super::super) async fn gather(&mut self, size: usize) -> Answer<Vec<u8>> {
        let mut gathered = Vec::new();
        while gathered.len() < size {
            match self.next().await? {
                Some(chunk) => gathered.extend_from_slice(&chunk),
                None => break,
            }
        }
        Ok(gathered)
    }
}

/// Splits a body into lines, holding at most one of them in memory.
pub(in super::super) struct Lines {
    chunks: Chunks,
    pending: Vec<u8>,
    ended: bool,
    max_line: usize,
}

impl Lines {
    /// Lines of `body`, each of at most `max_line` bytes, `max_total` in all.
    pub(in super::super) fn new(body: Body, max_line: usize, max_total: u64) -> Self {
        Self { chunks: Chunks::new(body, max_total), pending: Vec::new(), ended: false, max_line }
    }

    /// The next line that is not blank.
    pub(in super::super) async fn next(&mut self) -> Answer<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.pending[searched..].iter().position(|b| *b == b'\n') {
                let rest = self.pending.split_off(searched + at + 1);
                let line = std::mem::replace(&mut self.pending, rest);
                searched = 0;
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            if self.ended {
                let line = std::mem::take(&mut self.pending);
                return Ok((!line.trim_ascii().is_empty()).then_some(line));
            }
            searched = self.pending.len();
            match self.chunks.next().await? {
                Some(chunk) => self.pending.extend_from_slice(&chunk),
                None => self.ended = true,
            }
            if self.pending.len() > self.max_line {
                let message = format!("a line of the commit is longer than {} bytes", self.max_line);
                return Err(Error::new(Code::TooLarge, message).into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(body: &'static str, max_line: usize, max_total: u64) -> Result<Vec<String>, Refusal> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut lines = Lines::new(Body::from(body), max_line, max_total);
            let mut all = Vec::new();
            while let Some(line) = lines.next().await? {
                all.push(String::from_utf8(line).unwrap().trim().to_owned());
            }
            Ok(all)
        })
    }

    #[test]
    fn bodies_are_cut_at_line_ends_within_their_limits() {
        assert_eq!(lines("a\n\n  \nbc\r\nd", 100, 100).unwrap(), ["a", "bc", "d"]);
        assert_eq!(lines("", 100, 100).unwrap(), [""; 0]);
        assert!(lines("aaaa\nb", 3, 100).is_err());
        assert!(lines("a\nb\nc\n", 100, 5).is_err());
    }
}
