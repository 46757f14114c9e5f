"""Object stores on this machine: moto's S3, and Azurite, Microsoft's emulator of Azure's blobs.

Each has one bucket, empty, called `hub`.
"""

import base64
import contextlib
import email.utils
import hashlib
import hmac
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

# Serves S3 on a free port until its standard input ends.
MOTO = """
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
input()
"""
# The account of every Azurite, as its documentation gives it.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextlib.contextmanager
def s3():
    """The URL of a folder in the bucket, and the variables with which a client reaches it."""
    pytest.importorskip("moto.server")
    server = subprocess.Popen([sys.executable, "-c", MOTO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    endpoint = f"http://127.0.0.1:{server.stdout.readline().strip()}"
    request = urllib.request.Request(f"{endpoint}/hub", method="PUT")
    request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request")
    urllib.request.urlopen(request).close()
    yield "s3://hub/kernels", {
        "AWS_ENDPOINT": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
    }  # fmt: skip
    server.kill()


@contextlib.contextmanager
def azure():
    """The same for Azure, if `npm install --global azurite` was run on this machine."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("there is no azurite-blob on PATH")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flags = ["--blobPort", str(port), "--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
    server = subprocess.Popen([program, *flags], stdout=subprocess.DEVNULL)
    for _ in range(300):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            break
        time.sleep(0.1)
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    create_container(endpoint)
    yield "az://hub/kernels", {
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        "AZURE_STORAGE_ENDPOINT": endpoint, "AZURE_ALLOW_HTTP": "true",
    }  # fmt: skip
    server.kill()


def create_container(endpoint):
    """Makes the container `hub`, signed with the account's key ("Authorize with Shared Key" in Azure's REST reference)."""
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = [*(f"{name}:{value}" for name, value in headers.items()), f"/{ACCOUNT}/{ACCOUNT}/hub", "restype:container"]
    text = "PUT" + "\n" * 12 + "\n".join(lines)
    signature = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"
    request = urllib.request.Request(f"{endpoint}/hub?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(request).close()
