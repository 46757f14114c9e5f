"""Which calls to the clients were made, and looked at: the suite promises a number of different ones.

A call counts under the client's own name for it, once it came back and an assertion after it in the same test has
passed; conftest.py tells of tests and assertions. Several calls of one function count once.
"""

CALLED, ASSERTED = set(), set()


def named(name, function):
    """Gives a function of the tests, which makes one call to a client, that call's name."""
    function.client_name = name
    return function


def came_back(function):
    CALLED.add(name_of(function))


def name_of(function):
    """What a client calls this function, or None for one of the tests' own, and one that the client keeps to itself."""
    if name := getattr(function, "client_name", None):
        return name
    package = (getattr(function, "__module__", None) or "").split(".")[0]
    public = package in ("huggingface_hub", "kernels") and not function.__name__.startswith("_")
    return f"{package} {function.__qualname__}" if public else None


def a_test_begins():
    CALLED.clear()


def an_assertion_passed():
    ASSERTED.update(CALLED - {None})
    CALLED.clear()
