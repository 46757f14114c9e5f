//! The endpoint that hands out a file's content, whole or in part.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use crate::error::{Code, Error};
use crate::hub::path::RepoPath;

use super::App;
use super::access::Caller;
use super::respond::Answer;
use super::routes::{RepoAndPath, blocking};

/// `GET` and `HEAD /kernels/{owner}/{name}/resolve/{revision}/{path}`
pub(super) async fn resolve(
    State(app): State<App>,
    Path((owner, name, revision, path)): RepoAndPath,
    caller: Caller,
    asked: HeaderMap,
) -> Answer {
    let (commit, file, content) = blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let (commit, path) = (repo.resolve(&revision)?, RepoPath::parse(&path)?);
        let tree = repo.tree(&commit)?;
        let Some(file) = tree.files.get(&path).cloned() else {
            return Err(Error::new(
                Code::FileNotFound,
                format!("{} has no file {path} at {revision}", repo.id()),
            )
            .into());
        };
        let content = repo.open_object(&file)?;
        Ok((commit, file, content))
    })
    .await?;

    let etag = format!("\"{}\"", file.etag());
    let asked = |name| asked.get(name).and_then(|v: &HeaderValue| v.to_str().ok());
    let unchanged = asked(header::IF_NONE_MATCH).is_some_and(|v| matches(v, &etag));
    // A range of another content than the client has begun with would be of no use to it.
    let same = asked(header::IF_RANGE).is_none_or(|v| v.trim() == etag);
    let range = asked(header::RANGE).filter(|_| same).and_then(|v| byte_range(v, file.size));
    let (status, start, length) = match range {
        _ if unchanged => (StatusCode::NOT_MODIFIED, 0, 0),
        None => (StatusCode::OK, 0, file.size),
        Some(None) => (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0),
        Some(Some((start, end))) => (StatusCode::PARTIAL_CONTENT, start, end - start),
    };

    let mut response = if length == 0 {
        Response::new(Body::empty())
    } else {
        let damaged = |e: std::io::Error| Error::new(Code::Stored, format!("{}: {e}", file.sha256));
        let mut content = tokio::fs::File::from_std(content);
        content.seek(std::io::SeekFrom::Start(start)).await.map_err(damaged)?;
        Response::new(Body::from_stream(ReaderStream::with_capacity(content.take(length), 64 << 10)))
    };
    *response.status_mut() = status;
    let out = response.headers_mut();
    let text = |value: String| HeaderValue::from_str(&value).expect("ids and numbers are visible ASCII");
    if file.lfs {
        out.insert("x-linked-etag", text(etag.clone()));
        out.insert("x-linked-size", text(file.size.to_string()));
    }
    out.insert(header::ETAG, text(etag));
    out.insert("x-repo-commit", text(commit.to_string()));
    out.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // Never rendered by a browser: a package may hold HTML.
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    out.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    match status {
        StatusCode::NOT_MODIFIED => {}
        StatusCode::RANGE_NOT_SATISFIABLE => {
            out.insert(header::CONTENT_RANGE, text(format!("bytes */{}", file.size)));
        }
        _ => {
            out.insert(header::CONTENT_LENGTH, text(length.to_string()));
            if status == StatusCode::PARTIAL_CONTENT {
                out.insert(
                    header::CONTENT_RANGE,
                    text(format!("bytes {start}-{}/{}", start + length - 1, file.size)),
                );
            }
        }
    }
    Ok(response.into_response())
}

/// Whether an `If-None-Match` names this ETag; the weak comparison counts there.
fn matches(value: &str, etag: &str) -> bool {
    value.split(',').map(str::trim).any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// The half-open range that `bytes=a-b`, `bytes=a-` or `bytes=-n` asks for in a file of `size` bytes.
///
/// `None` for what is not one plain range, which is then ignored; `Some(None)` if nothing of it exists.
fn byte_range(value: &str, size: u64) -> Option<Option<(u64, u64)>> {
    let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
    let range = if first.is_empty() {
        (size.saturating_sub(last.parse().ok()?), size)
    } else {
        let end = if last.is_empty() { size } else { last.parse::<u64>().ok()?.saturating_add(1).min(size) };
        (first.parse().ok()?, end)
    };
    Some((range.0 < range.1).then_some(range))
}

#[cfg(test)]
mod tests {
    use super::{byte_range, matches};

    #[test]
    fn conditions_name_one_etag_or_several() {
        for value in ["\"a\"", "\"b\", \"a\"", "W/\"a\"", "*"] {
            assert!(matches(value, "\"a\""), "{value}");
        }
        assert!(!matches("\"b\"", "\"a\""));
    }

    #[test]
    fn ranges_are_cut_to_the_file() {
        assert_eq!(byte_range("bytes=0-0", 10), Some(Some((0, 1))));
        assert_eq!(byte_range("bytes=4-", 10), Some(Some((4, 10))));
        assert_eq!(byte_range("bytes=-3", 10), Some(Some((7, 10))));
        assert_eq!(byte_range("bytes=-30", 10), Some(Some((0, 10))));
        assert_eq!(byte_range("bytes=5-18446744073709551615", 10), Some(Some((5, 10))));
        assert_eq!(byte_range("bytes=10-", 10), Some(None));
        assert_eq!(byte_range("bytes=5-4", 10), Some(None));
        for odd in ["bytes=0-1,3-4", "lines=0-1", "bytes=", "bytes=x-", "bytes=--1"] {
            assert_eq!(byte_range(odd, 10), None, "{odd}");
        }
    }
}
