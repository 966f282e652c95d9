"""Helm, where it has been brought."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.helm.helm import CHART, ROOT, Helm
from tests.missing import do_without


@pytest.fixture(scope="module")
def helm() -> Iterator[Helm]:
    folder = ROOT / ".helm"
    if not (folder / "helm_python").exists():
        do_without("Helm's engine", "make helm-sdk, which needs pip's way to packages")
    program = [sys.executable, str(ROOT / "tests/helm/renderer.py"), str(folder), str(CHART)]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        yield Helm(process)
        process.kill()
