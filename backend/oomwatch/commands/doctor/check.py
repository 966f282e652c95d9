"""`oomwatch doctor`: what a training's configuration means, and whether it fits, before it is started."""

import argparse
import shutil
import sys

import msgspec

from oomwatch.commands.client import ServerError
from oomwatch.commands.doctor.here import Here, cards_here
from oomwatch.commands.doctor.inputs import card_of, divided, model_beside, model_of, sources_of
from oomwatch.commands.doctor.live import configuration_of
from oomwatch.commands.doctor_flags import FOR_ITSELF, given_of
from oomwatch.commands.size import size_of
from oomwatch.doctor.read import Reading, ReadingError, Source, read
from oomwatch.doctor.read.words import words_of
from oomwatch.doctor.report import Given, Report, make_report
from oomwatch.doctor.show import page_of
from oomwatch.doctor.show.layout import COLUMNS
from oomwatch.options import SettingError
from oomwatch.plan.cards import card_named

REFUSED, MISUSED = 1, 2
STOPPING = ("refused", "will_not_fit")


def run(options: argparse.Namespace) -> int:
    """Report on a configuration. Gives the exit status."""
    try:
        report = _report(options)
    except (ReadingError, ServerError) as error:
        print(f"oomwatch: {_why(error, options.language)}", file=sys.stderr)
        return MISUSED
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=1).decode())
    else:
        print(page_of(report, options.language, shutil.get_terminal_size((COLUMNS, 0)).columns))
    return REFUSED if report.verdict in STOPPING else 0


def _report(options: argparse.Namespace) -> Report:
    if unfit := given_of(options, FOR_ITSELF):
        raise SettingError(
            f"{' '.join(unfit)}: only with --self, which looks at this installation; a training's configuration is "
            "named without a flag"
        )
    paths, overrides = divided(options.words)
    here = cards_here() if options.gpu == "here" else None
    sources, card = sources_of(paths), here.card if here else card_of(options.gpu)
    if options.run is not None:
        told = configuration_of(options)
        sources, card = [told.source, *sources], card or (card_named(told.card) if told.card else None)
    elif options.server is not None:
        raise SettingError("flag --server: say with --run NAME which run's configuration to look at")
    reading = _read(sources, [*overrides, *_machine(options, here)], options.verl)
    given = Given(
        shape=model_of(options.model, "--model") or model_beside(reading.model_path),
        critic_shape=model_of(options.critic_model, "--critic-model") or model_beside(reading.critic_model_path),
        card=card,
        host_bytes=size_of(options.host_memory, "--host-memory"),
        mean_length_tokens=options.mean_length,
    )
    return make_report(reading, given, options.language, with_defaults=options.all_settings)


def _read(sources: list[Source], overrides: list[str], version: str | None) -> Reading:
    if not sources and not overrides:
        raise SettingError("name a file, a folder or - to read; oomwatch doctor --help has examples")
    return read(sources, overrides, version)


def _machine(options: argparse.Namespace, here: Here | None) -> list[str]:
    """What flags say of the machine, as overrides over all others."""
    gpus = options.gpus if options.gpus is not None else here.gpus if here else None
    told = (("trainer.n_gpus_per_node", gpus), ("trainer.nnodes", options.nodes))
    for (_, value), flag in zip(told, ("--gpus", "--nodes"), strict=True):
        if value is not None and value < 1:
            raise SettingError(f"flag {flag}: must be 1 at least")
    return [f"{key}={value}" for key, value in told if value is not None]


def _why(error: Exception, language: str) -> str:
    if not isinstance(error, ReadingError):
        return str(error)
    words = words_of(error, "zh" if language == "zh" else "en")
    return f"{error.place}: {words.what} {words.remedy}"
