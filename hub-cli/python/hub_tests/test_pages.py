"""The hub's pages in a real browser: what a visitor sees, finds and copies, and that nothing of a package runs there.

It needs Chromium and its driver, which `./x test` installs; without them this test is skipped.
"""

import hashlib
import json
import shutil
import subprocess
from urllib.parse import urlsplit

import pytest
from conftest import CLI, MODE
from huggingface_hub import CommitOperationAdd, HfApi

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.expected_conditions import staleness_of  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(MODE != "plain", reason="the pages have no pages, and the proxy is not for browsers"),
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="Chromium is not installed"),
]
REPO, OTHER, SECRET, KIND = "acme/toy", "stranger/other", "acme/secret", {"repo_type": "kernel"}
SWITCHES = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--window-size=1200,900",
]  # fmt: skip
# Runs in any place that takes it for HTML, and would show.
EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
MODULE = b"ML\xefR" + bytes(4092)


def index(doc):
    """An index.json with the op `toy`, which runs on two generations."""
    module = {
        "file": "mosaic/toy.mlirbc", "sha256": hashlib.sha256(MODULE).hexdigest(), "bytes": len(MODULE), "kernel": "toy",
        "dtypes": {"T": "bfloat16"}, "tile": {"bm": 8}, "demands": [["==", ["mod", "k", 128], 0]],
        "operands": [{"expr": ["ceildiv", "m", 8]}, {"argument": "x"}], "results": ["out"], "vmem_bytes": 4096,
        "custom_call_config": {"serialization_format": 1}, "backend_config": {}, "generations": ["v5e", "v6e"],
    }  # fmt: skip
    array = {"dtype": "T", "shape": ["m", "k"]}
    op = {
        "doc": doc, "dims": ["m", "k"], "arguments": [{"name": "x", **array}], "results": [{"name": "out", **array}],
        "modules": [module],
    }  # fmt: skip
    return json.dumps({"schema": 1, "mosaic_version": 15, "ops": {"toy": op}}).encode()


