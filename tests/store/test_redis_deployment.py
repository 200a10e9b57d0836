"""The warm tier of a deployment: which server it is, and that the embedded one runs as long as it is needed."""

import asyncio
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from holdfast.deployment import deployed
from holdfast.kernel.ids import new_id
from holdfast.settings import Settings
from holdfast.store.embedded import ValkeyServer, find_running_valkey
from holdfast.store.redis.warm import Warm
from tests.conftest import TestDatabase
from tests.store.redis_ground import own_server
from tests.test_cli import await_no_processes, holdfast


def settings_for(database: TestDatabase, folder: Path, redis_url: str | None) -> Settings:
    return Settings(database_url=database.app, data=str(folder), redis_url=redis_url)


def answers(url: str | None) -> bool:
    async def ask() -> bool:
        assert url is not None
        warm = Warm.open(url, "test", 1.0)
        try:
            return await warm.ping()
        finally:
            await warm.close()

    return asyncio.run(ask())


def server_pid(folder: Path) -> int:
    state = json.loads((folder / "valkey.state").read_text())
    pid: int = state["server"]["pid"]
    return pid


def kill_and_wait(folder: Path) -> None:
    pid = server_pid(folder)
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while find_running_valkey(folder) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.05)  # its parent learns of it


def test_the_embedded_server_runs_for_as_long_as_the_command(database: TestDatabase, tmp_path: Path) -> None:
    with deployed(settings_for(database, tmp_path, "embedded"), prepare=False) as deployment:
        url = deployment.settings.redis_url
        assert url == f"unix://{tmp_path}/valkey/valkey.sock"
        assert answers(url)
        assert deployment.embedded_warm_tier
        assert not deployment.embedded
    assert find_running_valkey(tmp_path) is None
    assert not answers(url)
    await_no_processes(tmp_path)


def test_it_is_a_cache_and_writes_nothing_to_the_disk(database: TestDatabase, tmp_path: Path) -> None:
    async def configured(url: str) -> dict[str, str]:
        warm = Warm.open(url, "test", 1.0)
        try:
            assert await warm.set_layout(new_id(), new_id(), b"{}")
            found = await warm.connection.client.config_get("appendonly", "save", "maxmemory", "maxmemory-policy")
            return {str(name): str(value) for name, value in found.items()}
        finally:
            await warm.close()

    with deployed(settings_for(database, tmp_path, "embedded"), prepare=False) as deployment:
        assert asyncio.run(configured(str(deployment.settings.redis_url))) == {
            "appendonly": "no",
            "save": "",
            "maxmemory": str(256 * 1024 * 1024),
            "maxmemory-policy": "volatile-lru",
        }
    assert list((tmp_path / "valkey").iterdir()) == []


