//! `verify`: what can be said of a package without asking anybody.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::Verify;
use crate::error::{Code, Error, Result};
use crate::hub::{Revision, Wanted, open_cached, parse_spec};
use crate::output::{Output, count};
use crate::package::signing::{Sigstore, Standing};
use crate::package::{Interface, LocalPackage, Variant};
use crate::settings::HubSettings;

pub(super) fn run(args: &Verify, hub: &HubSettings, output: &Output) -> Result<()> {
    let (variants, standings) = match Path::new(&args.what).is_dir() {
        true => local(Path::new(&args.what), hub)?,
        false => cached(&args.what, hub)?,
    };
    let unsigned = variants.iter().zip(&standings).find(|(_, s)| !matches!(s, Standing::Trusted(_)));
    if let Some((variant, standing)) = unsigned.filter(|_| args.require_signature) {
        let why = match standing {
            Standing::Unknown(key) => format!("is signed with {key}, which you trust for nobody here"),
            _ => "is not signed".to_owned(),
        };
        let message = format!("{} {why}", variant.name);
        return Err(Error::new(Code::Signature, message)
            .help("ask its owner for the public key, and `kernels-cli trust add OWNER KEY`"));
    }
    let reports =
        variants.iter().zip(&standings).map(|(v, s)| Report::of(v, s)).collect::<Result<Vec<_>>>()?;
    let json: Vec<_> = reports.iter().map(Report::json).collect();
    output.result(json!({"what": args.what, "variants": json}), || {
        reports.iter().map(Report::text).collect::<Vec<_>>().join("\n")
    });
    Ok(())
}

/// A package in a folder. Whose it is nobody says, so signatures are only compared with its bytes.
fn local(path: &Path, hub: &HubSettings) -> Result<(Vec<Variant>, Vec<Standing>)> {
    let package = LocalPackage::open(path)?;
    let trust = hub.cache.trust();
    let standing = |variant: &Variant| match package.signatures.get(&variant.name) {
        None => Standing::Unsigned,
        Some(signature) if trust.owners().any(|(_, keys)| keys.contains(&signature.key)) => {
            Standing::Trusted(signature.key.clone())
        }
        Some(signature) => Standing::Unknown(signature.key.clone()),
    };
    let standings = package.variants.iter().map(standing).collect();
    Ok((package.variants, standings))
}

fn cached(spec: &str, hub: &HubSettings) -> Result<(Vec<Variant>, Vec<Standing>)> {
    let (repo, Some(revision)) = parse_spec(spec)? else {
        return Err(Error::new(Code::Arguments, format!("which version of {spec}?"))
            .help(format!("write {spec}@v1; a folder of this name does not exist")));
    };
    if let Revision::Branch(name) = &revision
        && !hub.cache.root().exists()
    {
        return Err(Error::new(Code::Offline, format!("{repo} {name} is not in the cache")));
    }
    let fetched = open_cached(&hub.cache, &Wanted { repo, revision, variants: vec![] })?;
    Ok((fetched.variants, fetched.standings))
}

/// What was found of one variant.
struct Report<'a> {
    variant: &'a Variant,
    standing: &'a Standing,
    interface: Interface,
    sigstore: Option<Sigstore>,
}

impl<'a> Report<'a> {
    fn of(variant: &'a Variant, standing: &'a Standing) -> Result<Self> {
        let read = |file: &Path| fs_err::read(file).map_err(|e| Error::io(file, e));
        let mut told = std::collections::BTreeMap::new();
        for (path, file) in variant.files.iter().filter(|(path, _)| Interface::is_told_by(path)) {
            told.insert(path.clone(), read(file)?);
        }
        let bundle = variant.files.iter().find(|(path, _)| path.as_str() == "metadata.json.sigstore");
        let sigstore = match bundle {
            Some((path, file)) => {
                let at = format!("{}/{path}", variant.name);
                Some(Sigstore::check(&read(file)?, &variant.metadata_bytes()?, &at)?)
            }
            None => None,
        };
        Ok(Self { variant, standing, interface: Interface::of(&told), sigstore })
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
            text += &format!(
                "  sigstore    matches, and claims to be by {claims}; NOT VERIFIED: {}\n",
                sigstore.unchecked
            );
        }
        text
    }
}
