//! `metadata.json.sigstore`: what can be said of a sigstore bundle without asking sigstore's services.
//!
//! Checked here: the bundle is of exactly this metadata.json, and the key of its certificate made the signature. Not
//! checked here, and said so: that Fulcio issued the certificate, and that Rekor logged it. `kernels verify-signature`
//! does both, for the identities that it knows.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::error::{Code, Error, Result};
use crate::hub::printable;

/// The largest bundle, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// A sigstore bundle whose signature matches. Its certificate is not known to be genuine.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Sigstore {
    /// The identities that the certificate names, such as the address of a GitHub workflow.
    pub claims: Vec<String>,
    /// What was not checked.
    pub unchecked: &'static str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    verification_material: Material,
    message_signature: MessageSignature,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    certificate: Option<Certificate>,
    x509_certificate_chain: Option<Chain>,
}

#[derive(Deserialize)]
struct Chain {
    certificates: Vec<Certificate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Certificate {
    raw_bytes: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageSignature {
    message_digest: MessageDigest,
    signature: String,
}

#[derive(Deserialize)]
struct MessageDigest {
    algorithm: String,
    digest: String,
}

impl Sigstore {
    /// Checks what can be checked offline of the bundle `json` over `metadata`; `at` names it in messages.
    ///
    /// # Errors
    /// `H0311` if it is no bundle, or one of other bytes, or its certificate's key did not sign it.
    pub fn check(json: &[u8], metadata: &[u8], at: &str) -> Result<Self> {
        let wrong = |why: String| Error::new(Code::Signature, format!("{at} {why}"));
        if json.len() > MAX_BYTES {
            return Err(wrong(format!("is larger than {MAX_BYTES} bytes")));
        }
        let no_bundle = |why: &dyn std::fmt::Display| wrong(format!("is not a sigstore bundle: {why}"));
        let bundle: Bundle = serde_json::from_slice(json).map_err(|e| no_bundle(&e))?;
        let decode = |base64: &str| STANDARD.decode(base64).map_err(|e| no_bundle(&e));
        let signed = &bundle.message_signature;
        if signed.message_digest.algorithm != "SHA2_256" {
            return Err(wrong("hashes with another algorithm than SHA2_256".to_owned()));
        }
        if decode(&signed.message_digest.digest)? != Sha256::digest(metadata)[..] {
            return Err(wrong("is the signature of another metadata.json".to_owned()));
        }
        let material = bundle.verification_material;
        let chain = material.x509_certificate_chain.into_iter().flat_map(|chain| chain.certificates);
        let leaf = material.certificate.into_iter().chain(chain).next();
        let leaf = leaf.ok_or_else(|| no_bundle(&"it has no certificate"))?;
        let der = CertificateDer::from(decode(&leaf.raw_bytes)?);
        let certificate = webpki::EndEntityCert::try_from(&der).map_err(|e| no_bundle(&e))?;
        let signature = decode(&signed.signature)?;
        let algorithms = [webpki::aws_lc_rs::ECDSA_P256_SHA256, webpki::aws_lc_rs::ECDSA_P384_SHA384];
        if !algorithms.iter().any(|a| certificate.verify_signature(*a, metadata, &signature).is_ok()) {
            return Err(wrong("was not made with the key of its certificate".to_owned()));
        }
        Ok(Self {
            claims: certificate.valid_uri_names().map(printable).collect(),
            unchecked: "that Fulcio issued the certificate, and that Rekor logged the signature",
        })
    }
}