def test_one_that_runs_there_already_is_used_and_left_running(database: TestDatabase, tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        with deployed(settings_for(database, tmp_path, "embedded"), prepare=False) as deployment:
            assert deployment.settings.redis_url == server.address.url()
            assert not deployment.keep_servers()
        assert server.alive


def test_it_is_started_again_at_the_same_place_when_it_died(database: TestDatabase, tmp_path: Path) -> None:
    with deployed(settings_for(database, tmp_path, "embedded"), prepare=False) as deployment:
        url = deployment.settings.redis_url
        for _ in range(2):
            kill_and_wait(tmp_path)
            assert not answers(url)
            assert not deployment.keep_servers(), "it speaks for the database"
            assert answers(url)
    await_no_processes(tmp_path)


def test_one_that_belonged_to_another_command_is_replaced_when_that_is_over(
    database: TestDatabase, tmp_path: Path
) -> None:
    other = ValkeyServer(tmp_path)
    other.start()
    with deployed(settings_for(database, tmp_path, "embedded"), prepare=False) as deployment:
        other.stop()
        assert not answers(deployment.settings.redis_url)
        deployment.keep_servers()
        assert answers(deployment.settings.redis_url)
    await_no_processes(tmp_path)


def test_one_that_is_only_stopped_is_not_waited_for(database: TestDatabase, tmp_path: Path) -> None:
    here = settings_for(database, tmp_path, "embedded")
    with own_server(tmp_path) as server, deployed(here, prepare=False) as deployment:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            deployment.keep_servers()
            assert time.monotonic() - begin < 5
        finally:
            os.kill(server.pid, signal.SIGCONT)


@pytest.mark.parametrize("word", [None, "none"])
def test_beside_a_database_of_ones_own_there_is_none_unless_asked_for(
    database: TestDatabase, tmp_path: Path, word: str | None
) -> None:
    with deployed(settings_for(database, tmp_path, word), prepare=False) as deployment:
        assert deployment.settings.redis_url is None
        assert not deployment.embedded_warm_tier
    assert not (tmp_path / "valkey").exists()


def test_a_server_of_ones_own_is_used_as_it_is_named(database: TestDatabase, tmp_path: Path) -> None:
    with deployed(settings_for(database, tmp_path, "redis://cache.example:1"), prepare=False) as deployment:
        assert deployment.settings.redis_url == "redis://cache.example:1"
    assert not (tmp_path / "valkey").exists()


def test_beside_the_embedded_database_it_is_embedded_too(tmp_path: Path) -> None:
    with deployed(Settings(data=str(tmp_path)), prepare=False) as deployment:
        assert deployment.embedded
        assert deployment.embedded_warm_tier
        assert answers(deployment.settings.redis_url)
    await_no_processes(tmp_path)


def test_where_it_cannot_start_things_go_on_without(database: TestDatabase, tmp_path: Path) -> None:
    (tmp_path / "valkey").write_text("in the way")
    with deployed(settings_for(database, tmp_path, "embedded"), prepare=False) as deployment:
        assert deployment.settings.redis_url is None
        assert deployment.warm_tier_fault is not None
        assert "is not a folder" in deployment.warm_tier_fault
        assert not deployment.keep_servers()


# The doctor -----------------------------------------------------------------------------------------------------------
def warm_tier_line(database: TestDatabase, folder: Path, **more: str) -> str:
    done = holdfast(
        "doctor",
        "--data",
        str(folder),
        HOLDFAST_DATABASE_URL=database.app,
        HOLDFAST_ADMIN_DATABASE_URL=database.owner,
        HOLDFAST_JWT_SECRETS=f"one:{'0123456789abcdef' * 4}",
        **more,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    found = re.search(r"^.*  warm tier .*$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    return re.sub(r" +", " ", found[0])


def test_the_doctor_names_the_server_and_its_version(database: TestDatabase, tmp_path: Path, valkey: str) -> None:
    line = warm_tier_line(database, tmp_path, HOLDFAST_REDIS_URL=valkey)
    assert re.match(r"ok warm tier reachable, at HOLDFAST_REDIS_URL, Valkey \d+\.\d+\.\d+$", line)
    line = warm_tier_line(database, tmp_path, HOLDFAST_REDIS_URL="embedded")
    assert re.match(r"ok warm tier reachable, embedded, Valkey \d+\.\d+\.\d+$", line)


def test_the_doctor_warns_of_a_warm_tier_that_is_missing_or_away(database: TestDatabase, tmp_path: Path) -> None:
    assert warm_tier_line(database, tmp_path).startswith("warn warm tier none: messages travel by PostgreSQL → ")
    line = warm_tier_line(database, tmp_path, HOLDFAST_REDIS_URL="redis://user:secret@127.0.0.1:1")
    assert line.startswith("warn warm tier the server at HOLDFAST_REDIS_URL does not answer: ")
    assert " → check HOLDFAST_REDIS_URL" in line
    assert "secret" not in line
    (tmp_path / "valkey").write_text("in the way")
    line = warm_tier_line(database, tmp_path, HOLDFAST_REDIS_URL="embedded")
    assert line.startswith("warn warm tier the embedded Valkey does not run: ")
    assert warm_tier_line(database, tmp_path, HOLDFAST_REDIS_URL="none").startswith("ok warm tier switched off")
