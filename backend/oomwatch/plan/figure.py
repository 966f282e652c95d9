"""A whole number that keeps how it came about: its formula with the user's numbers, and what nobody told."""

from msgspec import Struct


class Figure(Struct, frozen=True):
    """None where it is not known: `missing` names the settings that would tell."""

    value: int | None
    formula: str = ""  # "60 × 12"; a setting's is its value
    assumed: tuple[str, ...] = ()  # settings that were taken to be verl's default
    missing: tuple[str, ...] = ()

    def __mul__(self, other: "Figure") -> "Figure":
        return self._with(other, "×", None if None in _both(self, other) else _product(self, other))

    def __add__(self, other: "Figure") -> "Figure":
        return self._with(other, "+", None if None in _both(self, other) else sum(filter(None, _both(self, other))))

    def __floordiv__(self, other: "Figure") -> "Figure":
        """Rounded down, as verl does; by zero it is not known."""
        return self._with(other, "/", _quotient(self.value, other.value))

    def up(self, other: "Figure") -> "Figure":
        """Rounded up: how many of the other's size hold all."""
        floor = _quotient(None if self.value is None else -self.value, other.value)
        return self._with(other, "/", None if floor is None else -floor)

    def known_as(self) -> "Figure":
        """The same, whose formula is its value: in what is made of it, it stands as one number."""
        return Figure(self.value, "" if self.value is None else str(self.value), self.assumed, self.missing)

    def _with(self, other: "Figure", sign: str, value: int | None) -> "Figure":
        formula = f"{_factor(self) if sign == '×' else self.formula} {sign} {_operand(other)}"
        assumed = tuple(dict.fromkeys(self.assumed + other.assumed))
        missing = tuple(dict.fromkeys(self.missing + other.missing))
        return Figure(value, "" if value is None else formula, assumed, missing)


def _both(one: Figure, other: Figure) -> tuple[int | None, int | None]:
    return one.value, other.value


def _product(one: Figure, other: Figure) -> int:
    return (one.value or 0) * (other.value or 0)


def _quotient(of: int | None, by: int | None) -> int | None:
    return of // by if of is not None and by else None


def _factor(of: Figure) -> str:
    return f"({of.formula})" if "+" in of.formula or "/" in of.formula else of.formula


def _operand(of: Figure) -> str:
    return f"({of.formula})" if " " in of.formula else of.formula
