"""A notifier that is killed at any step of its input and output, and started again: run as a program, in many trials.

Each trial is a child forked from this process, which has loaded everything: the real store on a file of its own, the
real notifier and the real webhook channel, played a script of transitions. At a given step (a statement or commit of
the database, a request or its answer) the child kills itself as kill -9 does; then another goes on. The receiver is a
third process; by the script's number it sometimes answers 429 or 500, or cuts the connection before or after it took
note.

    python -m tests.server.killed_notifier FOLDER TRIALS [WORKER WORKERS]

Prints what does not hold, a line each, and at the end how many trials there were and how long they took. With WORKERS,
each takes its share.
"""

import asyncio
import contextlib
import gc
import json
import logging
import os
import random
import shutil
import signal
import socket
import sqlite3
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
from sqlalchemy import event
from tests.server.notify_samples import transition

from oomwatch import wire
from oomwatch.letters import key_of
from oomwatch.notify import http
from oomwatch.notify.channel import Surroundings
from oomwatch.notify.channels import open_channels
from oomwatch.notify.channels.webhook import WebhookChannel
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.notifier import Notifier
from oomwatch.notify.secret import Secret
from oomwatch.notify.words import Frame
from oomwatch.store.store import Store
from oomwatch.units import Duration

NEVER = 10**9
SCRIPTS = 10  # different ones; each is killed at points spread over its whole length
LIFE_SECONDS = 20.0  # a child that takes longer hangs
SILENCE = wire.Mute(kind="silence", by="s1")
Story = list[list[wire.Transition]]


# ---------------------------------------------------------------- the script


def script(seed: int, began_at: float) -> Story:
    """What the engine says, a batch at a time: of three alerts in each of two runs."""
    chance = random.Random(seed)
    stories = [_life(run, gpu, chance, began_at) for run in range(2) for gpu in range(3)]
    batches: Story = []
    while any(stories):
        alive = [story for story in stories if story]
        batches.append([story.pop(0) for story in chance.sample(alive, min(len(alive), chance.randint(1, 4)))])
    return batches


def _life(run: int, gpu: int, chance: random.Random, began_at: float) -> list[wire.Transition]:
    """One alert: it fires, may be muted, lowered and raised, and most are over at the end."""
    fired = transition(gpu, run=f"run{run}", at=began_at, started_at=began_at - 30)
    fired = msgspec.structs.replace(fired, id=f"{run}-{gpu}", muted=(SILENCE,) if chance.random() < 0.3 else ())
    story = [fired]
    for number in range(chance.randint(0, 2)):
        last = story[-1]
        at = began_at + number + 1
        if chance.random() < 0.5 or last.muted:
            story.append(msgspec.structs.replace(last, change="muted", at=at, muted=() if last.muted else (SILENCE,)))
        elif last.lowered_from is None:
            lowered = {"severity": "info", "lowered_from": "warning"}
            story.append(msgspec.structs.replace(last, change="severity", at=at, **lowered))
        else:
            raised = msgspec.structs.replace(last, severity="warning", lowered_from=None)
            story.append(msgspec.structs.replace(raised, change="severity", at=at))
    if chance.random() < 0.75:
        story.append(msgspec.structs.replace(story[-1], state="resolved", change="state", at=began_at + 5))
    return story


# ---------------------------------------------------------------- one life of the notifier


class Steps:
    """Counts what goes in and out, and ends the process at the given count."""

    def __init__(self, last: int) -> None:
        self.count = 0
        self._last = last

    def step(self, *_: object) -> None:
        self.count += 1
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, store: Store) -> None:
        engine = store._database._engine
        for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
            event.listen(engine, name, self.step)


class CountedTransport(httpx.AsyncHTTPTransport):
    def __init__(self, steps: Steps) -> None:
        super().__init__(verify=False)  # it is plain http, and to load certificates takes longer than a life
        self._steps = steps

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._steps.step()
        response = await super().handle_async_request(request)
        self._steps.step()
        return response


