//! The read side of the Hub's protocol: versions, revisions, listings, files.

use std::collections::BTreeMap;
use std::io::Write;

use reqwest::Url;
use reqwest::header::{HeaderMap, LINK};
use serde::Deserialize;

use crate::error::{Code, Error, Result};

use super::download::{Arrival, Source};
use super::endpoint::{Endpoint, Token};
use super::listing::{Listing, RemoteFile, TreeEntry};
use super::oid::CommitId;
use super::path::RepoPath;
use super::refusal::printable;
use super::repo::{RepoId, Revision, Version};
use super::transport::{Answer, Patience, Transport};

/// The most pages of one listing.
const MAX_PAGES: usize = 10_000;
/// The largest card, in bytes.
const MAX_CARD: u64 = 16 << 20;

/// A client of one hub; every answer is checked before it is believed.
#[derive(Debug)]
pub struct Client {
    pub(super) transport: Transport,
}

#[derive(Deserialize)]
struct Refs {
    branches: Vec<Ref>,
    #[serde(default)]
    tags: Vec<Ref>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ref {
    name: String,
    target_commit: CommitId,
}

/// A kernel that a search found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Found {
    /// The repository.
    pub repo: RepoId,
    /// When it last changed, as the hub writes it.
    pub changed: Option<String>,
}

/// The branches and tags of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// Branches with their newest commits.
    pub branches: BTreeMap<String, CommitId>,
    /// Tags with their commits.
    pub tags: BTreeMap<String, CommitId>,
}

impl Heads {
    /// The versions, oldest first.
    pub fn versions(&self) -> BTreeMap<Version, &CommitId> {
        self.branches
            .iter()
            .filter_map(|(name, commit)| Some((Version::from_branch(name)?, commit)))
            .collect()
    }
}

impl Client {
    /// A client of the hub at `endpoint`.
    ///
    /// # Errors
    /// `H0201` if the system's TLS or proxy settings allow no client.
    pub fn new(endpoint: Endpoint, token: Option<Token>, patience: Patience) -> Result<Self> {
        Ok(Self { transport: Transport::new(endpoint, token, patience)? })
    }

    /// The hub's address.
    pub fn endpoint(&self) -> &Endpoint {
        &self.transport.endpoint
    }

    /// The branches and tags of `repo`.
    ///
    /// # Errors
    /// `H0202` if the hub does not have it; `H02xx` for what can go wrong on the way.
    pub fn heads(&self, repo: &RepoId) -> Result<Heads> {
        let url = self.api(repo, &["refs"]);
        let (refs, _): (Refs, _) = self.transport.get_json(url, &repo.to_string())?;
        let map = |refs: Vec<Ref>| refs.into_iter().map(|r| (r.name, r.target_commit)).collect();
        Ok(Heads { branches: map(refs.branches), tags: map(refs.tags) })
    }

    /// The commit that `revision` means now.
    ///
    /// # Errors
    /// `H0203` if it does not exist, naming the versions that do.
    pub fn resolve(&self, repo: &RepoId, revision: &Revision) -> Result<CommitId> {
        let name = match revision {
            Revision::Commit(commit) => return Ok(commit.clone()),
            Revision::Version(version) => version.branch(),
            Revision::Branch(name) => name.clone(),
        };
        let heads = self.heads(repo)?;
        let found = heads.branches.get(&name).or_else(|| heads.tags.get(&name));
        found.cloned().ok_or_else(|| missing_revision(repo, revision, heads.versions().into_keys()))
    }

    /// Whether `repo` is private, so that a copy of it should be too.
    ///
    /// # Errors
    /// `H02xx`.
    pub fn is_private(&self, repo: &RepoId) -> Result<bool> {
        #[derive(Deserialize)]
        struct Info {
            #[serde(default)]
            private: bool,
        }
        let (info, _): (Info, _) = self.transport.get_json(self.api(repo, &[]), &repo.to_string())?;
        Ok(info.private)
    }

