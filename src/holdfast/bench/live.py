"""Live: how soon another process knows of a hold and its viewers see it; and thousands of viewers on one process."""

import http.client
import random
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec

from holdfast.bench.drive import drive, reserve_heads, reserve_tails
from holdfast.bench.load import LoadPlan
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_most
from holdfast.bench.scale import Scale
from holdfast.bench.stand import SECOND, WHOLE, OnSale, Stand, StandFailed
from holdfast.bench.viewers import ViewersPlan, ViewersReport
from holdfast.live.viewing import EventStream, Watched

REFUSED_GOAL_MS, SEEN_GOAL_MS = at_most(100), at_most(250)
TAKEN = re.compile(r'holdfast_tier_lookups_total\{[^}]*outcome="taken"[^}]*\} (\d+)')
IDLE_SHARE = 10
FOLLOWERS = 60
SETTLE_S = 20.0


def measure(stand: Stand, event: OnSale, scale: Scale, progress: Progress) -> Measured:
    stand.use(WHOLE, SECOND)
    stand.refill()
    progress.say("two processes: a hold on one, a refusal and a message on the other")
    trips, refused, seen = _two_processes(stand, event, scale.live_holds)
    stand.use(WHOLE)
    crowd = _Crowd(stand, event, scale, progress)
    crowd.run()
    return Measured(
        "Live",
        [
            Ratio("refused by the other process's memory ÷ an idle reserve", [_median(refused) / _median(trips)]),
            Ratio("seen by the other process's viewer ÷ an idle reserve", [_median(seen) / _median(trips)]),
            Ratio("refused by the other process's memory after (ms)", [1000 * _median(refused)], goal=REFUSED_GOAL_MS),
            Ratio("seen by the other process's viewer after (ms)", [1000 * _median(seen)], goal=SEEN_GOAL_MS),
            Ratio("viewers who knew something wrong in the end", [float(crowd.wrong)], goal=at_most(0)),
            Ratio("viewers dropped though they read", [float(crowd.report.lost)], goal=at_most(0)),
            Ratio("viewers told to load again after a reconnect", [float(crowd.report.resyncs)], goal=at_most(0)),
            Ratio("memory a viewer (kB)", [crowd.kilobytes_a_viewer], goal=at_most(100)),
        ],
        [
            Quantity("an idle reserve", [1000 * s for s in trips], "ms"),
            Quantity("refused by the other process's memory after", [1000 * s for s in refused], "ms"),
            Quantity("seen by the other process's viewer after", [1000 * s for s in seen], "ms"),
            Quantity("viewers", [float(scale.viewers)], ""),
            Quantity("of whom do not read", [float(crowd.idle)], ""),
            Quantity("of those, still connected in the end", [float(crowd.report.idle_open)], ""),
            Quantity("messages delivered", [crowd.report.messages / crowd.seconds], "a second"),
            Quantity("reserves meanwhile", [crowd.rate], "holds/s"),
            Quantity("memory of the server before the viewers", [crowd.before_mb], "MB"),
            Quantity("memory of the server at its highest", [crowd.highest_mb], "MB"),
        ],
        [],
        [
            "Changes gather for 50 ms before they are sent. The other process is asked again and again until its own figures"
            " say that it refused from memory, which takes a few milliseconds a try.",
            f"A third of the {scale.viewers:,} viewers are thrown out in the middle and come back where they were;"
            f" {crowd.followers} of them follow every seat, and are held against the snapshot in the end.",
        ],
    )


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


# Two processes ------------------------------------------------------------------------------------------------------
def _two_processes(stand: Stand, event: OnSale, holds: int) -> tuple[list[float], list[float], list[float]]:
    """Seconds: of a reserve; until the other process refuses from memory; until its viewer sees it."""
    tokens = stand.guests(event, holds + 1)
    ports = stand.servers[WHOLE].port, stand.servers[SECOND].port
    one, two = (http.client.HTTPConnection("127.0.0.1", port, timeout=30) for port in ports)
    trips: list[float] = []
    refused: list[float] = []
    seen: list[float] = []
    chosen = random.sample(range(len(event.seats)), holds)
    viewer = _Viewer(stand.servers[SECOND].port, event.id, tokens[0])
    try:
        for n, ordinal in enumerate(chosen):
            path = f"/api/events/{event.id}/seats/{event.seats[ordinal]}/reserve"
            before = _taken(two)
            began = time.perf_counter()
            _post(one, path, tokens[n + 1], 201)
            held = time.perf_counter()
            while _taken(two) == before:
                _post(two, path, tokens[0], 409)
            knew = time.perf_counter()
            viewer.until(ordinal)
            trips.append(held - began)
            refused.append(knew - held)
            seen.append(viewer.seen_at - held)
    finally:
        one.close()
        two.close()
        viewer.close()
    return trips, refused, seen


