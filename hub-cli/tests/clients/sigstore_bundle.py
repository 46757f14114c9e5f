"""Makes an instance of sigstore, bundles that it would sign, and spoiled ones; Python's `sigstore` judges each.

Arguments: the file that is signed. Prints the trusted root, and of each bundle its text and whether Python accepts it.
"""

import base64
import copy
import datetime
import hashlib
import json
import pathlib
import struct
import sys
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from sigstore.models import Bundle, TrustedRoot
from sigstore.verify import Verifier, policy

IDENTITY = "https://github.com/acme/kernels/.github/workflows/build.yaml@refs/heads/main"
ISSUER = "https://token.actions.githubusercontent.com"
NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
DAY = datetime.timedelta(days=1)
SHA256 = ec.ECDSA(hashes.SHA256())
SIGNED = pathlib.Path(sys.argv[1]).read_bytes()


def b64(data):
    return base64.b64encode(data).decode()


def der(certificate):
    return certificate.public_bytes(serialization.Encoding.DER)


def spki(key):
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def key_id(key):
    return hashlib.sha256(spki(key)).digest()


def name(text):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def builder(subject, issuer, key, start, end):
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def usage(**which):
    names = ["digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"]
    names += ["key_cert_sign", "crl_sign", "encipher_only", "decipher_only"]
    return x509.KeyUsage(**{name: which.get(name, False) for name in names})


class Instance:
    """A certificate authority like Fulcio, a log like Rekor, and a log of certificates."""

    def __init__(self):
        self.root, self.middle, self.rekor, self.ct = (ec.generate_private_key(ec.SECP256R1()) for _ in range(4))
        self.root_certificate = self.authority("root", self.root, "root", self.root, 1)
        self.middle_certificate = self.authority("middle", self.middle, "root", self.root, 0)

    def authority(self, subject, key, issuer, by, length):
        key_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        by_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key())
        return (
            builder(name(subject), name(issuer), key, NOW - 30 * DAY, NOW + 30 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=length), critical=True)
            .add_extension(usage(key_cert_sign=True, crl_sign=True), critical=True)
            .add_extension(key_id, critical=False)
            .add_extension(by_id, critical=False)
            .sign(by, hashes.SHA384())
        )

    def trusted_root(self):
        def log(key, url):
            valid = {"start": (NOW - 30 * DAY).strftime("%Y-%m-%dT%H:%M:%S.5Z")}
            details = {"rawBytes": b64(spki(key)), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": valid}
            return {
                "baseUrl": url,
                "hashAlgorithm": "SHA2_256",
                "publicKey": details,
                "logId": {"keyId": b64(key_id(key))},
            }

        chain = [{"rawBytes": b64(der(c))} for c in (self.middle_certificate, self.root_certificate)]
        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(self.rekor, "https://rekor.example")],
            "certificateAuthorities": [
                {
                    "subject": {"organization": "example", "commonName": "root"},
                    "uri": "https://fulcio.example",
                    "certChain": {"certificates": chain},
                    "validFor": {"start": (NOW - 30 * DAY).strftime("%Y-%m-%dT%H:%M:%SZ")},
                }
            ],
            "ctlogs": [log(self.ct, "https://ct.example")],
            "timestampAuthorities": [],
        }

    def certificate(self, key, identity=IDENTITY, issuer=ISSUER, purpose="CODE_SIGNING", ct=None, start=None):
        """A certificate for ten minutes; its signed certificate timestamp is made as RFC 6962 says."""
        start = start or NOW - datetime.timedelta(minutes=5)
        san = x509.RFC822Name(identity) if "://" not in identity else x509.UniformResourceIdentifier(identity)
        utf8 = bytes([0x0C, len(issuer)]) + issuer.encode()
        authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.middle.public_key())
        made = (
            builder(x509.Name([]), name("middle"), key, start, start + datetime.timedelta(minutes=10))
            .add_extension(usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([getattr(x509.ExtendedKeyUsageOID, purpose)]), critical=False)
            .add_extension(authority_id, critical=False)
            .add_extension(x509.SubjectAlternativeName([san]), critical=True)
            .add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8"), utf8), critical=False)
        )
        before = made.sign(self.middle, hashes.SHA256()).tbs_certificate_bytes
        time = int(start.timestamp() * 1000)
        length = struct.pack("!I", len(before))[1:]
        message = struct.pack("!BBQH", 0, 0, time, 1) + key_id(self.middle) + length + before + b"\0\0"
        signature = (ct or self.ct).sign(message, SHA256)
        sct = b"\0" + key_id(self.ct) + struct.pack("!QH", time, 0) + b"\4\3" + struct.pack("!H", len(signature)) + signature
        sct = struct.pack("!HH", len(sct) + 2, len(sct)) + sct
        value = bytes([4, len(sct)] if len(sct) < 128 else [4, 0x81, len(sct)]) + sct
        oid = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
        return made.add_extension(x509.UnrecognizedExtension(oid, value), critical=False).sign(self.middle, hashes.SHA256())

    def bundle(self, certificate, key, message=SIGNED, time=NOW, others=6, index=4, **spoil):
        """A bundle over `message`, the entry `index` of a log with `others` more."""
        signature = key.sign(message, SHA256)
        pem = spoil.get("logged_certificate", certificate).public_bytes(serialization.Encoding.PEM)
        digest = hashlib.sha256(spoil.get("logged_message", message)).hexdigest()
        body = {
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": digest}},
                "signature": {"content": b64(spoil.get("logged_signature", signature)), "publicKey": {"content": b64(pem)}},
            },
        }
        body = json.dumps(body, separators=(",", ":"), sort_keys=True).encode()
        entries = [b"other %d" % i for i in range(others)]
        entries.insert(index, body)
        hashed = [hashlib.sha256(b"\0" + entry).digest() for entry in entries]
        root, path = tree(hashed), proof(index, hashed)
        note = f"rekor.example - 1\n{len(entries)}\n{b64(root)}\n"
        by = spoil.get("checkpoint_by", self.rekor)
        note += "\n\u2014 rekor.example " + b64(key_id(self.rekor)[:4] + by.sign(note.encode(), SHA256)) + "\n"
        integrated = int(time.timestamp())
        promised = {
            "body": b64(body),
            "integratedTime": integrated,
            "logID": key_id(self.rekor).hex(),
            "logIndex": 1000 + index,
        }
        promised = json.dumps(promised, separators=(",", ":"), sort_keys=True).encode()
        promise = spoil.get("promise_by", self.rekor).sign(promised, SHA256)
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": b64(der(certificate))},
                "tlogEntries": [
                    {
                        "logIndex": str(1000 + index),
                        "logId": {"keyId": b64(key_id(self.rekor))},
                        "kindVersion": {"kind": "hashedrekord", "version": "0.0.1"},
                        "integratedTime": str(integrated),
                        "inclusionPromise": {"signedEntryTimestamp": b64(promise)},
                        "inclusionProof": {
                            "logIndex": str(index),
                            "rootHash": b64(root),
                            "treeSize": str(len(entries)),
                            "hashes": [b64(part) for part in path],
                            "checkpoint": {"envelope": note},
                        },
                        "canonicalizedBody": b64(body),
                    }
                ],
            },
            "messageSignature": {
                "messageDigest": {"algorithm": "SHA2_256", "digest": b64(hashlib.sha256(message).digest())},
                "signature": b64(signature),
            },
        }


