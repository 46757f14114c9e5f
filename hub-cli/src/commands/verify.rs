//! `verify`: what can be said of a package without asking anybody.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::Verify;
use crate::error::{Code, Error, Result};
use crate::hub::{Revision, Wanted, open_cached, parse_spec};
use crate::output::{Output, count};
use crate::package::signing::{Sigstore, Standing, TrustStore};
use crate::package::{Interface, LocalPackage, Variant};
use crate::settings::HubSettings;

pub(super) fn run(args: &Verify, hub: &HubSettings, output: &Output) -> Result<()> {
    let (owner, variants, standings) = match Path::new(&args.what).is_dir() {
        true => local(Path::new(&args.what), args.owner.as_deref(), hub)?,
        false => cached(&args.what, args.owner.as_deref(), hub)?,
    };
    let trust = hub.cache.trust();
    let reports = variants.iter().zip(&standings);
    let reports =
        reports.map(|(v, s)| Report::of(v, s, owner.as_deref(), trust)).collect::<Result<Vec<_>>>()?;
    let unsigned = reports.iter().find(|report| !report.is_trusted());
    if let Some(report) = unsigned.filter(|_| args.require_signature) {
        let why = match report.standing {
            Standing::Unknown(key) => format!("is signed with {key}, which you trust for nobody here"),
            _ => "is not signed".to_owned(),
        };
        let why = match report.sigstore {
            Some(_) => format!("{why}, and its sigstore bundle is not verified"),
            None => why,
        };
        let message = format!("{} {why}", report.variant.name);
        return Err(Error::new(Code::Signature, message).help(
            "ask its owner for the public key and `kernels-cli trust add OWNER KEY`, or for the sigstore identity and \
             `kernels-cli trust sigstore OWNER`",
        ));
    }
    let json: Vec<_> = reports.iter().map(Report::json).collect();
    output.result(json!({"what": args.what, "variants": json}), || {
        reports.iter().map(Report::text).collect::<Vec<_>>().join("\n")
    });
    Ok(())
}

/// The owner if it is known, the variants, and what is known of each one's signature.
type Found = (Option<String>, Vec<Variant>, Vec<Standing>);

/// A package in a folder. If nobody says whose it is, signatures are only compared with its bytes.
fn local(path: &Path, owner: Option<&str>, hub: &HubSettings) -> Result<Found> {
    let package = LocalPackage::open(path)?;
    let trust = hub.cache.trust();
    if let Some(owner) = owner {
        let signature = |variant: &str| Ok(package.signatures.get(variant).cloned());
        let standings = trust.standings(owner, &package.variants, signature)?;
        return Ok((Some(owner.to_owned()), package.variants, standings));
    }
    let standing = |variant: &Variant| match package.signatures.get(&variant.name) {
        None => Standing::Unsigned,
        Some(signature) if trust.owners().any(|(_, keys)| keys.contains(&signature.key)) => {
            Standing::Trusted(signature.key.clone())
        }
        Some(signature) => Standing::Unknown(signature.key.clone()),
    };
    let standings = package.variants.iter().map(standing).collect();
    Ok((None, package.variants, standings))
}

fn cached(spec: &str, owner: Option<&str>, hub: &HubSettings) -> Result<Found> {
    let (repo, Some(revision)) = parse_spec(spec)? else {
        return Err(Error::new(Code::Arguments, format!("which version of {spec}?"))
            .help(format!("write {spec}@v1; a folder of this name does not exist")));
    };
    if owner.is_some_and(|owner| owner != repo.owner()) {
        return Err(Error::new(Code::Arguments, format!("{repo} is not of the --owner"))
            .help("leave --owner out: it says whose the package in a folder is"));
    }
    let owner = repo.owner().to_owned();
    if let Revision::Branch(name) = &revision
        && !hub.cache.root().exists()
    {
        return Err(Error::new(Code::Offline, format!("{repo} {name} is not in the cache")));
    }
    let fetched = open_cached(&hub.cache, &Wanted { repo, revision, variants: vec![] })?;
    Ok((Some(owner), fetched.variants, fetched.standings))
}

/// What was found of one variant.
struct Report<'a> {
    variant: &'a Variant,
    standing: &'a Standing,
    interface: Interface,
    sigstore: Option<Sigstore>,
}

