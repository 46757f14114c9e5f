//! Users, organisations and tokens: what the operator records with `hub token`, `hub org` and `hub owner`.
//!
//! One record, `accounts.json` in the hub's folder, which only the operator can read. Of a token it holds
//! the SHA-256, so that nobody who sees the record can use it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::error::{Code, Error, Result};
use crate::hub::oid::Oid;
use crate::hub::repo::RepoId;

use super::super::store::Store;

/// The record in the store.
pub(super) const RECORD: &str = "accounts.json";

/// What a token lets its bearer do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    Read,
    Write,
}

/// One token, without the token.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct TokenRecord {
    pub(crate) sha256: Oid,
    pub(crate) user: String,
    pub(crate) scope: Scope,
    /// The only repositories that it opens; all of the user's if empty.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) repos: BTreeSet<String>,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// Seconds since 1970 from which on it opens nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<u64>,
}

impl TokenRecord {
    /// The name by which the operator knows it: the first digits of its hash.
    pub(crate) fn id(&self) -> &str {
        &self.sha256.as_str()[..12]
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.expires.is_none_or(|end| now() < end)
    }
}

/// A user or organisation that repositories belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Owner {
    /// Users who may write, if it is an organisation.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) members: BTreeSet<String>,
    /// Python may load its kernels without `trust_remote_code`.
    pub(crate) trusted: bool,
    /// The most bytes that its repositories may hold together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quota: Option<u64>,
}

/// Everything that the operator has recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Accounts {
    pub(crate) owners: BTreeMap<String, Owner>,
    pub(crate) tokens: Vec<TokenRecord>,
}

impl Accounts {
    /// What is recorded in `store`; nothing on a new hub.
    ///
    /// # Errors
    /// `H0505` if it is damaged.
    pub(crate) fn read(store: &Store) -> Result<Self> {
        store.private(RECORD)?.map_or_else(|| Ok(Self::default()), |bytes| Self::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|e| Error::new(Code::Stored, format!("{RECORD}: {e}")))
    }

    /// Changes what is recorded in `store`; a change at the same time is not lost.
    pub(crate) fn change<T>(store: &Store, change: impl Fn(&mut Self) -> Result<T>) -> Result<T> {
        loop {
            let old = store.private(RECORD)?;
            let mut accounts = old.as_deref().map_or_else(|| Ok(Self::default()), Self::parse)?;
            let result = change(&mut accounts)?;
            let new = serde_json::to_vec_pretty(&accounts)
                .map_err(|e| Error::new(Code::Stored, format!("{RECORD}: {e}")))?;
            if store.swap_private(RECORD, old.as_deref(), &new)? {
                return Ok(result);
            }
        }
    }

    /// Records a new token and returns it; it is nowhere to be seen again.
    ///
    /// # Errors
    /// `H0101` if `user` or a repository is not a name.
    pub(crate) fn create_token(
        &mut self,
        user: &str,
        scope: Scope,
        repos: &[String],
        days: Option<u64>,
    ) -> Result<String> {
        check_owner(user)?;
        let repos = repos
            .iter()
            .map(|repo| repo.parse::<RepoId>().map(|id| id.to_string()))
            .collect::<Result<BTreeSet<_>>>()?;
        let mut random = [0; 24];
        getrandom::fill(&mut random).map_err(|e| Error::new(Code::Io, format!("no randomness: {e}")))?;
        let token = format!("hub_{}", hex::encode(random));
        self.owners.entry(user.to_owned()).or_default();
        self.tokens.push(TokenRecord {
            sha256: hash(&token)?,
            user: user.to_owned(),
            scope,
            repos,
            created: now(),
            expires: days.map(|days| now() + days * 86_400),
        });
        Ok(token)
    }

    /// Removes the token whose id starts with `id`.
    ///
    /// # Errors
    /// `H0511` unless there is exactly one.
    pub(crate) fn revoke_token(&mut self, id: &str) -> Result<TokenRecord> {
        let mut found = (0..self.tokens.len()).filter(|n| self.tokens[*n].sha256.as_str().starts_with(id));
        match (found.next(), found.next()) {
            (Some(only), None) if !id.is_empty() => Ok(self.tokens.remove(only)),
            _ => Err(Error::new(
                Code::Account,
                format!("not exactly one token has an id that starts with {id:?}"),
            )
            .help("`kernels-cli hub token ls` lists them")),
        }
    }

    /// The record of `owner`, made if missing.
    ///
    /// # Errors
    /// `H0101` if that is not a name.
    pub(crate) fn owner(&mut self, owner: &str) -> Result<&mut Owner> {
        check_owner(owner)?;
        Ok(self.owners.entry(owner.to_owned()).or_default())
    }

    /// The organisations that `user` is a member of.
    pub(crate) fn organizations(&self, user: &str) -> impl Iterator<Item = &str> {
        self.owners.iter().filter(move |(_, o)| o.members.contains(user)).map(|(name, _)| name.as_str())
    }
}

/// Checks that `name` can be the first half of a repository's id.
pub(crate) fn check_owner(name: &str) -> Result<()> {
    RepoId::new(name, "x").map(|_| ()).map_err(|_| {
        Error::new(Code::RepoId, format!("{name:?} is not the name of a user or organisation"))
            .help("letters, digits, `-`, `_` and `.`, as in the first half of OWNER/NAME")
    })
}

/// The SHA-256 of a token.
pub(super) fn hash(token: &str) -> Result<Oid> {
    Oid::parse(&hex::encode(Sha256::digest(token)))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recorded_by_its_hash_in_a_private_file() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        let token = Accounts::change(&store, |a| a.create_token("alice", Scope::Write, &[], None)).unwrap();
        let path = root.path().join(RECORD);
        assert!(!std::fs::read_to_string(&path).unwrap().contains(&token), "the token itself is not kept");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        let id = Accounts::read(&store).unwrap().tokens[0].id().to_owned();
        Accounts::change(&store, |a| a.revoke_token(&id)).unwrap();
        let again = Accounts::change(&store, |a| a.revoke_token(&id)).unwrap_err();
        assert_eq!(again.code(), Code::Account);
    }

    #[test]
    fn names_and_repositories_of_tokens_are_checked() {
        let mut accounts = Accounts::default();
        for (user, repo) in [("../x", None), ("", None), ("alice", Some("not-a-repo"))] {
            let repos: Vec<_> = repo.map(str::to_owned).into_iter().collect();
            let refused = accounts.create_token(user, Scope::Read, &repos, None).unwrap_err();
            assert_eq!(refused.code(), Code::RepoId, "{user}");
        }
        assert_eq!(accounts, Accounts::default());
    }
}
