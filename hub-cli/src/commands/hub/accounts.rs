//! `hub token` and `hub owner`: who may do what on a hub of one's own.

use serde_json::json;

use crate::cli::hub::{OwnerArgs, Root, ScopeArg, TokenArgs, TokenCommand, TokenCreate, TokenRevoke};
use crate::error::Result;
use crate::output::{Output, size};
use crate::server::access::accounts::{Accounts, Scope, TokenRecord, check_owner};
use crate::server::store::Store;

pub(super) fn token(args: &TokenArgs, output: &Output) -> Result<()> {
    match &args.command {
        TokenCommand::Create(args) => create(args, output),
        TokenCommand::Ls(args) => list(args, output),
        TokenCommand::Revoke(args) => revoke(args, output),
    }
}

fn create(args: &TokenCreate, output: &Output) -> Result<()> {
    let store = Store::open_or_attach(&args.hub.root)?;
    let scope = match args.scope {
        ScopeArg::Read => Scope::Read,
        ScopeArg::Write => Scope::Write,
    };
    let (token, record) = Accounts::change(&store, |accounts| {
        let token = accounts.create_token(&args.user, scope, &args.repos, args.days)?;
        Ok((token, accounts.tokens.last().cloned()))
    })?;
    let id = record.as_ref().map(TokenRecord::id);
    output.result(json!({"token": token, "id": id, "user": args.user, "scope": scope}), || token.clone());
    output.note("keep it: it cannot be shown again");
    Ok(())
}

fn list(args: &Root, output: &Output) -> Result<()> {
    let store = Store::attach(&args.root)?;
    let tokens = Accounts::read(&store)?.tokens;
    let rows: Vec<_> = tokens
        .iter()
        .map(|t| {
            json!({
                "id": t.id(), "user": t.user, "scope": t.scope, "repos": t.repos, "created": t.created,
                "expires": t.expires, "valid": t.is_valid(),
            })
        })
        .collect();
    output.result(json!({"tokens": rows}), || {
        let line = |t: &TokenRecord| {
            let scope = match t.scope {
                Scope::Read => "read",
                Scope::Write => "write",
            };
            let repos: Vec<_> = t.repos.iter().map(String::as_str).collect();
            let expired = if t.is_valid() { "" } else { " (expired)" };
            format!("{}  {}  {scope}  {}{expired}\n", t.id(), t.user, repos.join(" "))
        };
        tokens.iter().map(line).collect()
    });
    Ok(())
}

fn revoke(args: &TokenRevoke, output: &Output) -> Result<()> {
    let store = Store::attach(&args.hub.root)?;
    let gone = Accounts::change(&store, |accounts| accounts.revoke_token(&args.id))?;
    output.summary(json!({"revoked": gone.id(), "user": gone.user}), || {
        format!("the token {} of {} opens nothing any more", gone.id(), gone.user)
    });
    Ok(())
}

pub(super) fn owner(args: &OwnerArgs, output: &Output) -> Result<()> {
    let store = Store::open_or_attach(&args.hub.root)?;
    let owner = Accounts::change(&store, |accounts| {
        for member in &args.members {
            check_owner(member)?;
        }
        let owner = accounts.owner(&args.name)?;
        owner.members.extend(args.members.iter().cloned());
        owner.members.retain(|member| !args.removed.contains(member));
        owner.trusted = (owner.trusted || args.trust) && !args.no_trust;
        owner.quota = if args.no_quota { None } else { args.quota.or(owner.quota) };
        Ok(owner.clone())
    })?;
    let mut used = 0;
    for repo in store.repos_of(&args.name)? {
        used += repo.usage()?;
    }
    let shown = json!({
        "name": args.name, "members": owner.members, "trusted": owner.trusted, "quota": owner.quota, "used": used,
    });
    output.summary(shown, || {
        let members: Vec<_> = owner.members.iter().map(String::as_str).collect();
        let quota = owner.quota.map_or_else(|| "no quota".into(), |bytes| format!("of {}", size(bytes)));
        let trusted = if owner.trusted { "trusted" } else { "not trusted" };
        format!("{}: {trusted}, {} used {quota}, members: {}", args.name, size(used), members.join(" "))
    });
    Ok(())
}
