//! A certificate that Fulcio issued: whom it names, what it is for, who signed it, and that it was made public.

use std::time::Duration;

use der::asn1::{Any, AnyRef, ObjectIdentifier, OctetStringRef, Utf8StringRef};
use der::{Decode, Encode, Reader, SliceReader};
use rustls_pki_types::{CertificateDer, UnixTime};
use sha2::{Digest, Sha256};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{ExtendedKeyUsage, KeyUsage, SubjectAltName};
use x509_cert::{TbsCertificate, der};

use super::root::{Authority, TrustedRoot};

/// What code is signed with.
const CODE_SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.3");
/// Who told Fulcio the identity, as a UTF8String; and as it was first written, without a tag.
const ISSUER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.8");
const FIRST_ISSUER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.1");
/// The signed certificate timestamps of RFC 6962, section 3.3.
const TIMESTAMPS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.11129.2.4.2");

/// A certificate that was read. Errors of its methods complete the sentence "the file ...".
pub(super) struct Certificate<'a> {
    der: &'a CertificateDer<'a>,
    tbs: TbsCertificate,
}

impl<'a> Certificate<'a> {
    pub(super) fn parse(der: &'a CertificateDer<'a>) -> Result<Self, String> {
        let wrong = |why: &dyn std::fmt::Display| format!("has a certificate that cannot be read: {why}");
        webpki::EndEntityCert::try_from(der).map_err(|e| wrong(&e))?;
        let certificate = x509_cert::Certificate::from_der(der).map_err(|e| wrong(&e))?;
        Ok(Self { der, tbs: certificate.tbs_certificate().clone() })
    }

    /// The addresses of workflows and of people that it names.
    pub(super) fn identities(&self) -> Vec<String> {
        let names = self.tbs.get_extension::<SubjectAltName>().ok().flatten();
        let names = names.into_iter().flat_map(|(_, names)| names.0);
        let text = |name| match name {
            GeneralName::UniformResourceIdentifier(name) | GeneralName::Rfc822Name(name) => {
                Some(name.to_string())
            }
            _ => None,
        };
        names.filter_map(text).collect()
    }

    /// Who told Fulcio the identity.
    pub(super) fn issuer(&self) -> Option<String> {
        match self.extension(ISSUER) {
            Some(value) => Utf8StringRef::from_der(value).ok().map(|issuer| issuer.as_str().to_owned()),
            None => self.extension(FIRST_ISSUER).and_then(|value| String::from_utf8(value.to_vec()).ok()),
        }
    }

