"""Checks our signatures with Python's `cryptography`, and makes a sigstore bundle as its clients lay one out.

Arguments: the secret key's file, its public key, and the folder `build` of a signed package.
"""

import base64
import datetime
import hashlib
import json
import pathlib
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

key, public, build = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])

secret = serialization.load_pem_private_key(key.read_bytes(), password=None)
raw = secret.public_key().public_bytes_raw()
assert public == "ed25519:" + base64.b64encode(raw).decode(), public
files = sorted((build / "signatures").iterdir())
for file in files:
    signature = json.loads(file.read_text())
    assert signature["key"] == public
    message = (build / file.stem / "metadata.json").read_bytes()
    ed25519.Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(signature["signature"]), message)


def bundle(message):
    """A bundle over `message` with a certificate as Fulcio issues them, from nobody."""
    leaf = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    now = datetime.datetime.now(datetime.UTC)
    workflow = x509.UniformResourceIdentifier("https://github.com/acme/kernels/.github/workflows/build.yaml@refs/heads/main")
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(leaf.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(minutes=10))
        .add_extension(x509.SubjectAlternativeName([workflow]), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
        .sign(leaf, hashes.SHA256())
    )

    def encode(data):
        return base64.b64encode(data).decode()

    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {
            "certificate": {"rawBytes": encode(certificate.public_bytes(serialization.Encoding.DER))},
            "tlogEntries": [],
        },
        "messageSignature": {
            "messageDigest": {"algorithm": "SHA2_256", "digest": encode(hashlib.sha256(message).digest())},
            "signature": encode(leaf.sign(message, ec.ECDSA(hashes.SHA256()))),
        },
    }


bundles = {file.stem: bundle((build / file.stem / "metadata.json").read_bytes()) for file in files}
print(json.dumps({"signed": [file.stem for file in files], "bundles": bundles}))
