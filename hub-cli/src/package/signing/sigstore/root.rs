//! `trusted_root.json`: the certificate authorities and the keys of logs that a user trusts, each for a time.

use der::DateTime;
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer};
use serde::Deserialize;
use webpki::aws_lc_rs as algorithms;
use x509_cert::der;

use crate::hub::printable;

use super::bundle::{Chain, LogId, MAX_BYTES, bytes};

const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.trustedroot+json;version=0.1";
/// The most certificates of an authority: webpki follows no longer chain.
const MAX_CHAIN: usize = 7;

/// The roots of trust of one instance of sigstore.
pub(super) struct TrustedRoot {
    pub(super) authorities: Vec<Authority>,
    /// The logs of signatures: Rekor.
    logs: Vec<Log>,
    /// The logs of certificates: certificate transparency.
    certificate_logs: Vec<Log>,
}

/// A certificate authority: Fulcio.
pub(super) struct Authority {
    /// The certificate that ends every chain.
    pub(super) root: CertificateDer<'static>,
    pub(super) intermediates: Vec<CertificateDer<'static>>,
    pub(super) valid: Period,
}

/// The key of a log.
pub(super) struct Log {
    id: Vec<u8>,
    key: SubjectPublicKeyInfoDer<'static>,
    algorithm: &'static dyn SignatureVerificationAlgorithm,
    valid: Period,
}

/// From when to when something counts, in seconds since 1970, both included.
pub(super) struct Period(u64, u64);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json {
    media_type: String,
    #[serde(default)]
    tlogs: Vec<LogJson>,
    #[serde(default)]
    certificate_authorities: Vec<AuthorityJson>,
    #[serde(default)]
    ctlogs: Vec<LogJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthorityJson {
    cert_chain: Chain,
    valid_for: Option<PeriodJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogJson {
    public_key: KeyJson,
    log_id: LogId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyJson {
    #[serde(deserialize_with = "bytes")]
    raw_bytes: Vec<u8>,
    key_details: String,
    valid_for: Option<PeriodJson>,
}

#[derive(Deserialize)]
struct PeriodJson {
    start: Option<String>,
    end: Option<String>,
}

impl TrustedRoot {
    /// Reads a `trusted_root.json`; an error completes the sentence "the file ...".
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        if json.len() > MAX_BYTES {
            return Err(format!("is larger than {MAX_BYTES} bytes"));
        }
        let no_root = |why: &dyn std::fmt::Display| {
            format!("is not a trusted_root.json of sigstore: {}", printable(&why.to_string()))
        };
        let root: Json = serde_json::from_slice(json).map_err(|e| no_root(&e))?;
        if root.media_type != MEDIA_TYPE {
            return Err(no_root(&format!("mediaType is {:?}, not {MEDIA_TYPE:?}", root.media_type)));
        }
        let logs = |logs: Vec<LogJson>| {
            logs.into_iter().filter_map(|log| Log::new(log).transpose()).collect::<Result<Vec<_>, _>>()
        };
        let root = Self {
            authorities: root
                .certificate_authorities
                .into_iter()
                .map(Authority::new)
                .collect::<Result<_, _>>()
                .map_err(|e| no_root(&e))?,
            logs: logs(root.tlogs).map_err(|e| no_root(&e))?,
            certificate_logs: logs(root.ctlogs).map_err(|e| no_root(&e))?,
        };
        for (what, none) in [
            ("certificateAuthorities", root.authorities.is_empty()),
            ("tlogs with a key that can be used", root.logs.is_empty()),
            ("ctlogs with a key that can be used", root.certificate_logs.is_empty()),
        ] {
            if none {
                return Err(no_root(&format!("it has no {what}")));
            }
        }
        Ok(root)
    }

    /// The log of signatures `id`, if its key counts at `time`.
    pub(super) fn log(&self, id: &[u8], time: u64) -> Result<&Log, String> {
        Log::find(&self.logs, id, time).map_err(|why| format!("was logged {why}"))
    }

    /// The log of certificates `id`, if its key counts at `time`.
    pub(super) fn certificate_log(&self, id: &[u8], time: u64) -> Result<&Log, String> {
        Log::find(&self.certificate_logs, id, time)
            .map_err(|why| format!("has a certificate that was logged {why}"))
    }
}

impl Authority {
    fn new(json: AuthorityJson) -> Result<Self, String> {
        let mut chain: Vec<_> =
            json.cert_chain.certificates.into_iter().map(|c| CertificateDer::from(c.raw_bytes)).collect();
        if chain.len() > MAX_CHAIN {
            return Err(format!("an authority has more than {MAX_CHAIN} certificates"));
        }
        for certificate in &chain {
            webpki::anchor_from_trusted_cert(certificate)
                .map_err(|e| format!("a certificate of an authority cannot be read: {e}"))?;
        }
        let root = chain.pop().ok_or("an authority has no certificate")?;
        Ok(Self { root, intermediates: chain, valid: Period::new(json.valid_for)? })
    }
}

impl Log {
    /// `None` for a key of a kind that is not known here: it can prove nothing, and does no harm.
    fn new(json: LogJson) -> Result<Option<Self>, String> {
        let algorithm: &'static dyn SignatureVerificationAlgorithm = match &*json.public_key.key_details {
            "PKIX_ECDSA_P256_SHA_256" => algorithms::ECDSA_P256_SHA256,
            "PKIX_ECDSA_P384_SHA_384" => algorithms::ECDSA_P384_SHA384,
            "PKIX_ED25519" => algorithms::ED25519,
            _ => return Ok(None),
        };
        let key = SubjectPublicKeyInfoDer::from(json.public_key.raw_bytes);
        webpki::RawPublicKeyEntity::try_from(&key)
            .map_err(|e| format!("the key of a log cannot be read: {e}"))?;
        let valid = Period::new(json.public_key.valid_for)?;
        Ok(Some(Self { id: json.log_id.key_id, key, algorithm, valid }))
    }

    fn find<'a>(logs: &'a [Self], id: &[u8], time: u64) -> Result<&'a Self, &'static str> {
        let mut known = logs.iter().filter(|log| log.id == id).peekable();
        if known.peek().is_none() {
            return Err("in a log that your trusted root does not know");
        }
        known
            .find(|log| log.valid.covers(time))
            .ok_or("when your trusted root no longer trusted the log's key")
    }