async def live(store: Store, story: Story, url: str, steps: Steps, chance: random.Random) -> None:
    """Play what of the script is not stored yet, until everything has arrived."""

    async def call(fn: Callable[..., Any], *args: Any) -> Any:
        return fn(*args)

    channel = WebhookChannel(name="ops", url=Secret(f"{url}/hook"))
    never = at_once = Duration(0)
    config = NotifyConfig(channels=(channel,), group_wait=at_once, group_interval=at_once, repeat_interval=never)
    client = httpx.AsyncClient(transport=CountedTransport(steps), timeout=http.TIMEOUT)
    notifier = Notifier(
        open_channels(config.channels, Surroundings(Frame(), client, {})), config, store, call, patience=lambda _: 0.0
    )
    await notifier.start()
    stored = {key_of(one) for batch in story for one in batch for one in store.transitions_of(one.id)}
    for batch in story:
        if any(key_of(one) not in stored for one in batch):
            store.append(batch)
            notifier.offer(batch)
            for _ in range(chance.choice((0, 1, 5, 50))):
                await asyncio.sleep(0)
    while any(state.waiting for state in notifier.status()):  # noqa: ASYNC110 - it tells nobody when nothing waits
        await asyncio.sleep(0.001)
    await notifier.stop()


def child(store: Store, story: Story, url: str, last_step: int, seed: int) -> int | None:
    """A life in a process of its own: how many steps it took, or None where it was killed."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        _be_a_child(store, story, url, last_step, seed, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    _, status = os.waitpid(process, 0)
    if told:
        return int(told)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    raise RuntimeError(f"a child ended with status {status}, neither killed nor done")


def _be_a_child(store: Store, story: Story, url: str, last_step: int, seed: int, writing: int) -> None:
    gc.disable()  # a collection would copy all pages of the parent
    signal.alarm(int(LIFE_SECONDS))
    steps = Steps(last_step)
    steps.watch(store)
    code = 1
    try:
        asyncio.run(live(store, story, url, steps, random.Random(seed)))
        os.write(writing, str(steps.count).encode())
        code = 0
    finally:
        os._exit(code)


# ---------------------------------------------------------------- the receiver


class Request(NamedTuple):
    id: str
    took_note: bool
    body: bytes


class Receiver:
    """Takes note of most requests, and says so of most of those."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._chance = random.Random(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            answer = self._answer(head[0].split()[1], headers, body)
            if answer is not None:
                writer.write(answer)
                await writer.drain()
        writer.close()

    def _answer(self, path: str, headers: dict[str, str], body: bytes) -> bytes | None:
        if path.startswith("/reset/"):
            self.requests, self._chance = [], random.Random(path)
            return _response(200, b"")
        if path == "/log":
            log = [(one.id, one.took_note, one.body.decode()) for one in self.requests]
            return _response(200, json.dumps(log).encode())
        status = self._chance.choices((200, 429, 500, 0, -1), weights=(14, 2, 2, 1, 1))[0]
        self.requests.append(Request(headers["webhook-id"], status in (200, -1), body))
        return _response(status, b"") if status > 0 else None


def _response(status: int, body: bytes) -> bytes:
    return (
        f"HTTP/1.1 {status} x\r\nRetry-After: 0\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )


@contextlib.contextmanager
def receiving() -> Iterator[str]:
    """In a process of its own, forked before there is any loop; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    process = os.fork()
    if process == 0:
        asyncio.run(_receive(listener))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        listener.close()


async def _receive(listener: socket.socket) -> None:
    server = await asyncio.start_server(Receiver().serve, sock=listener)
    await server.serve_forever()


def ask(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=LIFE_SECONDS) as answer:  # noqa: S310 - our own receiver
        content: bytes = answer.read()
        return content


# ---------------------------------------------------------------- the model


def wrong(story: Story, requests: Sequence[Request], database: Path) -> Iterator[str]:
    """What does not hold of what a receiver that drops known ids was told."""
    bodies: dict[str, set[bytes]] = {}
    effects: dict[str, bytes] = {}
    for one in requests:
        bodies.setdefault(one.id, set()).add(one.body)
        if one.took_note:
            effects.setdefault(one.id, one.body)
    yield from (f"{name} was said in {len(found)} ways" for name, found in bodies.items() if len(found) > 1)
    yield from _wrong_in_database(list(effects), database)
    said: dict[str, list[str]] = {}
    for body in effects.values():
        for alert in json.loads(body)["alerts"]:
            said.setdefault(alert["fingerprint"], []).append(alert["status"])
    lives: dict[str, list[wire.Transition]] = {}
    for heard in (heard for batch in story for heard in batch):
        lives.setdefault(heard.id, []).append(heard)
    for alert, life in lives.items():
        if not is_right(life, told := said.pop(alert, [])):
            yield f"alert {alert}, {[(one.change, one.state, bool(one.muted)) for one in life]}, was told as {told}"
    yield from (f"nobody ever said anything of {alert}" for alert in said)


def _wrong_in_database(effects: list[str], database: Path) -> Iterator[str]:
    """Every message has arrived, and those of an incident in the order in which they were made."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT id, incident, state FROM notices ORDER BY seq").fetchall()
    yield from (f"{name} is {state}" for name, _, state in rows if state != "delivered")
    if {name for name, _, _ in rows} != set(effects):
        yield f"{len(effects)} messages were told and {len(rows)} were kept"
    for incident in {incident for _, incident, _ in rows}:
        made = [name for name, one, _ in rows if one == incident]
        if made != [name for name in effects if name in made]:
            yield f"the messages of {incident} came out of order"


