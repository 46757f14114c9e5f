//! `metadata.json.sigstore`: what a sigstore bundle proves without asking sigstore's services.
//!
//! Of any bundle it is checked that it is of exactly this metadata.json, and that the key of its certificate signed.
//! Who that was is proven only from roots of trust: a `trusted_root.json` that the user trusts for an owner says which
//! authority issues certificates (Fulcio), and which logs must have seen the certificate and the signature (Rekor).

mod bundle;
mod certificate;
mod identity;
mod log;
mod root;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use x509_cert::der::DateTime;

use crate::error::{Code, Error, Result};
use crate::hub::printable;

use bundle::Bundle;
use certificate::Certificate;
pub use identity::Identity;
use root::TrustedRoot;

/// A sigstore bundle whose signature matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sigstore {
    /// The identities that the certificate names, such as the address of a GitHub workflow.
    pub claims: Vec<String>,
    /// Who told sigstore the identity, as the certificate says.
    pub issuer: Option<String>,
    /// What proves the identity. Without it the certificate is not known to be genuine.
    pub verified: Option<Verified>,
    /// What was not checked.
    pub unchecked: Option<&'static str>,
}

/// What proves who signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The identity that the user trusts, or the pattern that it matches.
    pub trusted: Identity,
    /// When the signature was logged, in seconds since 1970.
    pub logged: u64,
}

impl Verified {
    /// When the signature was logged, such as `2024-04-02T19:19:09Z`.
    pub fn time(&self) -> String {
        let time = DateTime::from_unix_duration(Duration::from_secs(self.logged));
        time.map_or_else(|_| format!("{} seconds after 1970", self.logged), |time| time.to_string())
    }
}

/// An identity that a user trusts, and the roots of trust that prove it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigstoreTrust {
    /// Who signs.
    pub identity: Identity,
    /// Who tells sigstore that it is them, such as `https://token.actions.githubusercontent.com`.
    pub issuer: String,
    /// The text of a `trusted_root.json`.
    root: String,
}

impl SigstoreTrust {
    /// Trust in `identity` as `issuer` states it, proven from the `trusted_root.json` with the text `root`; `at` names
    /// that file in messages.
    ///
    /// # Errors
    /// `H0113` if the file is not a trusted root from which something can be proven, or `identity` or `issuer` is none.
    pub fn new(identity: &str, issuer: &str, root: String, at: &str) -> Result<Self> {
        let identity = identity.parse()?;
        if !(issuer.starts_with("https://") || issuer.starts_with("http://"))
            || issuer.contains(char::is_control)
        {
            return Err(Error::new(
                Code::Key,
                format!("{issuer:?} is not the URL of an issuer of identities"),
            )
            .help("for workflows of GitHub it is https://token.actions.githubusercontent.com"));
        }
        TrustedRoot::parse(root.as_bytes()).map_err(|why| {
            Error::new(Code::Key, format!("{at} {why}"))
                .help("whoever runs the sigstore instance publishes the file, for the public one through TUF")
        })?;
        Ok(Self { identity, issuer: issuer.to_owned(), root })
    }

    fn names(&self, certificate: &Certificate<'_>) -> bool {
        certificate.issuer().as_ref() == Some(&self.issuer)
            && certificate.identities().iter().any(|identity| self.identity.matches(identity))
    }

    /// What proves that this identity signed; an error completes the sentence "the file ...".
    fn verify(
        &self,
        bundle: &Bundle,
        certificate: &Certificate<'_>,
        digest: &[u8; 32],
    ) -> Result<Verified, String> {
        let root = TrustedRoot::parse(self.root.as_bytes()).map_err(|why| {
            format!("cannot be verified: the root of {} in the file of trust {why}", self.identity)
        })?;
        let logged = log::logged_at(bundle, digest, &root)?;
        certificate.check(&root, logged)?;
        if !self.names(certificate) {
            return Err(format!(
                "is signed by {} (issuer {}), and you trust {} (issuer {})",
                listed(certificate),
                certificate.issuer().map_or_else(|| "none".to_owned(), |issuer| printable(&issuer)),
                self.identity,
                self.issuer
            ));
        }
        Ok(Verified { trusted: self.identity.clone(), logged })
    }
}

impl Sigstore {
    /// Checks the bundle `json` over `metadata` against `trusted`, one of which must have signed; without any, what can
    /// be checked at all. `at` names the bundle in messages.
    ///
    /// # Errors
    /// `H0311` if it is no bundle, or one of other bytes, or its certificate's key did not sign it; and, if identities
    /// are trusted, if it is not proven that one of them signed.
    pub fn check(json: &[u8], metadata: &[u8], at: &str, trusted: &[&SigstoreTrust]) -> Result<Self> {
        let wrong = |why: String| Error::new(Code::Signature, format!("{at} {why}"));
        let bundle = Bundle::parse(json).map_err(wrong)?;
        let digest: [u8; 32] = Sha256::digest(metadata).into();
        if bundle.digest.as_ref().is_some_and(|stated| stated[..] != digest) {
            return Err(wrong("is the signature of another metadata.json".to_owned()));
        }
        let certificate = Certificate::parse(&bundle.leaf).map_err(wrong)?;
        if !certificate.signed(metadata, &bundle.signature) {
            return Err(wrong("was not made with the key of its certificate".to_owned()));
        }
        let verified = match trusted {
            [] => None,
            // The identity that it claims is tried first, so that an error is about that one.
            trusted => {
                let (named, others): (Vec<&SigstoreTrust>, Vec<_>) =
                    trusted.iter().copied().partition(|trusted| trusted.names(&certificate));
                let mut tried =
                    named.into_iter().chain(others).map(|t| t.verify(&bundle, &certificate, &digest));
                let first = tried.next().expect("there is one");
                let found = first.or_else(|why| tried.find_map(Result::ok).ok_or(why));
                Some(found.map_err(|why| {
                    wrong(why).help(
                        "the bundle is not proof of who signed; `kernels-cli trust ls` shows whom you trust, and \
                         `kernels-cli trust sigstore` updates a trusted root",
                    )
                })?)
            }
        };
        Ok(Self {
            claims: certificate.identities().iter().map(|claim| printable(claim)).collect(),
            issuer: certificate.issuer().map(|issuer| printable(&issuer)),
            unchecked: verified
                .is_none()
                .then_some("that Fulcio issued the certificate, and that Rekor logged the signature"),
            verified,
        })
    }
}

/// The identities of `certificate` for a message.
fn listed(certificate: &Certificate<'_>) -> String {
    match &certificate.identities()[..] {
        [] => "nobody".to_owned(),
        identities => printable(&identities.join(", ")),
    }
}
