//! What an entry of Rekor proves: that a signature was logged, and when. Python's `sigstore` checks the same.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::hub::printable;

use super::bundle::{Base64, Bundle, Entry, InclusionProof};
use super::root::{Log, TrustedRoot};

type Hash = [u8; 32];

/// The body of an entry for a signature of a file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    api_version: String,
    kind: String,
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    data: Data,
    signature: Signature,
}

#[derive(Deserialize)]
struct Data {
    hash: HashOf,
}

#[derive(Deserialize)]
struct HashOf {
    algorithm: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Signature {
    content: Base64,
    public_key: PublicKey,
}

#[derive(Deserialize)]
struct PublicKey {
    /// The certificate in PEM.
    content: Base64,
}

/// When the signature of `bundle`, of a file with the SHA-256 `digest`, was logged: seconds since 1970.
///
/// An error completes the sentence "the file ...".
pub(super) fn logged_at(bundle: &Bundle, digest: &Hash, root: &TrustedRoot) -> Result<u64, String> {
    let [entry] = &bundle.entries[..] else {
        return Err(format!(
            "has {} entries of a transparency log: exactly one proves when it was signed",
            bundle.entries.len()
        ));
    };
    let Some(promise) = entry.inclusion_promise.as_ref().filter(|_| entry.integrated_time > 0) else {
        return Err(
            "has no time of signing that can be proven: its log entry has no signed entry timestamp, and \
                    RFC 3161 timestamps (Rekor v2) are not read"
                .to_owned(),
        );
    };
    let log = root.log(&entry.log_id.key_id, entry.integrated_time)?;
    if !log.signed(promised(entry).as_bytes(), &promise.signed_entry_timestamp) {
        return Err("has a signed entry timestamp that is not the log's".to_owned());
    }
    let Some(proof) = &entry.inclusion_proof else {
        return Err("has a log entry without a proof of inclusion".to_owned());
    };
    if Some(&proof.root_hash[..])
        != included_in(&entry.canonicalized_body, proof).as_ref().map(|hash| &hash[..])
    {
        return Err("has a proof of inclusion that does not lead to its rootHash".to_owned());
    }
    check_checkpoint(proof, &entry.log_id.key_id, log)?;
    check_body(entry, bundle, digest)?;
    Ok(entry.integrated_time)
}

/// What a signed entry timestamp signs: canonical JSON (RFC 8785), in which none of these values needs an escape.
fn promised(entry: &Entry) -> String {
    format!(
        r#"{{"body":"{}","integratedTime":{},"logID":"{}","logIndex":{}}}"#,
        STANDARD.encode(&entry.canonicalized_body),
        entry.integrated_time,
        hex::encode(&entry.log_id.key_id),
        entry.log_index
    )
}

/// The root of the Merkle tree (RFC 6962, section 2.1.1) in which `proof` places `body`, if it has the right length.
fn included_in(body: &[u8], proof: &InclusionProof) -> Option<Hash> {
    let (mut index, mut last) = (proof.log_index, proof.tree_size.checked_sub(1)?);
    if index > last {
        return None;
    }
    let mut hash: Hash = Sha256::new().chain_update([0]).chain_update(body).finalize().into();
    for sibling in &proof.hashes {
        let sibling: &Hash = sibling.0.as_slice().try_into().ok()?;
        if last == 0 {
            return None;
        }
        if index % 2 == 1 || index == last {
            hash = parent(sibling, &hash);
            // A node that is last in its row and has no sibling moves up as it is.
            while index % 2 == 0 && index > 0 {
                (index, last) = (index / 2, last / 2);
            }
        } else {
            hash = parent(&hash, sibling);
        }
        (index, last) = (index / 2, last / 2);
    }
    (last == 0).then_some(hash)
}

fn parent(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

/// Whether the log vouches for the root of the tree, in a signed note.
fn check_checkpoint(proof: &InclusionProof, id: &[u8], log: &Log) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("has a checkpoint {why}"));
    let Some(checkpoint) = &proof.checkpoint else {
        return Err("has a proof of inclusion without a checkpoint".to_owned());
    };
    let Some(end) = checkpoint.envelope.find("\n\n") else { return wrong("that is not a signed note") };
    let (note, signatures) = (&checkpoint.envelope[..=end], &checkpoint.envelope[end + 2..]);
    // Others may sign too; the first four bytes say whose a signature is.
    let signed = signatures.lines().any(|line| {
        let signature = line.strip_prefix("\u{2014} ").and_then(|line| line.split_once(' '));
        let signature = signature.and_then(|(_, base64)| STANDARD.decode(base64).ok());
        signature
            .as_deref()
            .and_then(|bytes| bytes.split_at_checked(4))
            .is_some_and(|(hint, signature)| id.starts_with(hint) && log.signed(note.as_bytes(), signature))
    });
    if !signed {
        return wrong("that the log did not sign");
    }
    let mut lines = note.lines().skip(1);
    let size = lines.next().and_then(|size| size.parse().ok());
    let root = lines.next().and_then(|root| STANDARD.decode(root).ok());
    match size == Some(proof.tree_size) && root.as_ref() == Some(&proof.root_hash) {
        true => Ok(()),
        false => wrong("of another tree than its proof of inclusion"),
    }
}

/// Whether the log's entry is of this signature, and not of some other (CVE-2022-36056).
fn check_body(entry: &Entry, bundle: &Bundle, digest: &Hash) -> Result<(), String> {
    let kind = &entry.kind_version;
    let body: Body = serde_json::from_slice(&entry.canonicalized_body).map_err(|e| {
        format!("has a log entry whose body is no hashedrekord: {}", printable(&e.to_string()))
    })?;
    if [&*kind.kind, &*body.kind] != ["hashedrekord"; 2]
        || [&*kind.version, &*body.api_version] != ["0.0.1"; 2]
    {
        return Err("has a log entry of another kind than hashedrekord 0.0.1".to_owned());
    }
    let other = |of: &str| Err(format!("has a log entry of another {of}"));
    let (hash, signature) = (body.spec.data.hash, body.spec.signature);
    if hash.algorithm != "sha256" || hash.value != hex::encode(digest) {
        return other("metadata.json");
    }
    if signature.content.0 != bundle.signature {
        return other("signature");
    }
    match CertificateDer::from_pem_slice(&signature.public_key.content.0) {
        Ok(certificate) if certificate == bundle.leaf => Ok(()),
        _ => other("certificate"),
    }
}
