"""The last test of a whole session: what the clients offer was called, and what came of it was looked at."""

import pytest
from conftest import MODE
from counted import ASSERTED

# What the hub must serve, whatever else the tests call.
HF_API = """create_repo upload_folder upload_file create_commit create_branch delete_branch create_tag delete_tag
list_repo_refs list_repo_tree list_repo_files list_repo_commits get_paths_info repo_info snapshot_download hf_hub_download
delete_file delete_files delete_folder move_repo delete_repo whoami"""
KERNELS = "get_kernel has_kernel get_kernel_variants load_kernel versions info lock download"


def test_what_is_promised_was_called():
    promised = {f"huggingface_hub HfApi.{name}" for name in HF_API.split()} | {f"kernels {name}" for name in KERNELS.split()}
    assert not promised - ASSERTED


def test_at_least_forty_different_calls_were_looked_at():
    assert len(ASSERTED) >= 40, sorted(ASSERTED)


@pytest.mark.skipif(MODE != "faults", reason="there is no proxy")
def test_about_one_answer_in_twenty_was_spoiled(hub):
    seen, spoiled = sum(hub.proxy.seen.values()), sum(hub.proxy.injected.values())
    assert seen > 100 and 0.02 < spoiled / seen < 0.15, (seen, hub.proxy.injected)
