"""The demo's buyers, in a process of their own: `python -m holdfast.simulation.buyers_process`.

Reads its orders as one line of JSON from stdin; writes a report as a line of JSON to stdout, twice a second. Ends with
its parent.
"""

import asyncio
import os
import signal
import sys

import msgspec
import uvloop

from holdfast.parent import die_with_parent
from holdfast.simulation.buyer import LEISURELY, Crowd, run_crowd
from holdfast.simulation.client import Client
from holdfast.simulation.hall import Hall
from holdfast.simulation.tally import Tally

REPORT_S = 0.5


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    event_id: str
    buyers: int
    seats: int
    api_key: str
    provider: str
    member_tokens: list[str]
    parent: int


async def _shop(orders: Orders) -> None:
    client = Client(orders.url)
    hall = await Hall.learn(client, orders.event_id)
    client.close()
    crowd = Crowd(
        url=orders.url,
        event_id=orders.event_id,
        hall=hall,
        manner=msgspec.structs.replace(LEISURELY, return_when_sold=int(orders.seats * 0.45)),
        tally=Tally(),
        api_key=orders.api_key,
        provider=orders.provider,
        member_tokens=orders.member_tokens,
    )
    shopping = asyncio.create_task(run_crowd(crowd, orders.buyers, None))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, shopping.cancel)
    while not shopping.done():
        os.write(1, msgspec.json.encode(crowd.tally.report()) + b"\n")
        await asyncio.wait((shopping,), timeout=REPORT_S)
    if not shopping.cancelled():
        shopping.result()


def main() -> None:
    orders = msgspec.json.decode(sys.stdin.buffer.readline(), type=Orders)
    die_with_parent(orders.parent)
    uvloop.run(_shop(orders))


if __name__ == "__main__":
    main()
