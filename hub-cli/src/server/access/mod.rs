//! Who is calling, and what they may do.
//!
//! A hub with no token at all is open to everybody who can reach it, and then answers on this machine
//! only. As soon as there is a token, writes and private repositories need one.

pub(crate) mod accounts;
mod guard;
pub(crate) mod links;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use fs_err as fs;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::atomic;
use crate::error::{Code, Error, Result};
use crate::hub::repo::RepoId;

use super::store::Store;
use accounts::{Accounts, RECORD, Scope, TokenRecord};

pub(super) use guard::guard;

/// The name under which the operator, or anybody on an open hub, is recorded.
pub(super) const OPERATOR: &str = "local";
/// How long accounts in an object store count without being compared.
const REMOTE: Duration = Duration::from_secs(5);

/// The rules of one hub.
#[derive(Debug)]
pub(super) struct Access {
    /// The SHA-256 of the token that opens everything.
    operator: Option<[u8; 32]>,
    /// Owners that are trusted by a flag of the command line.
    trusted: BTreeSet<String>,
    accounts: RwLock<Loaded>,
}

/// The accounts as they were when they were read.
#[derive(Debug)]
struct Loaded {
    accounts: Arc<Accounts>,
    stamp: Option<String>,
    /// When they were last compared with the store.
    seen: Instant,
}

impl Access {
    /// The rules of the hub in `store`, with the operator's token in `token_file` if that is given; a new
    /// one is made there, readable by this user alone, if there is no such file.
    pub(super) fn new(store: &Store, token_file: Option<&Path>, trusted: BTreeSet<String>) -> Result<Self> {
        let operator = token_file.map(operator_token).transpose()?;
        let stamp = store.private_stamp(RECORD)?;
        let accounts = Arc::new(Accounts::read(store)?);
        let accounts = RwLock::new(Loaded { accounts, stamp, seen: Instant::now() });
        Ok(Self { operator, trusted, accounts })
    }

    /// Reads again what the operator has recorded, if that has changed. A store on other machines is not
    /// asked at every request.
    pub(super) fn refresh(&self, store: &Store) {
        let known = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        if !store.is_local() && known.seen.elapsed() < REMOTE {
            return;
        }
        let stamp = store.private_stamp(RECORD);
        if stamp.as_ref().is_ok_and(|stamp| *stamp == known.stamp) && store.is_local() {
            return;
        }
        drop(known);
        let mut known = self.accounts.write().unwrap_or_else(PoisonError::into_inner);
        match stamp.and_then(|stamp| Ok((stamp, Accounts::read(store)?))) {
            Ok((stamp, accounts)) => {
                *known = Loaded { accounts: Arc::new(accounts), stamp, seen: Instant::now() };
            }
            // What held before holds until they can be read.
            Err(e) => tracing::error!(error = %e, "accounts cannot be read"),
        }
    }

    /// Whether nobody needs a token.
    pub(super) fn is_open(&self) -> bool {
        self.operator.is_none() && self.accounts().tokens.is_empty()
    }

    /// Whether Python may load this owner's kernels without `trust_remote_code`.
    pub(super) fn trusts(&self, owner: &str) -> bool {
        self.trusted.contains(owner) || self.accounts().owners.get(owner).is_some_and(|o| o.trusted)
    }

    /// What the operator has recorded.
    pub(super) fn accounts(&self) -> Arc<Accounts> {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).accounts.clone()
    }

    /// Who sent a request with these headers to the address `address`.
    fn caller(&self, headers: &HeaderMap, address: String) -> Caller {
        let accounts = self.accounts();
        let level = match bearer(headers) {
            _ if self.operator.is_none() && accounts.tokens.is_empty() => Level::Operator,
            None => Level::Nobody,
            Some(token) => {
                let sent: [u8; 32] = Sha256::digest(token).into();
                let digits = hex::encode(sent);
                // Every record is compared, and each in constant time.
                let found = accounts.tokens.iter().fold(None, |found, record| {
                    let same = bool::from(record.sha256.as_str().as_bytes().ct_eq(digits.as_bytes()));
                    if same { Some(record) } else { found }
                });
                match found.filter(|record| record.is_valid()) {
                    _ if self.operator.is_some_and(|operator| bool::from(operator.ct_eq(&sent))) => {
                        Level::Operator
                    }
                    Some(record) => Level::Token(record.clone()),
                    None => Level::Nobody,
                }
            }
        };
        Caller { level, has_token: bearer(headers).is_some(), accounts, address }
    }
}

/// Who sent a request.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    level: Level,
    has_token: bool,
    accounts: Arc<Accounts>,
    /// This hub's address as the caller wrote it, such as `http://127.0.0.1:8000`.
    pub(super) address: String,
}

#[derive(Clone, Debug)]
enum Level {
    Nobody,
    /// May do everything.
    Operator,
    Token(TokenRecord),
}

impl Caller {
    /// The name for commits and `whoami`.
    pub(super) fn name(&self) -> &str {
        match &self.level {
            Level::Token(token) => &token.user,
            Level::Operator => OPERATOR,
            Level::Nobody => "anonymous",
        }
    }

