"""`oomwatch rules export`: the rules, for Prometheus."""

import argparse
import sys

from oomwatch.oserror import with_remedy
from oomwatch.promrules.rulefile import prometheus_rules
from oomwatch.rulefile import RuleFileError, read_rules
from oomwatch.settings import Settings, rules_path

FAILED = 1


def run(options: argparse.Namespace) -> int:
    """Write the file, or say why not. Gives the exit status."""
    try:
        found = read_rules(rules_path(Settings(rules=options.rules)))
        text = prometheus_rules(found.rules, keep_firing_for=options.keep_firing_for)
        if options.file is None:
            sys.stdout.write(text)
        else:
            options.file.write_text(text, encoding="utf-8")
    except RuleFileError as error:
        print(error, file=sys.stderr)
        return FAILED
    except BrokenPipeError:  # of standard output
        raise
    except OSError as error:
        print(f"oomwatch: cannot write {options.file}: {with_remedy(error)}", file=sys.stderr)
        return FAILED
    return 0
