//! Git LFS: large files that are sent before their commit, whole or in parts, to signed links.
//!
//! Clients send no token to these links, so each carries a permission for one upload (see
//! [`links`](super::access::links)). What arrives is hashed, and kept only if it is what was announced.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::{Code, Error};
use crate::hub::oid::Oid;
use crate::hub::repo::RepoId;

use super::access::Caller;
use super::access::links::Permit;
use super::respond::{Answer, Refusal};
use super::routes::{RepoAndOne, RepoOnly, blocking};
use super::store::{Incoming, Repo};
use super::upload::{Chunks, large_id};
use super::{App, repos::parse};

/// The most objects in one batch.
const MAX_OBJECTS: usize = 1000;
/// The most parts of one object.
const MAX_PARTS: u64 = 10_000;
/// How much of a body is gathered before it is hashed and written.
const BLOCK: usize = 1 << 20;

#[derive(Deserialize)]
struct Batch {
    operation: String,
    #[serde(default)]
    transfers: Vec<String>,
    objects: Vec<Object>,
    #[serde(default)]
    hash_algo: Option<String>,
}

#[derive(Deserialize)]
struct Object {
    oid: String,
    size: u64,
}

/// `POST /kernels/{owner}/{name}.git/info/lfs/objects/batch`: where to send which content.
pub(super) async fn batch(
    State(app): State<App>,
    Path((owner, name)): RepoOnly,
    caller: Caller,
    body: Bytes,
) -> Answer {
    let batch: Batch = parse(&body)?;
    if batch.operation != "upload" {
        return Err(Refusal::unsupported("downloads go through /resolve, not through LFS"));
    }
    if batch.hash_algo.as_deref().is_some_and(|algorithm| algorithm != "sha256") {
        return Err(Refusal::bad_request("LFS contents go by their SHA-256 here"));
    }
    if batch.objects.len() > MAX_OBJECTS {
        let message = format!("a batch holds at most {MAX_OBJECTS} objects");
        return Err(Error::new(Code::TooLarge, message).into());
    }
    blocking(move || {
        let repo = app.readable(&owner, bare(&name)?, &caller)?;
        if !caller.may_propose(repo.id()) {
            return Err(app.not_allowed(repo.id(), &caller).into());
        }
        let mut room = app.room(repo.id().owner())?;
        let in_parts = batch.transfers.iter().any(|transfer| transfer == "multipart");
        let mut objects = Vec::new();
        let mut transfer = "basic";
        for object in &batch.objects {
            let mut answer = json!({"oid": object.oid, "size": object.size});
            match Upload::plan(&app, &repo, object, &mut room, in_parts) {
                Ok(None) => {}
                Ok(Some(upload)) => {
                    if upload.parts > 0 {
                        transfer = "multipart";
                    }
                    answer["authenticated"] = json!(true);
                    answer["actions"] = upload.actions(&app, &caller.address);
                }
                Err(refusal) => answer["error"] = refusal.to_lfs(),
            }
            objects.push(answer);
        }
        let mut response = Json(json!({"transfer": transfer, "objects": objects})).into_response();
        let json = HeaderValue::from_static("application/vnd.git-lfs+json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(response)
    })
    .await
}

/// How one object is to be sent.
struct Upload {
    repo: RepoId,
    oid: Oid,
    size: u64,
    /// 0 for an upload in one piece.
    parts: u64,
}

impl Upload {
    /// How to send `object`; `None` if it is here.
    fn plan(
        app: &App,
        repo: &Repo<'_>,
        object: &Object,
        room: &mut Option<u64>,
        in_parts: bool,
    ) -> Answer<Option<Self>> {
        let (oid, size) = (large_id(&object.oid)?, object.size);
        if size > app.config.max_large {
            let message = format!("{oid} is larger than {} bytes", app.config.max_large);
            return Err(Error::new(Code::TooLarge, message).into());
        }
        if repo.has_object(&oid, size)? {
            return Ok(None);
        }
        if let Some(room) = room {
            *room = room.checked_sub(size).ok_or_else(|| repo.no_room(size))?;
        }
        let parts = size.div_ceil(app.config.part_size);
        if parts > MAX_PARTS {
            let message = format!("{oid} would need more than {MAX_PARTS} parts");
            return Err(Error::new(Code::TooLarge, message).into());
        }
        Ok(Some(Self {
            repo: repo.id().clone(),
            oid,
            size,
            parts: if in_parts && parts > 1 { parts } else { 0 },
        }))
    }

    /// The links, in the words of git-lfs and of the Hub's `multipart` transfer.
    fn actions(&self, app: &App, address: &str) -> Value {
        let path = link_path(&self.repo, &self.oid);
        let link = |size, part| {
            let Permit { size, parts, part, expires, signature } =
                app.links.permit(&path, size, (part, self.parts));
            format!(
                "{address}{path}?size={size}&parts={parts}&part={part}&expires={expires}&signature={signature}"
            )
        };
        let mut header = Map::new();
        if self.parts > 0 {
            header.insert("chunk_size".into(), json!(app.config.part_size.to_string()));
        }
        for part in 1..=self.parts {
            let start = (part - 1) * app.config.part_size;
            let size = app.config.part_size.min(self.size - start);
            header.insert(format!("{part:05}"), json!(link(size, part)));
        }
        let verify = format!("{address}/kernels/{}.git/info/lfs/verify", self.repo);
        json!({"upload": {"href": link(self.size, 0), "header": header}, "verify": {"href": verify}})
    }
}

/// `PUT /large/{owner}/{name}/{oid}`: a content, or a part of one.
pub(super) async fn put(
    State(app): State<App>,
    Path((owner, name, oid)): RepoAndOne,
    Query(permit): Query<Permit>,
    body: Body,
) -> Answer {
    let (id, oid) = (RepoId::new(&owner, &name)?, large_id(&oid)?);
    app.links.check(&link_path(&id, &oid), &permit)?;
    if permit.parts > 0 && permit.part == 0 {
        return Err(Refusal::bad_request("this link ends an upload in parts: POST to it"));
    }
    let mut incoming = Some(app.store.incoming(permit.size)?);
    let mut chunks = Chunks::new(body, permit.size.saturating_add(1));
    loop {
        let block = chunks.gather(BLOCK).await?;
        if block.is_empty() {
            break;
        }
        let mut writer = incoming.take().ok_or_else(Refusal::panicked)?;
        incoming = Some(
            blocking(move || -> Answer<Incoming> {
                writer.write(&block)?;
                Ok(writer)
            })
            .await?,
        );
    }
    let incoming = incoming.ok_or_else(Refusal::panicked)?;
    let id = blocking(move || {
        let repo = app.store.repo(&id)?;
        if permit.part == 0 {
            repo.keep(&oid, incoming)?;
            return Ok(oid);
        }
        Ok(repo.keep_part(&oid, permit.part, incoming)?)
    })
    .await?;
    let mut response = StatusCode::OK.into_response();
    if let Ok(etag) = HeaderValue::from_str(&format!("\"{id}\"")) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    Ok(response)
}

#[derive(Deserialize)]
struct Completion {
    oid: String,
    parts: Vec<CompletedPart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CompletedPart {
    part_number: u64,
}

/// `POST /large/{owner}/{name}/{oid}`: all parts have been sent.
pub(super) async fn complete(
    State(app): State<App>,
    Path((owner, name, oid)): RepoAndOne,
    Query(permit): Query<Permit>,
    body: Bytes,
) -> Answer {
    let (id, oid) = (RepoId::new(&owner, &name)?, large_id(&oid)?);
    app.links.check(&link_path(&id, &oid), &permit)?;
    let request: Completion = parse(&body)?;
    let in_order = request.parts.iter().map(|part| part.part_number).eq(1..=permit.parts);
    if request.oid != oid.as_str() || permit.parts == 0 || permit.part != 0 || !in_order {
        return Err(Refusal::bad_request("these are not the parts of this upload"));
    }
    blocking(move || {
        app.store.repo(&id)?.join_parts(&oid, permit.size, permit.parts)?;
        Ok(Json(json!({"success": true})).into_response())
    })
    .await
}

/// `POST /kernels/{owner}/{name}.git/info/lfs/verify`: whether a content has arrived.
pub(super) async fn verify(
    State(app): State<App>,
    Path((owner, name)): RepoOnly,
    caller: Caller,
    body: Bytes,
) -> Answer {
    let object: Object = parse(&body)?;
    blocking(move || {
        let repo = app.readable(&owner, bare(&name)?, &caller)?;
        if repo.has_object(&large_id(&object.oid)?, object.size)? {
            return Ok(StatusCode::OK.into_response());
        }
        let message = format!("there is no content {} of {} bytes", object.oid, object.size);
        Err(Error::new(Code::FileNotFound, message).into())
    })
    .await
}

/// `GET /api/kernels/{owner}/{name}/xet-write-token/{revision}`, and for reading.
pub(super) async fn no_xet() -> Refusal {
    Refusal::unsupported(
        "this hub does not speak Xet: for files that it wants through LFS set HF_HUB_DISABLE_XET=1",
    )
}

fn link_path(repo: &RepoId, oid: &Oid) -> String {
    format!("/large/{repo}/{oid}")
}

/// `name` of `name.git`.
fn bare(name: &str) -> Answer<&str> {
    name.strip_suffix(".git").ok_or_else(|| Refusal::unsupported("LFS is at OWNER/NAME.git/info/lfs"))
}