    /// Whether `signature` is this log's, of `message`.
    pub(super) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        webpki::RawPublicKeyEntity::try_from(&self.key)
            .is_ok_and(|key| key.verify_signature(self.algorithm, message, signature).is_ok())
    }
}

impl Period {
    fn new(json: Option<PeriodJson>) -> Result<Self, String> {
        let Some(json) = json else { return Ok(Self(0, u64::MAX)) };
        let seconds = |time: Option<String>, otherwise| match time {
            Some(time) => parse_time(&time).ok_or_else(|| format!("{time:?} is no time in UTC")),
            None => Ok(otherwise),
        };
        Ok(Self(seconds(json.start, 0)?, seconds(json.end, u64::MAX)?))
    }

    pub(super) fn covers(&self, time: u64) -> bool {
        (self.0..=self.1).contains(&time)
    }
}

/// Seconds since 1970 of a time such as `2022-10-31T23:59:59.999Z`, as protobuf's JSON writes it.
fn parse_time(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.strip_suffix('Z')?.split_at_checked(19)?;
    if !(fraction.is_empty() || fraction.starts_with('.')) {
        return None;
    }
    let time: DateTime = format!("{seconds}Z").parse().ok()?;
    Some(time.unix_duration().as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_protobuf() {
        for (text, seconds) in [
            ("1970-01-01T00:00:01Z", Some(1)),
            ("2022-10-31T23:59:59.999Z", Some(1_667_260_799)),
            ("2022-10-31T23:59:59+01:00", None),
            ("2022-10-31T23:59:59,5Z", None),
            ("2022-13-31T23:59:59Z", None),
            ("20é", None),
            ("", None),
        ] {
            assert_eq!(parse_time(text), seconds, "{text}");
        }
    }
}
