"""How a test calls a client: through the faults of the proxy, with a clear error each time, until it works."""

import httpx2
from conftest import MODE
from counted import came_back
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

# What a client may say when a response was spoiled.
FAULTS = (
    HfHubHTTPError, httpx2.HTTPError, LocalEntryNotFoundError, ConnectionError, OSError, RuntimeError, ValueError,
)  # fmt: skip


def is_fault(error):
    """Whether this is about the connection, and says so."""
    if isinstance(error, HfHubHTTPError):
        return error.response is None or error.response.status_code in (429, 500, 502)
    text = f"{error} {error.__cause__ or ''} {error.__context__ or ''}"
    words = ("proxy", "peer closed", "disconnected", "Consistency", "incomplete", "connection", "Hub", "retr", "uploading")
    return any(word in text for word in words)


def call(function, *args, done=(), into=lambda result: result, **kwargs):
    """The result of the call; of one that gives its result bit by bit, `into=list` makes all of it.

    With faults it is repeated, as a user would. The first attempt may then have worked and only its answer
    been lost: an error in `done`, such as "it exists already", says that.
    """
    lost = False
    for _ in range(8):
        try:
            result = into(function(*args, **kwargs))
            came_back(function)
            return result
        except FAULTS as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            if lost and status in done:
                came_back(function)
                return None
            if MODE != "faults" or not is_fault(error):
                raise
            assert str(error), "an error without a word"
            lost = True
    raise AssertionError(f"{function} failed eight times")


def raises(kind, function, *args, status=None, **kwargs):
    """Checks that the call fails with this error, and this HTTP status, whatever faults come before."""
    try:
        call(function, *args, **kwargs)
    except kind as error:
        assert status is None or error.response.status_code == status, error
        assert str(error)
        return error
    raise AssertionError(f"{function} did not raise {kind.__name__}")