@pytest.fixture(scope="module")
def site(hub):
    """A hub whose visitors must show a token to write, or to see what is private; returns its address."""
    address = hub.serve("pages", "--trust", "acme")
    user = ["--user", "alice", "--scope", "write", "--json"]
    created = subprocess.run(
        [CLI, "hub", "token", "create", "--root", hub.scratch / "pages", *user], check=True, capture_output=True, text=True
    )
    for owner in ("acme", "stranger"):
        member = [CLI, "hub", "owner", owner, "--root", hub.scratch / "pages", "--member", "alice"]
        subprocess.run(member, check=True, capture_output=True)
    api = HfApi(endpoint=address, token=json.loads(created.stdout)["token"])
    for repo, versions, doc in [(REPO, (1, 2), "Copies."), (OTHER, (1,), EVIL)]:
        api.create_repo(repo, **KIND)
        card = f"---\nlibrary_name: kernels\n---\n{EVIL}\n".encode()
        api.upload_file(path_or_fileobj=card, path_in_repo="README.html", repo_id=repo, **KIND)
        for version in versions:
            api.create_branch(repo, branch=f"v{version}", **KIND)
            files = {"index.json": index(doc), "mosaic/toy.mlirbc": MODULE, "__init__.py": b"__all__ = []\n"}
            files = [CommitOperationAdd(f"build/torch-tpu/{name}", content) for name, content in files.items()]
            api.create_commit(repo, files, commit_message=f"toy {version}", revision=f"v{version}", **KIND)
    api.create_repo(SECRET, private=True, **KIND)
    assert api.repo_info(SECRET, **KIND).private
    change = [CommitOperationAdd("notes.txt", b"")]
    api.create_commit(OTHER, change, commit_message=EVIL, commit_description=EVIL, create_pr=True, **KIND)
    return address


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Chromium with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in [*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # With both paths given, Selenium looks for nothing on the network.
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def visit(site, browser):
    """Opens a page of the hub. In the end, nothing came from elsewhere and the console is empty."""
    browser.get_log("performance"), browser.get_log("browser")

    def get(path):
        browser.get(site + path)
        return browser

    yield get
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    asked = [urlsplit(url) for url in asked]
    # The browser's own first page is made of `chrome:` and `data:`.
    assert {url.netloc for url in asked if url.scheme not in ("chrome", "data")} == {urlsplit(site).netloc}, asked
    assert browser.get_log("browser") == []


def texts(browser, selector):
    return [element.text for element in browser.find_elements(By.CSS_SELECTOR, selector)]


def follow(browser, link):
    """Clicks the link with this text, and waits for the page that it leads to."""
    leave(browser, browser.find_element(By.LINK_TEXT, link).click)


def search(browser, words):
    field = browser.find_element(By.NAME, "search")
    field.clear()
    leave(browser, lambda: field.send_keys(words, Keys.ENTER))


def leave(browser, act):
    page = browser.find_element(By.TAG_NAME, "html")
    act()
    WebDriverWait(browser, 30).until(staleness_of(page))


def test_a_visitor_finds_a_kernel_and_its_versions(visit):
    browser = visit("/")
    rows = texts(browser, "#kernels tbody tr")
    assert len(rows) == 2 and rows[0].startswith(f"{REPO} trusted v1 v2 4.9 KB") and rows[1].startswith(f"{OTHER} v1"), rows
    follow(browser, REPO)
    assert browser.find_element(By.TAG_NAME, "h1").text == REPO
    assert texts(browser, "h2") == ["Version v2", "Version v1"]
    op = ["toy(x: T[m, k]) -> (out: T[m, k])\nCopies.", "v5e v6e", "1 module, 4.1 KB"]
    assert texts(browser, ".ops tbody td") == op * 2
    assert texts(browser, "h2 + p + p") == ["torch-tpu 4.8 KB"] * 2
    follow(browser, "4 files")
    files = [f"build/torch-tpu/{name}" for name in ("__init__.py", "index.json", "mosaic/toy.mlirbc")]
    assert texts(browser, "#files td a") == ["README.html", *files]
    follow(browser, "Kernels")
    assert texts(browser, "#kernels tbody tr") == rows


def test_one_click_selects_what_is_to_be_copied(visit, site):
    browser = visit(f"/kernels/{REPO}")
    wanted = {
        "snippet": f'from kernels import get_kernel\n\nkernel = get_kernel("{REPO}", version=2)',
        "command": f"HF_ENDPOINT={site} kernels-cli get {REPO}@v2",
    }
    for name, text in wanted.items():
        visit(f"/kernels/{REPO}")
        browser.find_element(By.ID, name).click()
        ActionChains(browser).key_down(Keys.CONTROL).send_keys("c").key_up(Keys.CONTROL).perform()
        browser.get("data:text/html,<textarea></textarea>")
        paper = browser.find_element(By.TAG_NAME, "textarea")
        paper.send_keys(Keys.CONTROL, "v")
        assert paper.get_property("value").strip() == text
    visit(f"/kernels/{OTHER}")
    assert f'trust_remote_code=["{OTHER}"]' in texts(browser, "#snippet")[0]


def test_the_search_finds_by_name(visit):
    browser = visit("/")
    search(browser, "toy")
    assert texts(browser, "#kernels tbody td a") == [REPO]
    assert browser.find_element(By.NAME, "search").get_property("value") == "toy"
    search(browser, EVIL)
    assert f"No kernel that you may see has {EVIL} in its name." in texts(browser, "main")[0]
    assert not browser.find_elements(By.CSS_SELECTOR, "script, img") and browser.title == "Kernels"
    follow(browser, "Show all")
    assert len(texts(browser, "#kernels tbody tr")) == 2


def test_what_is_private_is_not_there(site, browser):
    browser.get(f"{site}/?search=secret")
    assert SECRET not in browser.page_source
    for path in ("", "/tree/main"):
        browser.get(f"{site}/kernels/{SECRET}{path}")
        private = browser.find_element(By.TAG_NAME, "main").text
        browser.get(f"{site}/kernels/acme/absent{path}")
        assert private == browser.find_element(By.TAG_NAME, "main").text.replace("acme/absent", SECRET)


def test_what_a_package_says_is_text(visit, site, tmp_path):
    for path in ("", "/discussions/1", "/tree/refs%2Fpr%2F1"):
        browser = visit(f"/kernels/{OTHER}{path}")
        assert EVIL in browser.find_element(By.TAG_NAME, "body").text, path
        assert not browser.find_elements(By.CSS_SELECTOR, "script, img")
        assert "owned" not in browser.title.replace(EVIL, "")
    # A file of a package is handed out to be saved, not shown.
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    visit(f"/kernels/{OTHER}/tree/main")
    browser.find_element(By.LINK_TEXT, "README.html").click()
    saved = tmp_path / "README.html"
    WebDriverWait(browser, 30).until(lambda _: saved.exists())
    assert EVIL in saved.read_text()
    assert browser.current_url == f"{site}/kernels/{OTHER}/tree/main" and browser.title != "owned"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_follows_the_colours(visit, scheme):
    browser = visit("/")
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    colours = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", colours)
    for path in ("/", "/?search=none", f"/kernels/{REPO}", f"/kernels/{REPO}/tree/v1", f"/kernels/{OTHER}/discussions/1"):
        visit(path)
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390, path
        ink = browser.execute_script("return getComputedStyle(document.body).color")
        assert ink == {"light": "rgb(0, 0, 0)", "dark": "rgb(255, 255, 255)"}[scheme]
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
