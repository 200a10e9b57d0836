"""Lua scripts on the server: sent whole once, then called by their hash."""

import hashlib
from importlib import resources
from typing import Any

from redis.exceptions import NoScriptError

from holdfast.store.redis.connection import Client
from holdfast.store.redis.keys import IN_SCRIPTS


class Script:
    def __init__(self, name: str, *, of_organization: bool) -> None:
        """`of_organization`: its only key is an organization's prefix, out of which it makes the others."""
        text = resources.files("holdfast.store.redis").joinpath("scripts", f"{name}.lua").read_text("utf-8")
        self.text = IN_SCRIPTS + text if of_organization else text
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    async def run(self, client: Client, keys: list[str], *args: str | bytes | int) -> Any:
        try:
            return await client.execute_command("EVALSHA", self.sha, len(keys), *keys, *args)
        except NoScriptError:  # a fresh server, or another one since a failover
            return await client.execute_command("EVAL", self.text, len(keys), *keys, *args)


APPLY_MOVES = Script("apply_moves", of_organization=True)
REMOVE_HOLDS = Script("remove_holds", of_organization=True)
FIND_HOLDS = Script("find_holds", of_organization=True)
CLEAR_ORPHANS = Script("clear_orphans", of_organization=True)
LEAD = Script("lead", of_organization=False)
ADVANCE = Script("advance", of_organization=False)
