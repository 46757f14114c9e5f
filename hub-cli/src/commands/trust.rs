//! `trust`: the keys and sigstore identities that packages of an owner must be signed by.

use serde_json::json;

use crate::cli::{Trust, TrustCommand};
use crate::error::{Code, Error, Result};
use crate::output::Output;
use crate::package::signing::{SigstoreTrust, TrustStore};

pub(super) fn run(args: Trust, mut store: TrustStore, output: &Output) -> Result<()> {
    match args.command {
        TrustCommand::Add { owner, key } => store.add(&owner, key.parse()?)?,
        TrustCommand::Sigstore { owner, root, identity, issuer } => {
            let text = fs_err::read_to_string(&root).map_err(|e| Error::io(&root, e))?;
            let trust = SigstoreTrust::new(&identity, &issuer, text, &root.display().to_string())?;
            store.add_identity(&owner, trust)?;
        }
        TrustCommand::Rm { owner, which } => {
            let removed = match which {
                None => store.remove(&owner, None)? | store.remove_identity(&owner, None)?,
                Some(key) if key.starts_with("ed25519:") => store.remove(&owner, Some(&key.parse()?))?,
                Some(identity) => store.remove_identity(&owner, Some(&identity))?,
            };
            if !removed {
                return Err(Error::new(Code::Key, format!("no such key or identity of {owner} is trusted"))
                    .help("`kernels-cli trust ls` lists those that are"));
            }
        }
        TrustCommand::Ls => {}
    }
    let owners: serde_json::Map<_, _> =
        store.owners().map(|(owner, keys)| (owner.to_owned(), json!(keys))).collect();
    let identified = store.identified().map(|(owner, identities)| {
        let told = identities.iter().map(|i| json!({"identity": i.identity, "issuer": i.issuer}));
        (owner.to_owned(), told.collect())
    });
    let identified: serde_json::Map<_, _> = identified.collect();
    output.summary(json!({"path": store.path(), "owners": owners, "sigstore": identified}), || {
        let lines =
            store.owners().flat_map(|(owner, keys)| keys.iter().map(move |key| format!("{owner}  {key}\n")));
        let identities = store.identified().flat_map(|(owner, identities)| {
            identities
                .iter()
                .map(move |i| format!("{owner}  sigstore {} (issuer {})\n", i.identity, i.issuer))
        });
        let text: String = lines.chain(identities).collect();
        if text.is_empty() { "no keys or identities are trusted".to_owned() } else { text }
    });
    Ok(())
}
