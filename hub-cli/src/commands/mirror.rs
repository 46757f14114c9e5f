//! `mirror`: versions of a kernel on another hub too.

use serde_json::json;

use crate::cli::Mirror;
use crate::error::{Code, Error, Result};
use crate::hub::{Client, Endpoint, Mirrored, RepoId, Token, Version, mirror};
use crate::output::{Output, count};
use crate::settings::HubSettings;

pub(super) fn run(args: &Mirror, hub: &HubSettings, allow_http_token: bool, output: &Output) -> Result<()> {
    if hub.offline {
        return Err(
            Error::new(Code::Offline, "nothing can be copied in offline mode").help("unset HF_HUB_OFFLINE")
        );
    }
    let from: RepoId = args.repo.parse()?;
    let to: RepoId = args.to_repo.as_deref().unwrap_or(&args.repo).parse()?;
    let endpoint = Endpoint::parse(&args.to)?;
    if endpoint == hub.endpoint && from == to {
        return Err(Error::new(Code::Arguments, format!("{from} would be copied onto itself")));
    }
    let token = match &args.to_token_file {
        Some(file) => {
            if !endpoint.is_private_channel() && !allow_http_token {
                let message = format!(
                    "{endpoint} is plain http on another machine: the token would travel unencrypted"
                );
                return Err(
                    Error::new(Code::TokenOverHttp, message).help("use https, or pass --allow-http-token")
                );
            }
            Some(Token::parse(&fs_err::read_to_string(file).map_err(|e| Error::io(file, e))?)?)
        }
        None => None,
    };
    let source = hub.client()?;
    let target = Client::new(endpoint.clone(), token.clone(), hub.patience)?;
    let versions = match args.versions.as_slice() {
        [] => source.heads(&from)?.versions().into_keys().collect(),
        some => some.iter().copied().map(Version).collect::<Vec<_>>(),
    };
    if versions.is_empty() {
        return Err(Error::new(Code::RevisionNotFound, format!("{from} has no versions to copy")));
    }
    let private = args.private || source.is_private(&from)?;
    let mut done = Vec::new();
    for version in versions {
        done.push(mirror((&source, &from), (&target, token.as_ref(), &to), version, private)?);
    }
    output.summary(
        json!({"from": hub.endpoint.to_string(), "to": endpoint.to_string(), "versions": done}),
        || {
            let line = |copied: &Mirrored| {
                let (p, sent) = (&copied.published, count(copied.published.uploaded, "file"));
                let tags = copied.tags.iter().map(|tag| format!(", tag {tag}")).collect::<String>();
                format!(
                    "{} {} at {}: sent {sent}, {} unchanged{tags}\n",
                    p.repo, p.version, p.commit, p.unchanged
                )
            };
            done.iter().map(line).collect::<String>() + &format!("{} -> {endpoint}", hub.endpoint)
        },
    );
    Ok(())
}
