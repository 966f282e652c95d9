"""A real PostgreSQL on loopback, from the programs of Debian's package, for as long as a test needs one."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import psycopg
from psycopg import sql
from tests.missing import do_without
from tests.ports import free_port

HOW_TO_GET = "apt-get install postgresql (make system-packages does, as root)"
USER = "oomwatch"
READY_SECONDS = 120.0  # on a loaded machine; some tenths of a second else
# How each kind of end is asked for (the manual, "Shutting Down the Server"). "kill" takes the postmaster away unasked;
# its processes follow.
_SIGNALS = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
    "kill": signal.SIGKILL,
}
Mode = Literal["smart", "fast", "immediate", "kill"]
# fsync is for power cuts, which tests have none of; the rest keeps the cluster small.
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_wal_size": "128MB",
    "min_wal_size": "32MB",
    "autovacuum_naptime": "10s",
    "log_min_messages": "warning",
}


def programs() -> Path | None:
    """The folder of the newest PostgreSQL's programs; None where it is not installed."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda folder: int(folder.parent.name))
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


class PostgresServer:
    """One cluster in a folder of its own. It goes with this process, however that ends.

    More exactly with the thread that starts it: of that the kernel tells it (PR_SET_PDEATHSIG).

    PostgreSQL refuses to run as root: there it is run as the user `postgres` or `nobody`.
    """

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        bin_folder = programs()
        if bin_folder is None:
            do_without("PostgreSQL", HOW_TO_GET)
        self._bin = bin_folder
        self._settings = {**_SETTINGS, **(settings or {})}
        self._folder = Path(tempfile.mkdtemp(prefix="oomwatch-postgres-"))
        self._password = secrets.token_hex(8)
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = _other_user() if os.geteuid() == 0 else None
        if self._owner is not None:
            os.chown(self._folder, self._owner.pw_uid, self._owner.pw_gid)
        self._init()
        self.port = 0

    @property
    def url(self) -> str:
        """Of the database `postgres`, as its superuser."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start it, on the same port as before, and wait until it answers."""
        deadline = time.monotonic() + READY_SECONDS
        self.port = self.port or free_port()
        while not self._tried(deadline):
            assert time.monotonic() < deadline, self.log

    def stop(self, mode: Mode = "fast") -> None:
        """End it, and wait until it is gone."""
        if self._process is not None:
            self._process.send_signal(_SIGNALS[mode])
            self._process.send_signal(signal.SIGCONT)
            self._process.wait(READY_SECONDS)
            self._process = None

    def pause(self) -> None:
        """Stop every one of its processes where it is: connections stay open and nothing answers."""
        self._signal_all(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal_all(signal.SIGCONT)

    def remove(self) -> None:
        """End it and delete its folder."""
        self.stop("immediate")
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, program: str, *arguments: str, database: str = "postgres", stdin: bytes | None = None) -> bytes:
        """What one of PostgreSQL's own programs (psql, pg_dump, pg_restore) writes."""
        command = [str(self._bin / program), f"--dbname={self.url_of(database)}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=READY_SECONDS, check=False)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout

    def execute(self, *statements: "sql.SQL | sql.Composed") -> None:
        """As its superuser, each statement on its own."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def create(self, name: str, template: str = "template0") -> str:
        """A new database, a copy of `template`; its URL."""
        names = {"name": sql.Identifier(name), "template": sql.Identifier(template)}
        self.execute(sql.SQL("CREATE DATABASE {name} TEMPLATE {template}").format(**names))
        return self.url_of(name)

    def drop(self, name: str) -> None:
        """Delete a database, whoever is connected to it."""
        self.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _init(self) -> None:
        password_file = self._folder / "password"
        password_file.write_text(self._password)
        # A language's order of letters, not that of bytes: what most clusters have, and what SQLite has not.
        self._call(
            *("initdb", "--pgdata", str(self._folder / "data"), "--username", USER, "--auth", "scram-sha-256"),
            *("--pwfile", str(password_file), "--encoding", "UTF8", "--locale", "C"),
            *("--locale-provider", "icu", "--icu-locale", "en-US", "--no-sync", "--no-instructions"),
        )

    def _call(self, program: str, *arguments: str) -> None:
        command = self._as_owner(program, *arguments)
        done = subprocess.run(command, capture_output=True, timeout=READY_SECONDS, check=False, cwd=self._folder)
        assert done.returncode == 0, done.stderr.decode(errors="replace")

    def _as_owner(self, program: str, *arguments: str) -> list[str]:
        command = [str(self._bin / program), *arguments]
        if self._owner is None:
            return ["setpriv", "--pdeathsig", "QUIT", "--", *command]
        ids = [f"--reuid={self._owner.pw_uid}", f"--regid={self._owner.pw_gid}", "--clear-groups"]
        return ["setpriv", "--pdeathsig", "QUIT", *ids, "--", *command]

    def _tried(self, deadline: float) -> bool:
        """Start the process and wait until it answers; False where it ended instead: the port was taken, perhaps."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = self._as_owner("postgres", "-D", str(self._folder / "data"), "-p", str(self.port), *options)
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                return False
            if self._answers():
                return True
        return False

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.02)  # between two questions; the deadline is the caller's
            return False
        return True

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        for pid in (self._process.pid, *_children(self._process.pid)):
            os.kill(pid, number)


@contextlib.contextmanager
def postgres_running() -> Iterator[PostgresServer]:
    """One of its own, for a test that stops or breaks it."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def _other_user() -> pwd.struct_passwd:
    known = {user.pw_name: user for user in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


def _children(pid: int) -> Sequence[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()]