def tree(hashed):
    """RFC 6962, section 2.1, to the letter."""
    if len(hashed) == 1:
        return hashed[0]
    split = 1 << (len(hashed) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + tree(hashed[:split]) + tree(hashed[split:])).digest()


def proof(index, hashed):
    """RFC 6962, section 2.1.1, to the letter."""
    if len(hashed) == 1:
        return []
    split = 1 << (len(hashed) - 1).bit_length() - 1
    if index < split:
        return [*proof(index, hashed[:split]), tree(hashed[split:])]
    return [*proof(index - split, hashed[split:]), tree(hashed[:split])]


us, them = Instance(), Instance()
key = ec.generate_private_key(ec.SECP256R1())
leaf = us.certificate(key)
good = us.bundle(leaf, key)


def spoiled(change, bundle=good):
    """`bundle` after `change` was made to its log entry."""
    bundle = copy.deepcopy(bundle)
    change(bundle["verificationMaterial"]["tlogEntries"][0], bundle)
    return bundle


def other_time(entry, _):
    entry["integratedTime"] = str(int(entry["integratedTime"]) + 1)


def wrong_proof(entry, _):
    hashes = entry["inclusionProof"]["hashes"]
    hashes[0] = hashes[1]


def longer_proof(entry, _):
    entry["inclusionProof"]["hashes"].append(b64(bytes(32)))


def other_tree(entry, _):
    # The note of another tree of the same log.
    entry["inclusionProof"]["checkpoint"] = us.bundle(leaf, key, others=2, index=1)["verificationMaterial"]["tlogEntries"][0][
        "inclusionProof"
    ]["checkpoint"]