def is_right(life: Sequence[wire.Transition], told: Sequence[str]) -> bool:
    """An alert is told to fire, once more for each time it is raised, and once to be over. Nobody is told of one that
    was muted whenever it could have been told."""
    firing = [one for one in life if one.state == "firing"]
    is_over = life[-1].state == "resolved"
    raised = sum(one.change == "severity" and one.lowered_from is None for one in life)
    if not any(not one.muted for one in firing):
        return not told
    if told.count("firing") > 1 + raised or told.count("resolved") > 1:
        return False
    if "resolved" in told[:-1] or ("resolved" in told and not is_over):
        return False
    if is_over:
        return told[-1:] == ["resolved"] or (not told and bool(life[-1].muted))
    return bool(told) or bool(life[-1].muted)


# ---------------------------------------------------------------- all trials


class Trials:
    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url
        self._database, self._template = folder / "trial.db", folder / "template.db"
        with contextlib.closing(Store.open(f"sqlite:///{self._template}")) as template:
            template.account("ops", [], time.time() - 3600)  # the channel is no new one
        self.killed = 0
        # Opened once for all trials, without a connection: children find their modules and statements ready.
        self._store = self._opened()
        asyncio.run(live(self._store, script(0, time.time() - 60), url, Steps(NEVER), random.Random(0)))
        self._store.close()
        gc.freeze()

    def _opened(self) -> Store:
        shutil.copyfile(self._template, self._database)
        return Store.open(f"sqlite:///{self._database}")

    def run(self, seed: int, last_steps: Sequence[int]) -> tuple[int, list[str]]:
        """One story, killed at each of these steps of a life in turn. Gives the steps of the last life."""
        for file in self._folder.glob("trial.db*"):
            file.unlink()
        shutil.copyfile(self._template, self._database)
        self._store._database.remember_file()
        ask(f"{self._url}/reset/{seed}")
        story = script(seed, time.time() - 60)
        steps: int | None = None
        for life, last_step in enumerate([*last_steps, NEVER]):
            steps = child(self._store, story, self._url, last_step, seed + life)
            if steps is not None:
                break
            self.killed += 1
        requests = [Request(name, noted, body.encode()) for name, noted, body in json.loads(ask(f"{self._url}/log"))]
        return steps or 0, list(wrong(story, requests, self._database))


def main(folder: Path, trials: int, worker: int = 0, workers: int = 1) -> int:
    logging.disable(logging.CRITICAL)
    sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]  # httpcore looks for it at each request, in vain
    began_at = time.monotonic()
    bad = 0
    with receiving() as url:
        all_of_them = Trials(folder, url)
        lengths = [all_of_them.run(seed, [])[0] for seed in range(SCRIPTS)]
        for number in range(worker, trials, workers):
            seed = number % SCRIPTS
            last = 1 + lengths[seed] * (number // SCRIPTS) // (trials // SCRIPTS)
            again = [random.Random(number).randint(1, lengths[seed])] if number % 3 == 0 else []
            for problem in all_of_them.run(seed, [last, *again])[1]:
                bad += 1
                print(f"trial {number} (script {seed}, killed at step {last} of {lengths[seed]}): {problem}")
    seconds = time.monotonic() - began_at
    share = len(range(worker, trials, workers))
    print(f"{share} trials, {all_of_them.killed} kills, {bad} mistakes, {seconds:.1f} s")
    print(f"a life has {min(lengths)} to {max(lengths)} steps")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
