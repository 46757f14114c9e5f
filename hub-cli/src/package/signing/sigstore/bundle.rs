//! The JSON of a sigstore bundle: what it may hold, in which sizes. Everything in it is a stranger's.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::hub::printable;

/// The largest bundle, and the largest trusted root, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The layouts that are known, which are one for what is read here.
const MEDIA_TYPES: [&str; 4] = [
    "application/vnd.dev.sigstore.bundle+json;version=0.1",
    "application/vnd.dev.sigstore.bundle+json;version=0.2",
    "application/vnd.dev.sigstore.bundle+json;version=0.3",
    "application/vnd.dev.sigstore.bundle.v0.3+json",
];

/// A bundle over one file: a certificate, a signature, and entries of transparency logs.
pub(super) struct Bundle {
    /// The certificate whose key signed.
    pub(super) leaf: CertificateDer<'static>,
    /// The SHA-256 that the signer stated; it need not be there.
    pub(super) digest: Option<Vec<u8>>,
    pub(super) signature: Vec<u8>,
    pub(super) entries: Vec<Entry>,
}

/// An entry of a transparency log, as it says of itself.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    #[serde(deserialize_with = "integer")]
    pub(super) log_index: u64,
    pub(super) log_id: LogId,
    pub(super) kind_version: KindVersion,
    /// Seconds since 1970. Rekor v2 leaves it out, or 0.
    #[serde(default, deserialize_with = "integer")]
    pub(super) integrated_time: u64,
    pub(super) inclusion_promise: Option<InclusionPromise>,
    pub(super) inclusion_proof: Option<InclusionProof>,
    #[serde(deserialize_with = "bytes")]
    pub(super) canonicalized_body: Vec<u8>,
}

/// The id of a log: for one that signs promises, the SHA-256 of its key.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogId {
    #[serde(deserialize_with = "bytes")]
    pub(super) key_id: Vec<u8>,
}

#[derive(Deserialize)]
pub(super) struct KindVersion {
    pub(super) kind: String,
    pub(super) version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InclusionPromise {
    #[serde(deserialize_with = "bytes")]
    pub(super) signed_entry_timestamp: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InclusionProof {
    /// The index in this tree, which differs from the entry's where a log has several.
    #[serde(default, deserialize_with = "integer")]
    pub(super) log_index: u64,
    #[serde(deserialize_with = "bytes")]
    pub(super) root_hash: Vec<u8>,
    #[serde(deserialize_with = "integer")]
    pub(super) tree_size: u64,
    #[serde(default)]
    pub(super) hashes: Vec<Base64>,
    pub(super) checkpoint: Option<Checkpoint>,
}

#[derive(Deserialize)]
pub(super) struct Checkpoint {
    /// A signed note: a text, an empty line, and lines with signatures.
    pub(super) envelope: String,
}

/// Bytes in a list.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Base64(#[serde(deserialize_with = "bytes")] pub(super) Vec<u8>);

/// A certificate in DER.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Certificate {
    #[serde(deserialize_with = "bytes")]
    pub(super) raw_bytes: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json {
    media_type: String,
    verification_material: Material,
    message_signature: Option<MessageSignature>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    certificate: Option<Certificate>,
    x509_certificate_chain: Option<Chain>,
    #[serde(default)]
    tlog_entries: Vec<Entry>,
}

/// Certificates, the one that was asked for first.
#[derive(Deserialize)]
pub(super) struct Chain {
    pub(super) certificates: Vec<Certificate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageSignature {
    message_digest: Option<MessageDigest>,
    #[serde(deserialize_with = "bytes")]
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct MessageDigest {
    algorithm: String,
    #[serde(deserialize_with = "bytes")]
    digest: Vec<u8>,
}

impl Bundle {
    /// Reads a bundle; an error completes the sentence "the file ...".
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        if json.len() > MAX_BYTES {
            return Err(format!("is larger than {MAX_BYTES} bytes"));
        }
        // What is quoted is theirs.
        let no_bundle = |why: &dyn std::fmt::Display| {
            format!("is not a sigstore bundle: {}", printable(&why.to_string()))
        };
        let bundle: Json = serde_json::from_slice(json).map_err(|e| no_bundle(&e))?;
        if !MEDIA_TYPES.contains(&bundle.media_type.as_str()) {
            return Err(no_bundle(&format!("mediaType {:?} is not known", bundle.media_type)));
        }
        let Some(signed) = bundle.message_signature else {
            return Err(no_bundle(&"it has no messageSignature, which is the signature of a file"));
        };
        if signed.message_digest.as_ref().is_some_and(|digest| digest.algorithm != "SHA2_256") {
            return Err("hashes with another algorithm than SHA2_256".to_owned());
        }
        let material = bundle.verification_material;
        // Only the first counts: the others would have to be in the trusted root, and are taken from there.
        let leaf = match (material.certificate, material.x509_certificate_chain) {
            (Some(leaf), None) => Some(leaf),
            (None, Some(chain)) => chain.certificates.into_iter().next(),
            _ => None,
        };
        let leaf = leaf.ok_or_else(|| no_bundle(&"it has no certificate, or two"))?;
        Ok(Self {
            leaf: CertificateDer::from(leaf.raw_bytes),
            digest: signed.message_digest.map(|digest| digest.digest),
            signature: signed.signature,
            entries: material.tlog_entries,
        })
    }
}

/// Bytes as protobuf's JSON writes them.
pub(super) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(from)?).map_err(|e| D::Error::custom(format!("wrong base64: {e}")))
}

/// A 64-bit integer as protobuf's JSON writes it, which is a string, or as a number.
fn integer<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Integer {
        Text(String),
        Number(u64),
    }
    match Integer::deserialize(from)? {
        Integer::Number(number) => Ok(number),
        Integer::Text(text) => text.parse().map_err(|_| D::Error::custom(format!("{text:?} is no number"))),
    }
}