def no_promise(entry, _):
    del entry["inclusionPromise"]


def no_proof(entry, _):
    del entry["inclusionProof"]


def other_kind(entry, _):
    entry["kindVersion"] = {"kind": "dsse", "version": "0.0.1"}


def unlogged(_, bundle):
    bundle["verificationMaterial"]["tlogEntries"] = []


def twice(entry, bundle):
    bundle["verificationMaterial"]["tlogEntries"] = [entry, entry]


def unknown_log(entry, _):
    entry["logId"]["keyId"] = b64(key_id(them.rekor))


def no_extension(certificate_key):
    """A certificate that no log of certificates has seen."""
    return us.certificate(certificate_key, ct=them.ct)


def bundles():
    yield "good", good
    for others, index in [(0, 0), (1, 0), (1, 1), (6, 6), (7, 7), (8, 8), (12, 11)]:
        yield f"good {index} of {others + 1}", us.bundle(leaf, key, others=others, index=index)
    yield (
        "good 0.1",
        good
        | {
            "mediaType": "application/vnd.dev.sigstore.bundle+json;version=0.1",
            "verificationMaterial": {
                "x509CertificateChain": {"certificates": [good["verificationMaterial"]["certificate"]]},
                "tlogEntries": good["verificationMaterial"]["tlogEntries"],
            },
        },
    )
    yield "other root", them.bundle(them.certificate(key), key)
    yield "other authority", us.bundle(them.certificate(key), key)
    yield "expired", us.bundle(leaf, key, time=NOW + DAY)
    yield "not yet valid", us.bundle(leaf, key, time=NOW - DAY)
    yield "wrong SET", us.bundle(leaf, key, promise_by=them.rekor)
    yield "SET of another time", spoiled(other_time)
    yield "unknown log", spoiled(unknown_log)
    yield "body of another digest", us.bundle(leaf, key, logged_message=b"other")
    yield "body of another signature", us.bundle(leaf, key, logged_signature=key.sign(b"other", SHA256))
    yield "body of another certificate", us.bundle(leaf, key, logged_certificate=us.certificate(key))
    yield "wrong proof", spoiled(wrong_proof)
    yield "longer proof", spoiled(longer_proof)
    yield "checkpoint of another key", us.bundle(leaf, key, checkpoint_by=them.rekor)
    yield "checkpoint of another tree", spoiled(other_tree)
    yield "other identity", us.bundle(us.certificate(key, identity="https://github.com/evil/x@refs/heads/main"), key)
    yield "other issuer", us.bundle(us.certificate(key, issuer="https://evil.example"), key)
    yield "no log entry", spoiled(unlogged)
    yield "two log entries", spoiled(twice)
    yield "no SET", spoiled(no_promise)
    yield "no proof", spoiled(no_proof)
    yield "other kind", spoiled(other_kind)
    yield "not for code", us.bundle(us.certificate(key, purpose="SERVER_AUTH"), key)
    yield "SCT of another key", us.bundle(no_extension(key), key)
    yield "other file", us.bundle(leaf, key, message=b"other")
    text = json.dumps(good)
    yield "truncated base64", text.replace('"signature": "', '"signature": "x')
    yield "truncated", text[: len(text) // 2]
    nested = "[" * 100_000 + "]" * 100_000
    yield "nested", text.replace('"tlogEntries": [', f'"tlogEntries": [{nested}, ')
    yield "large", json.dumps(good | {"padding": "x" * (1 << 20)})
    yield "empty certificate", text.replace(good["verificationMaterial"]["certificate"]["rawBytes"], "")


with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    file.write(json.dumps(us.trusted_root()))
    file.flush()
    verifier = Verifier(trusted_root=TrustedRoot.from_file(file.name))
trusted = policy.AllOf([policy.Identity(identity=IDENTITY), policy.OIDCIssuerV2(ISSUER)])


def python_accepts(text):
    try:
        verifier.verify_artifact(SIGNED, Bundle.from_json(text), trusted)
    except Exception as why:  # Of many kinds, and a RecursionError too.
        return f"{type(why).__name__}: {why}"[:200]
    return True


said = []
for what, bundle in bundles():
    text = bundle if isinstance(bundle, str) else json.dumps(bundle)
    said.append({"what": what, "bundle": text, "python": python_accepts(text)})
    assert not what.startswith("good") or said[-1]["python"] is True, said[-1]
person = us.bundle(us.certificate(key, identity="build@acme.example"), key)
other_root = them.trusted_root()
print(json.dumps({"root": us.trusted_root(), "other_root": other_root, "bundles": said, "person": json.dumps(person)}))