    /// Whether the caller sent a token that counts; on an open hub any does.
    pub(super) fn is_known(&self) -> bool {
        self.has_token && !matches!(self.level, Level::Nobody)
    }

    /// Whether the caller may change anything at all.
    pub(super) fn may_write_somewhere(&self) -> bool {
        self.scope() == Some(Scope::Write)
    }

    /// What the caller's token allows.
    pub(super) fn scope(&self) -> Option<Scope> {
        match &self.level {
            Level::Nobody => None,
            Level::Operator => Some(Scope::Write),
            Level::Token(token) => Some(token.scope),
        }
    }

    /// The organisations that the caller is a member of.
    pub(super) fn organizations(&self) -> Vec<&str> {
        match &self.level {
            Level::Token(token) => self.accounts.organizations(&token.user).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether the caller may see a repository.
    pub(super) fn may_read(&self, repo: &RepoId, private: bool) -> bool {
        !private || self.belongs_to(repo)
    }

    /// Whether the caller may change, make or delete a repository.
    pub(super) fn may_write(&self, repo: &RepoId) -> bool {
        self.may_write_somewhere() && self.belongs_to(repo)
    }

    /// Whether the caller may open a pull request in a repository that they can see.
    pub(super) fn may_propose(&self, repo: &RepoId) -> bool {
        self.may_write_somewhere() && self.token_covers(repo)
    }

    fn belongs_to(&self, repo: &RepoId) -> bool {
        match &self.level {
            Level::Nobody => false,
            Level::Operator => true,
            Level::Token(token) => {
                let owner = repo.owner();
                let member = self.accounts.owners.get(owner).is_some_and(|o| o.members.contains(&token.user));
                (owner == token.user || member) && self.token_covers(repo)
            }
        }
    }

    fn token_covers(&self, repo: &RepoId) -> bool {
        match &self.level {
            Level::Token(token) => token.repos.is_empty() || token.repos.contains(&repo.to_string()),
            _ => true,
        }
    }
}

/// The SHA-256 of the token in `path`, which is made if missing.
fn operator_token(path: &Path) -> Result<[u8; 32]> {
    if !path.exists() {
        let mut random = [0; 24];
        getrandom::fill(&mut random).map_err(|e| Error::io(path, e.into()))?;
        atomic::write_secret(path, format!("hub_{}\n", hex::encode(random)).as_bytes())?;
    }
    let token = fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let token = token.trim();
    if token.len() < 16 || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(Error::new(
            Code::Token,
            format!("{} does not hold a token of at least 16 visible characters", path.display()),
        ));
    }
    Ok(Sha256::digest(token).into())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(access: &Access, token: &str) -> Caller {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        access.caller(&headers, String::new())
    }

    #[test]
    fn a_new_token_file_is_private_and_opens_everything() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/token");
        let store = Store::open(&folder.path().join("hub")).unwrap();
        let access = Access::new(&store, Some(&path), BTreeSet::new()).unwrap();
        let token = fs::read_to_string(&path).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(token.trim().len() >= 36);
        let repo = "acme/x".parse().unwrap();
        assert!(caller(&access, token.trim()).may_write(&repo));
        assert!(!caller(&access, "hub_wrong").may_write(&repo));
        assert!(!access.caller(&HeaderMap::new(), String::new()).may_write(&repo));
    }

    #[test]
    fn tokens_open_what_their_user_scope_and_repositories_allow() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        let access = Access::new(&store, None, BTreeSet::new()).unwrap();
        assert!(access.is_open());
        let [writer, reader, narrow, stale] = Accounts::change(&store, |a| {
            a.owner("acme")?.members.insert("alice".into());
            Ok([
                a.create_token("alice", Scope::Write, &[], None)?,
                a.create_token("alice", Scope::Read, &[], None)?,
                a.create_token("alice", Scope::Write, &["acme/one".into()], None)?,
                a.create_token("alice", Scope::Write, &[], Some(0))?,
            ])
        })
        .unwrap();
        access.refresh(&store);
        assert!(!access.is_open());
        for (token, repo, read, write) in [
            (&writer, "acme/one", true, true),
            (&writer, "alice/own", true, true),
            (&writer, "other/one", false, false),
            (&reader, "acme/one", true, false),
            (&narrow, "acme/one", true, true),
            (&narrow, "acme/two", false, false),
            (&stale, "acme/one", false, false),
        ] {
            let (caller, repo) = (caller(&access, token), repo.parse().unwrap());
            assert_eq!((caller.may_read(&repo, true), caller.may_write(&repo)), (read, write), "{repo}");
            assert!(caller.may_read(&repo, false));
        }
        // Whoever may write may propose elsewhere, within the repositories of the token.
        assert!(caller(&access, &writer).may_propose(&"other/one".parse().unwrap()));
        assert!(!caller(&access, &narrow).may_propose(&"other/one".parse().unwrap()));
        assert!(!caller(&access, &reader).may_propose(&"other/one".parse().unwrap()));
    }
}