    /// Whether the hub calls `owner` a trusted publisher of kernels.
    ///
    /// # Errors
    /// `H02xx`; an owner that the hub does not know is not trusted.
    pub fn trusts(&self, owner: &str) -> Result<bool> {
        #[derive(Deserialize)]
        struct Overview {
            #[serde(rename = "trustedKernelPublisher", default)]
            trusted: bool,
        }
        let url = self.endpoint().url(["api", "organizations", owner, "overview"]);
        match self.transport.get_json::<Overview>(url, owner) {
            Ok((overview, _)) => Ok(overview.trusted),
            Err(e) if matches!(e.code(), Code::RepoNotFound | Code::NotAllowed) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Kernels whose name has `query` in it, of `author` if one is given; at most `limit`.
    ///
    /// # Errors
    /// `H02xx`.
    pub fn search(&self, query: Option<&str>, author: Option<&str>, limit: usize) -> Result<Vec<Found>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hit {
            id: String,
            last_modified: Option<String>,
        }
        let mut url = self.endpoint().url(["api", "kernels"]);
        for (name, value) in [("search", query), ("author", author)] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        url.query_pairs_mut().append_pair("limit", &limit.to_string());
        let (hits, _): (Vec<Hit>, _) = self.transport.get_json(url, "kernels")?;
        let found = |hit: Hit| {
            let changed = hit.last_modified.as_deref().map(printable);
            // A name that is none is nothing that could be asked for.
            Some(Found { repo: hit.id.parse().ok()?, changed })
        };
        Ok(hits.into_iter().filter_map(found).take(limit).collect())
    }

    /// The files of `commit`, by path.
    ///
    /// # Errors
    /// `H0103`, `H0303`, `H0309` if the listing is hostile or broken.
    pub fn files(&self, repo: &RepoId, commit: &CommitId) -> Result<Vec<RemoteFile>> {
        let mut url = self.api(repo, &["tree", commit.as_str()]);
        url.set_query(Some("recursive=true&expand=false"));
        let what = format!("{repo} at {commit}");
        let mut listing = Listing::default();
        let mut next = Some(url);
        for _ in 0..MAX_PAGES {
            let Some(url) = next else { return listing.finish() };
            let (page, headers): (Vec<TreeEntry>, _) = self.transport.get_json(url.clone(), &what)?;
            next = if page.is_empty() { None } else { self.next_page(&url, &headers)? };
            for entry in page {
                listing.take(entry)?;
            }
        }
        Err(Error::new(Code::TooLarge, format!("the listing of {what} does not end")))
    }

    /// The address of the page after `url`, from its `Link` header.
    fn next_page(&self, url: &Url, headers: &HeaderMap) -> Result<Option<Url>> {
        let Some(link) = headers.get(LINK).and_then(|l| l.to_str().ok()).and_then(next_link) else {
            return Ok(None);
        };
        let next = url.join(link).map_err(|_| {
            Error::new(Code::Protocol, format!("the next page is at {link:?}, which is no address"))
        })?;
        if !self.endpoint().is_origin_of(&next) {
            return Err(Error::new(
                Code::Redirect,
                format!("the next page of the listing is at {next}, on another host"),
            ));
        }
        Ok(Some(next))
    }

    /// Downloads `file` into `into`, checking everything about it; where the connection breaks, it goes on.
    ///
    /// # Errors
    /// `H0301` (size), `H0302` (content), `H0308` (the hub contradicts its listing), `H0201` (the
    /// connection broke too often).
    pub fn download(
        &self,
        repo: &RepoId,
        commit: &CommitId,
        file: &RemoteFile,
        into: &mut impl Write,
    ) -> Result<()> {
        let mut arrival = Arrival::new(file);
        arrival.receive_all(Source { client: self, repo, commit }, into, &|_| {})?;
        arrival.finish()
    }

    /// Asks for the file `path` from byte `offset` on.
    pub(super) fn request(
        &self,
        repo: &RepoId,
        commit: &CommitId,
        path: &RepoPath,
        offset: u64,
    ) -> Result<Answer> {
        let fixed = ["kernels", repo.owner(), repo.name(), "resolve", commit.as_str()];
        let url = self.endpoint().url(fixed.into_iter().chain(path.segments()));
        self.transport.get_from(url, &format!("{path} in {repo}"), offset)
    }

    /// The content of a small file, checked.
    ///
    /// # Errors
    /// Those of [`Client::download`]; `H0207` if it is larger than `limit` bytes.
    pub fn read(&self, repo: &RepoId, commit: &CommitId, file: &RemoteFile, limit: u64) -> Result<Vec<u8>> {
        if file.size > limit {
            let message = format!("{} in {repo} has {} bytes, more than {limit}", file.path, file.size);
            return Err(Error::new(Code::TooLarge, message));
        }
        let mut content = Vec::new();
        self.download(repo, commit, file, &mut content)?;
        Ok(content)
    }

    /// The card of `repo`, if it has one: the README.md of its `main`.
    ///
    /// # Errors
    /// Those of [`Client::read`].
    pub fn card(&self, repo: &RepoId) -> Result<Option<(RepoPath, Vec<u8>)>> {
        let Some(main) = self.heads(repo)?.branches.remove("main") else { return Ok(None) };
        let card = self.files(repo, &main)?.into_iter().find(|file| file.path.as_str() == "README.md");
        card.map(|file| Ok((file.path.clone(), self.read(repo, &main, &file, MAX_CARD)?))).transpose()
    }

    /// The address of an endpoint of `repo`.
    pub(super) fn api(&self, repo: &RepoId, rest: &[&str]) -> Url {
        let fixed = ["api", "kernels", repo.owner(), repo.name()];
        self.endpoint().url(fixed.into_iter().chain(rest.iter().copied()))
    }
}

/// The error for a revision that does not exist, listing the versions that do.
pub(crate) fn missing_revision(
    repo: &RepoId,
    revision: &Revision,
    versions: impl Iterator<Item = Version>,
) -> Error {
    let versions: Vec<_> = versions.map(|v| v.to_string()).collect();
    let noun = if matches!(revision, Revision::Version(_)) { "version" } else { "revision" };
    let error = Error::new(Code::RevisionNotFound, format!("{repo} has no {noun} {revision}"));
    error.help(match versions.as_slice() {
        [] => "it has no versions yet".to_owned(),
        some => format!("it has {}", some.join(", ")),
    })
}

/// The target of `rel="next"` in a `Link` header.
fn next_link(header: &str) -> Option<&str> {
    header.split(',').find_map(|link| {
        let (target, rest) = link.trim().strip_prefix('<')?.split_once('>')?;
        rest.split(';').any(|p| matches!(p.trim(), "rel=\"next\"" | "rel=next")).then_some(target)
    })
}

#[cfg(test)]
mod tests {
    use super::next_link;

    #[test]
    fn the_next_page_is_found_among_links() {
        assert_eq!(next_link("<http://h/a?cursor=1>; rel=\"next\""), Some("http://h/a?cursor=1"));
        assert_eq!(next_link("<x>; rel=\"prev\", <y>; foo=1; rel=\"next\""), Some("y"));
        assert_eq!(next_link("nonsense"), None);
    }
}