impl<'a> Report<'a> {
    fn of(
        variant: &'a Variant,
        standing: &'a Standing,
        owner: Option<&str>,
        trust: &TrustStore,
    ) -> Result<Self> {
        let read = |file: &Path| fs_err::read(file).map_err(|e| Error::io(file, e));
        let mut told = std::collections::BTreeMap::new();
        for (path, file) in variant.files.iter().filter(|(path, _)| Interface::is_told_by(path)) {
            told.insert(path.clone(), read(file)?);
        }
        let bundle = variant.files.iter().find(|(path, _)| path.as_str() == "metadata.json.sigstore");
        let sigstore = match bundle {
            Some((path, file)) => {
                let at = format!("{}/{path}", variant.name);
                let (bundle, metadata) = (read(file)?, variant.metadata_bytes()?);
                let check = |trusted: &[&_]| Sigstore::check(&bundle, &metadata, &at, trusted);
                Some(match owner {
                    Some(owner) => check(&trust.identities(owner).iter().collect::<Vec<_>>())?,
                    // Nobody's identities are asked for, so none that fits is no error.
                    None => {
                        let all: Vec<_> = trust.identified().flat_map(|(_, identities)| identities).collect();
                        check(&all).or_else(|_| check(&[]))?
                    }
                })
            }
            None => {
                // Nothing lists the bundle, so anybody could leave it out.
                if let Some(owner) = owner.filter(|owner| !trust.identities(owner).is_empty()) {
                    let message = format!(
                        "{} has no metadata.json.sigstore, and you trust sigstore identities of {owner}",
                        variant.name
                    );
                    return Err(Error::new(Code::Signature, message).help(format!(
                        "ask {owner} to sign it: `kernels-cli trust ls` shows the identities that you trust"
                    )));
                }
                None
            }
        };
        Ok(Self { variant, standing, interface: Interface::of(&told), sigstore })
    }

    /// Whether somebody signed whom the user trusts.
    fn is_trusted(&self) -> bool {
        matches!(self.standing, Standing::Trusted(_))
            || self.sigstore.as_ref().is_some_and(|sigstore| sigstore.verified.is_some())
    }

    fn modules(&self) -> usize {
        self.interface.ops.iter().flat_map(|index| index.ops.iter()).map(|(_, op)| op.modules.len()).sum()
    }

    fn json(&self) -> Value {
        let metadata = &self.variant.metadata;
        let ops: Vec<_> = self.interface.ops.iter().flat_map(|index| index.ops.names()).collect();
        let signature = match self.standing {
            Standing::Unsigned => Value::Null,
            Standing::Unknown(key) => json!({"key": key, "trusted": false}),
            Standing::Trusted(key) => json!({"key": key, "trusted": true}),
        };
        json!({
            "name": self.variant.name, "id": metadata.id, "version": metadata.version,
            "digest": metadata.digest.as_ref().map(|digest| digest.files.len()),
            "ops": ops, "modules": self.modules(), "python": self.interface.python.names,
            "provenance": metadata.provenance, "signature": signature, "sigstore": self.sigstore,
        })
    }

    fn text(&self) -> String {
        let metadata = &self.variant.metadata;
        let digest = match &metadata.digest {
            Some(digest) => format!("{} match", count(digest.files.len(), "file")),
            None => "none: nothing says what belongs to it".to_owned(),
        };
        let python: Vec<_> = self.interface.python.names.iter().map(String::as_str).collect();
        let interface = match &self.interface.ops {
            Some(index) => format!(
                "{}, {} as index.json says; Python: {}",
                count(index.ops.len(), "op"),
                count(self.modules(), "module"),
                python.join(", ")
            ),
            None => format!("no index.json; Python: {}", python.join(", ")),
        };
        let provenance = match &metadata.provenance {
            None => "none".to_owned(),
            Some(provenance) => {
                let source = match &provenance.kernel {
                    None => "no commit is named".to_owned(),
                    Some(state) => {
                        format!("commit {}{}", state.commit, if state.dirty { ", with changes" } else { "" })
                    }
                };
                format!("built by {}; {source}", provenance.kernel_builder.version)
            }
        };
        let signature = match self.standing {
            Standing::Unsigned => "none".to_owned(),
            Standing::Unknown(key) => format!("valid, by {key}, which you do not know"),
            Standing::Trusted(key) => format!("valid, by {key}, which you trust"),
        };
        let mut text = format!("{}  {}\n", self.variant.name, metadata.id);
        for (what, found) in [
            ("digest", digest),
            ("interface", interface),
            ("provenance", provenance),
            ("signature", signature),
        ] {
            text += &format!("  {what:<10}  {found}\n");
        }
        if let Some(sigstore) = &self.sigstore {
            let claims = sigstore.claims.join(", ");
            text += &match (&sigstore.verified, sigstore.unchecked) {
                (Some(verified), _) => {
                    let issuer = sigstore.issuer.as_deref().unwrap_or_default();
                    format!(
                        "  sigstore    verified, by {claims} (issuer {issuer}), logged {}; you trust {}\n",
                        verified.time(),
                        verified.trusted
                    )
                }
                (None, unchecked) => format!(
                    "  sigstore    matches, and claims to be by {claims}; NOT VERIFIED: {} (`kernels-cli trust \
                     sigstore` says whom to trust)\n",
                    unchecked.unwrap_or_default()
                ),
            };
        }
        text
    }
}
