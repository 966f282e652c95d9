"""oomwatch-agent as one file: unpacked for the Python that runs it, once, and started from there.

A zip holds Python's modules well enough, but the system's loader opens no library within one. So what fits this Python
is written beside each other into a folder of the user's cache, each file at once or not at all: two that start together
do the same, and what a cleaner took away comes again.

Any Python that is asked to run this file must understand it, if only to be told no: no annotations, no new syntax.
"""

import os
import sys
import zipfile

ARCHIVE = os.path.dirname(os.path.abspath(__file__))
PLACE = "OOMWATCH_UNPACKED"
COMMON, NATIVE = "site/", "native/"  # for every Python; by what the libraries of one Python end with


def main():
    with zipfile.ZipFile(ARCHIVE) as archive:
        build = archive.read("BUILD").decode()
        served = sorted({name.split("/")[1] for name in archive.namelist() if name.startswith(NATIVE)})
        ending = own_ending()
        if ending not in served:
            sys.exit(refusal(served, ending))
        folder = unpack(archive, "%s-%s" % (build, ending), (COMMON, NATIVE + ending + "/"))
    sys.path[0] = folder  # in place of this file
    try:
        import msgspec  # noqa: F401, PLC0415 - the first that the system's loader may refuse
    except ImportError as error:
        sys.exit(
            "oomwatch-agent: what was unpacked into %s cannot be loaded: %s. Where no program may be started from "
            "there (mount option noexec), name another folder: %s=FOLDER" % (folder, error, PLACE)
        )
    from oomwatch_agent.__main__ import main as start  # noqa: PLC0415 - it is there only now

    sys.exit(start())


def own_ending():
    """What this Python's own libraries end with: Python, version, machine and C library. Empty: it is too old."""
    try:
        from importlib.machinery import EXTENSION_SUFFIXES  # noqa: PLC0415
    except ImportError:
        return ""
    return EXTENSION_SUFFIXES[0].lstrip(".").split(".")[0]


def refusal(served, ending):
    """Why not, and what to do."""
    versions = sorted({"3." + one.split("-")[1][1:] for one in served}, key=lambda text: int(text[2:]))
    machines = sorted({one.split("-")[2] for one in served})
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    names = ["python" + version for version in reversed(versions)]
    found = [name for name in names if any(os.access(os.path.join(folder, name), os.X_OK) for folder in folders)]
    return (
        "oomwatch-agent: this file serves CPython %s on Linux with glibc, on %s. %s is Python %s (%s). Run the file "
        "with %s, or install the agent with pip: pip install oomwatch-agent"
        % (
            ", ".join(versions),
            " and ".join(machines),
            sys.executable,
            sys.version.split()[0],
            ending or "too old to say more",
            found[0] if found else "one of those",
        )
    )


def places():
    """Where it may be unpacked, the best first."""
    named = os.environ.get(PLACE)
    if named:
        return [named]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - a folder of one's own there, looked at before use
    return [os.path.join(cache, "oomwatch-agent"), os.path.join(temporary, "oomwatch-agent-%d" % os.geteuid())]


def unpack(archive, name, prefixes):
    """The folder with all files of these prefixes, in the first place that can be used."""
    refused = []
    for place in places():
        try:
            own(place)
            folder = os.path.join(place, name)
            for entry in archive.infolist():
                for prefix in prefixes:
                    if entry.filename.startswith(prefix):
                        put(archive, entry, os.path.join(folder, entry.filename[len(prefix) :]))
            return folder
        except OSError as error:
            refused.append("%s: %s" % (place, error.strerror or error))
    sys.exit(
        "oomwatch-agent: there is no place to unpack to (%s). Name a folder that you may write to: %s=FOLDER"
        % ("; ".join(refused), PLACE)
    )


def own(place):
    """See to a folder that nobody else may write to: in a temporary folder others may be first. Raises OSError."""
    if not os.path.isdir(place):
        os.makedirs(place, 0o700)
    status = os.lstat(place)
    if os.path.islink(place) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise OSError("is a link, or somebody else's, or others may write to it")


def put(archive, entry, path):
    """Write a file, unless it is there in full."""
    try:
        if os.path.getsize(path) == entry.file_size:
            return
    except OSError:
        pass
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    part = "%s.%d" % (path, os.getpid())
    with open(part, "wb") as file:
        file.write(archive.read(entry))
    os.replace(part, path)


main()