    /// Whether its key made `signature` of `message`.
    pub(super) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        use webpki::aws_lc_rs::{ECDSA_P256_SHA256, ECDSA_P384_SHA256, ECDSA_P384_SHA384};
        webpki::EndEntityCert::try_from(self.der).is_ok_and(|certificate| {
            [ECDSA_P256_SHA256, ECDSA_P384_SHA256, ECDSA_P384_SHA384]
                .iter()
                .any(|algorithm| certificate.verify_signature(*algorithm, message, signature).is_ok())
        })
    }

    /// Whether an authority of `root` issued it for signing code, it counted at `time`, and a log made it public.
    pub(super) fn check(&self, root: &TrustedRoot, time: u64) -> Result<(), String> {
        let usage = self.tbs.get_extension::<KeyUsage>().ok().flatten();
        let purposes = self.tbs.get_extension::<ExtendedKeyUsage>().ok().flatten();
        if !usage.is_some_and(|(_, usage)| usage.digital_signature())
            || !purposes.is_some_and(|(_, purposes)| purposes.0.contains(&CODE_SIGNING))
        {
            return Err("has a certificate that is not for signing code".to_owned());
        }
        if !valid_at(&self.tbs, Duration::from_secs(time)) {
            return Err("was signed when its certificate was not valid".to_owned());
        }
        let mut why = "your trusted root has no authority for that time".to_owned();
        for authority in root.authorities.iter().filter(|authority| authority.valid.covers(time)) {
            match self.issued_by(authority, time) {
                Ok(issuer) => return self.check_transparency(root, &issuer),
                Err(reason) => why = reason,
            }
        }
        Err(format!("has a certificate that no authority of your trusted root issued: {why}"))
    }

    /// The SHA-256 of the key of its issuer, if that is `authority`'s.
    fn issued_by(&self, authority: &Authority, time: u64) -> Result<[u8; 32], String> {
        // webpki takes an anchor for valid at all times.
        let root = x509_cert::Certificate::from_der(&authority.root).map_err(|e| e.to_string())?;
        let at = Duration::from_secs(time);
        if !valid_at(root.tbs_certificate(), at) {
            return Err("the authority's own certificate was not valid at the time".to_owned());
        }
        let anchor = webpki::anchor_from_trusted_cert(&authority.root).map_err(|e| e.to_string())?;
        let certificate = webpki::EndEntityCert::try_from(self.der).map_err(|e| e.to_string())?;
        // An authority's own certificates need not say what they are for; this one says it, as was checked.
        let usage = webpki::KeyUsage::required_if_present(CODE_SIGNING.as_bytes());
        let anchors = [anchor];
        let path = certificate
            .verify_for_usage(
                webpki::ALL_VERIFICATION_ALGS,
                &anchors,
                &authority.intermediates,
                UnixTime::since_unix_epoch(at),
                usage,
                None,
                None,
            )
            .map_err(|e| e.to_string())?;
        Ok(Sha256::digest(path.issuer_spki()).into())
    }

    /// Whether a log of certificates has signed that it knows this one: RFC 6962, section 3.2.
    fn check_transparency(&self, root: &TrustedRoot, issuer: &[u8; 32]) -> Result<(), String> {
        let wrong = "has a certificate whose signed certificate timestamp";
        let timestamp = self.extension(TIMESTAMPS).and_then(Timestamp::parse);
        let Some(timestamp) = timestamp else { return Err(format!("{wrong} is missing or cannot be read")) };
        let log = root.certificate_log(timestamp.log, timestamp.milliseconds / 1000)?;
        let logged = self.before_logging().map_err(|e| format!("{wrong} cannot be compared: {e}"))?;
        let Some(length) = u32::try_from(logged.len()).ok().filter(|length| *length < 1 << 24) else {
            return Err(format!("{wrong} is of too much"));
        };
        let mut message = vec![0, 0];
        message.extend(timestamp.milliseconds.to_be_bytes());
        message.extend([0, 1]);
        message.extend(issuer);
        message.extend(&length.to_be_bytes()[1..]);
        message.extend(logged);
        message.extend(timestamp.extensions);
        match log.signed(&message, timestamp.signature) {
            true => Ok(()),
            false => Err(format!("{wrong} is not the log's")),
        }
    }

    /// What the log was shown: the same without its timestamp, which did not exist yet.
    fn before_logging(&self) -> der::Result<Vec<u8>> {
        let parts = Vec::<AnyRef<'_>>::from_der(self.der)?;
        let tbs = parts.first().ok_or(der::ErrorKind::Failed)?;
        let mut reader = SliceReader::new(tbs.value())?;
        let mut rest = Vec::new();
        while !reader.is_finished() {
            let part = AnyRef::decode(&mut reader)?;
            // The extensions are the last, as [3].
            if reader.is_finished() {
                let kept: Vec<_> = self.tbs.extensions().into_iter().flatten().collect();
                let kept: Vec<_> = kept.into_iter().filter(|e| e.extn_id != TIMESTAMPS).cloned().collect();
                Any::new(part.header().tag(), kept.to_der()?)?.encode_to_vec(&mut rest)?;
            } else {
                part.encode_to_vec(&mut rest)?;
            }
        }
        Any::new(der::Tag::Sequence, rest)?.to_der()
    }

    /// The value of the extension `id`, if there is exactly one.
    fn extension(&self, id: ObjectIdentifier) -> Option<&[u8]> {
        let mut found = self.tbs.extensions()?.iter().filter(|extension| extension.extn_id == id);
        let value = found.next()?.extn_value.as_bytes();
        found.next().is_none().then_some(value)
    }
}

/// Whether a certificate counts at `time`, counted from 1970.
fn valid_at(certificate: &TbsCertificate, time: Duration) -> bool {
    let validity = certificate.validity();
    (validity.not_before.to_unix_duration()..=validity.not_after.to_unix_duration()).contains(&time)
}

/// A signed certificate timestamp.
struct Timestamp<'a> {
    log: &'a [u8],
    milliseconds: u64,
    /// With their length before them.
    extensions: &'a [u8],
    signature: &'a [u8],
}

impl<'a> Timestamp<'a> {
    /// The timestamp in the value of an extension, if it is the only one, of version 1, and of SHA-256.
    fn parse(extension: &'a [u8]) -> Option<Self> {
        let list = <&OctetStringRef>::from_der(extension).ok()?.as_bytes();
        let (list, after) = counted(list)?;
        let (timestamp, others) = counted(list)?;
        let (version, rest) = timestamp.split_at_checked(1)?;
        let (log, rest) = rest.split_at_checked(32)?;
        let (milliseconds, rest) = rest.split_at_checked(8)?;
        let (extensions, after_them) = counted(rest)?;
        let (algorithm, signed) = after_them.split_at_checked(2)?;
        let (signature, end) = counted(signed)?;
        let whole = after.is_empty() && others.is_empty() && end.is_empty();
        (whole && version == [0] && algorithm[0] == 4).then_some(Self {
            log,
            milliseconds: u64::from_be_bytes(milliseconds.try_into().ok()?),
            extensions: &rest[..2 + extensions.len()],
            signature,
        })
    }
}

/// The bytes that a length of two bytes announces, and those after them.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(2)?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(length.try_into().ok()?)))
}
