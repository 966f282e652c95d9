"""Overrides put over a configuration as Hydra puts them, with what it would stop at."""

from collections.abc import Callable

from oomwatch.doctor.read.grammar import NoOverrideError, Override, parse_override
from oomwatch.doctor.read.layers import Given
from oomwatch.doctor.read.reading import UNTOLD, Complaint, Origin, Severity, Value
from oomwatch.doctor.read.references import References, UnresolvedError
from oomwatch.doctor.read.tree import Tree

_OF_HYDRA = ("hydra.", "hydra/")


class Overriding:
    """Puts overrides into a tree, in their order, and keeps what is to be said of them.

    Where Hydra would stop, what the person meant is done all the same, so that the rest can be judged too.
    """

    def __init__(
        self,
        tree: Tree,
        is_certain: Callable[[str], bool] = lambda _key: True,
        nearest: Callable[[str], str | None] = lambda _key: None,
    ) -> None:
        """`is_certain` says of a key whether it is known that the program has it, or has it not.

        `nearest` names the setting that was most likely meant with a key that is none.
        """
        self.complaints: list[Complaint] = []
        self.choices: list[tuple[Override, Given]] = []
        self._tree = tree
        self._is_certain = is_certain
        self._nearest = nearest
        self._given: dict[str, Given] = {}

    def put(self, given: Given) -> None:
        override = parsed(given)
        if override is None:
            self._complain("bad_override", "error", given.origin, text=given.text[:120])
        elif override.key.startswith(_OF_HYDRA) or override.key == "hydra":
            return
        elif override.names_a_group:
            self.choices.append((override, given))
        else:
            self._note(override, given)
            self._put(override, given)

    def _note(self, override: Override, given: Given) -> None:
        """What does not hang on the configuration."""
        folder, slash, last = given.text.rpartition("/")
        for variable in given.unresolved if not slash or "$" in last else ():  # a path is known by its last part
            severity: Severity = "info" if folder else "warning"
            self._complain("unresolved_variable", severity, given.origin, key=override.key, variable=variable)
        for variable in given.doubtful:
            self._complain("doubtful_variable", "warning", given.origin, key=override.key, variable=variable)
        if override.sweeps:
            value = given.text.partition("=")[2]
            self._complain(
                "sweep",
                "error",
                given.origin,
                f"{override.sign}{override.key}='[{value}]'",
                key=override.key,
                value=value[:80],
            )
        earlier = self._given.get(override.key)
        if earlier is not None and override.sign != "~":
            line = earlier.origin.line or 0
            self._complain(
                "given_twice", "warning", given.origin, key=override.key, name=earlier.origin.name, line=line
            )
        self._given[override.key] = given

    def _put(self, override: Override, given: Given) -> None:
        key, origin = override.key, given.origin
        if override.sign == "~":
            self._delete(override, origin)
            return
        written = given.text.lstrip("+")
        if override.sign == "" and not self._fits(override):
            self._unknown(key, written, origin)
        elif override.sign == "+" and self._current(key, origin) is not None and not _merges(override.value):
            self._stops("already_there", origin, written, key)
        elif self._fits_no_list(override):
            self._complain("fits_no_list", "error", origin, key=key)
        if not override.sweeps:
            self._tree.put(key, override.value, origin)

    def _fits(self, override: Override) -> bool:
        """Whether Hydra takes a value without a +: all keys of it are there, as are those of a mapping."""
        if override.key in self._tree:
            return self._takes(override.key, override.value)
        above, _, last = override.key.rpartition(".")
        holder = self._tree.get(above)
        return holder is not None and isinstance(holder.value, list) and _is_item(last, holder.value)

    def _takes(self, key: str, value: Value) -> bool:
        leaf = self._tree.get(key)
        if not isinstance(value, dict) or (leaf is not None and not isinstance(leaf.value, dict)):
            return True
        return all(
            f"{key}.{name}" in self._tree and self._takes(f"{key}.{name}", below) for name, below in value.items()
        )

    def _delete(self, override: Override, origin: Origin) -> None:
        current = self._current(override.key, origin)
        if current is None:
            self._complain("nothing_to_delete", "error", origin, key=override.key)
        elif override.value is not None and override.value != current:
            said, there = str(override.value)[:80], str(current)[:80]
            self._complain(
                "delete_differs", "error", origin, f"~{override.key}", key=override.key, value=said, there=there
            )
        elif override.key not in self._tree:
            self._complain("fits_no_list", "error", origin, key=override.key)
        self._tree.remove(override.key)

    def _current(self, key: str, origin: Origin) -> Value:
        """What Hydra finds at a key: null where there is nothing, or nothing yet. It follows references to find out."""
        references = References(self._tree)
        try:
            value = references.found(key)
        except KeyError:
            return None
        except UnresolvedError as error:
            if error.what != "environment":
                self._complain(error.what, "error", origin, key=key, reference=error.reference[:100])
            return None
        return None if value == UNTOLD else value

    def _fits_no_list(self, override: Override) -> bool:
        """Whether it is meant for a list and is no item of it, or no list."""
        above, _, last = override.key.rpartition(".")
        holder, here = self._tree.get(above), self._tree.get(override.key)
        if here is not None and isinstance(here.value, list):
            return isinstance(override.value, dict)
        return holder is not None and isinstance(holder.value, list) and not _is_item(last, holder.value)

    def _unknown(self, key: str, written: str, origin: Origin) -> None:
        """A key that is none: most likely the nearest was meant; where there is none, one is added."""
        nearest = self._nearest(key)
        if nearest is None:
            self._stops("not_in_struct", origin, f"+{written}", key)
            return
        meant = f"{nearest}={written.partition('=')[2]}"
        self._stops("misspelt", origin, meant, key, nearest=nearest)

    def _stops(self, what: str, origin: Origin, suggestion: str, key: str, **values: str) -> None:
        """What Hydra stops at, if the program's configuration is the one that is taken for it."""
        if self._is_certain(key):
            self._complain(what, "error", origin, suggestion, key=key, **values)
        else:
            self._complain(f"perhaps_{what}", "warning", origin, suggestion, key=key, **values)

    def _complain(
        self, what: str, severity: Severity, origin: Origin, suggestion: str | None = None, **values: str | int
    ) -> None:
        self.complaints.append(
            Complaint(
                what=what, severity=severity, name=origin.name, line=origin.line, values=values, suggestion=suggestion
            )
        )


def _merges(value: Value) -> bool:
    return isinstance(value, list | dict)


def _is_item(name: str, of: list[Value]) -> bool:
    return name.isdecimal() and int(name) < len(of)


def parsed(given: Given) -> Override | None:
    """An override; None where Hydra could not read it. What holds an unknown variable is taken as it is written."""
    try:
        return parse_override(given.text)
    except NoOverrideError:
        left, equals, right = given.text.partition("=")
        if not given.unresolved or not equals:
            return None
    try:
        return parse_override(f"{left}=")._replace(value=right)
    except NoOverrideError:
        return None