def _post(connection: http.client.HTTPConnection, path: str, token: str, expected: int) -> None:
    connection.request("POST", path, b"{}", {"authorization": f"Bearer {token}", "content-type": "application/json"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != expected:
        raise StandFailed(f"POST {path}: {answer.status} {body[:300]!r}")


def _taken(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return sum(int(float(count)) for count in TAKEN.findall(text))


class _Viewer:
    """On a socket of its own, read by a thread that notes when a seat was seen."""

    def __init__(self, port: int, event_id: str, token: str) -> None:
        self._link = socket.create_connection(("127.0.0.1", port))
        line = f"GET /api/events/{event_id}/live HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n"
        self._link.sendall(line.encode())
        self._stream = EventStream()
        self._seen: dict[int, float] = {}
        self.seen_at = 0.0
        self._watching = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        if not self._watching.wait(10):
            raise StandFailed("the live stream did not begin")

    def _read(self) -> None:
        while True:
            try:
                piece = self._link.recv(65536)
            except OSError:
                return
            now = time.perf_counter()
            if not piece:
                return
            for kind, _, data in self._stream.feed(piece):
                self._watching.set()
                if kind == "seats":
                    for ordinal in msgspec.json.decode(data).get("ordinals", []):
                        self._seen.setdefault(ordinal, now)

    def until(self, ordinal: int) -> None:
        deadline = time.perf_counter() + 10
        while ordinal not in self._seen:
            if time.perf_counter() > deadline:
                raise StandFailed(f"seat {ordinal} was never seen live")
            time.sleep(0.001)
        self.seen_at = self._seen[ordinal]

    def close(self) -> None:
        self._link.close()


# A crowd ------------------------------------------------------------------------------------------------------------
class _Crowd:
    def __init__(self, stand: Stand, event: OnSale, scale: Scale, progress: Progress) -> None:
        self._stand = stand
        self._event = event
        self._scale = scale
        self._progress = progress
        self.idle = scale.viewers // IDLE_SHARE
        self.followers = min(FOLLOWERS, (scale.viewers - self.idle) // 2)
        self.wrong = 0
        self.rate = self.seconds = self.before_mb = self.highest_mb = self.kilobytes_a_viewer = 0.0
        self.report: ViewersReport

    def run(self) -> None:
        stand, event, scale = self._stand, self._event, self._scale
        stand.refill()
        token = stand.guests(event, 1)[0]
        self.before_mb = self._memory_mb("VmRSS")
        plan = ViewersPlan(
            port=stand.port,
            event_id=event.id,
            token=token,
            readers=scale.viewers - self.idle,
            followers=self.followers,
            idle=self.idle,
            snapshot=self._snapshot(token),
        )
        with NamedTemporaryFile(dir=stand.folder, suffix=".viewers") as file:
            Path(file.name).write_bytes(msgspec.msgpack.encode(plan))
            child = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-m", "holdfast.bench.viewers", file.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
            )
            try:
                self._progress.say(f"{scale.viewers:,} viewers come")
                self._hear(child, "watching")
                began = time.perf_counter()
                self._sell("a sale is watched")
                self._tell(child, "reconnect")
                self._hear(child, "reconnected")
                self._sell("a third of the viewers have come back")
                self.seconds = time.perf_counter() - began
                self._settle(child, token)
            finally:
                child.kill()
                child.wait()
        self.highest_mb = self._memory_mb("VmHWM")
        self.kilobytes_a_viewer = 1000 * max(0.0, self.highest_mb - self.before_mb) / scale.viewers

    def _sell(self, said: str) -> None:
        self._progress.say(said)
        stand, event, scale = self._stand, self._event, self._scale
        tails = reserve_tails(stand.guests(event, scale.buyers))
        plan = LoadPlan(
            port=stand.port,
            connections=2,
            seconds=scale.live_seconds,
            warm_up_s=0.0,
            heads=reserve_heads(event, random.sample(event.seats, len(event.seats))),
            tails=tails,
            again=False,
        )
        self.rate = drive(stand, plan, "201", "200", "409").rate

    def _settle(self, child: "subprocess.Popen[str]", token: str) -> None:
        """Until everybody stands at the same place, which is that of the snapshot."""
        self._progress.say("until everybody knows")
        deadline = time.perf_counter() + SETTLE_S
        while True:
            time.sleep(0.5)
            truth = Watched()
            truth.load(self._snapshot(token))
            self._tell(child, "report")
            self.report = msgspec.json.decode(self._line(child), type=ViewersReport)
            self.wrong = sum(states != truth.states for states in self.report.followers_states)
            level = self.report.last_ids == 1 and self.wrong == 0
            if level or time.perf_counter() > deadline:
                return

    def _snapshot(self, token: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._stand.port, timeout=60)
        headers = {"authorization": f"Bearer {token}", "accept": "application/octet-stream"}
        connection.request("GET", f"/api/events/{self._event.id}/availability", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:
            raise StandFailed(f"no snapshot: {answer.status} {body[:300]!r}")
        return body

    def _memory_mb(self, name: str) -> float:
        pid = self._stand.servers[WHOLE].pids[0]
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1000
        raise StandFailed("the server is gone")

    @staticmethod
    def _tell(child: "subprocess.Popen[str]", word: str) -> None:
        assert child.stdin is not None
        child.stdin.write(f"{word}\n")
        child.stdin.flush()

    @staticmethod
    def _line(child: "subprocess.Popen[str]") -> str:
        assert child.stdout is not None
        said = child.stdout.readline()
        if not said:
            raise StandFailed("the viewers failed; what they said is above")
        return said

    def _hear(self, child: "subprocess.Popen[str]", word: str) -> None:
        if self._line(child).strip() != word:
            raise StandFailed("the viewers failed; what they said is above")
