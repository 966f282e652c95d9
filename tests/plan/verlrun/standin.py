"""Modules that stand where verl imports what these tests do not install: torch and its like, which take gigabytes.

They have every name and do nothing: what verl's configuration classes and checks import is all that touches them.
A module that is not listed here is still missing, so that verl's own ways around missing packages are taken.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

HEAVY = {
    "codetiming",
    "datasets",
    "numpy",
    "orjson",
    "pandas",
    "peft",
    "ray",
    "tensordict",
    "torch",
    "torchdata",
    "transformers",
}
# verl's own packages whose __init__ imports the whole world; what is asked of them lies in their modules.
BARE = (
    "verl",
    "verl.utils",
    "verl.workers",
    "verl.workers.rollout",
    "verl.workers.rollout.vllm_rollout",
    "verl.trainer",
    "verl.trainer.ppo",
)


class _Anything(type):
    """A class with every attribute, each of them such a class again."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})

    def __bool__(cls) -> bool:
        return False  # no GPU, no NPU, nothing is available

    def __call__(cls, *args: Any, **_kwargs: Any) -> Any:
        """As a decorator it changes nothing."""
        return args[0] if len(args) == 1 and callable(args[0]) else _Anything("made", (), {})

    def __or__(cls, _other: object) -> Any:
        return object

    __ror__ = __or__


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Bare(_StandIn):
    """A package of verl's without its __init__: its modules are real."""

    def __getattr__(self, name: str) -> Any:
        if any((Path(folder) / f"{name}{end}").exists() for folder in self.__path__ for end in ("", ".py")):
            return importlib.import_module(f"{self.__name__}.{name}")
        return super().__getattr__(name)


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.split(".", maxsplit=1)[0] in HEAVY else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def stand_in(release: Path) -> None:
    """From here on `import verl...` finds this release, and what is heavy is stood in for."""
    sys.meta_path.insert(0, _Finder())
    for name in BARE:
        folder = release.joinpath(*name.split("."))
        if folder.is_dir():
            package = _Bare(name)
            package.__path__ = [str(folder)]
            sys.modules[name] = package
