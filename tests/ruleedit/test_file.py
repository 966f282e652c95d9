"""A rule file on disk is replaced whole or not at all."""

from pathlib import Path

import pytest

from oomwatch.ruleedit.file import ChangedMeanwhileError, NotWritableError, Replacement, backup_of
from oomwatch.ruleedit.mask import digest_of


def test_the_new_text_takes_the_old_ones_place_which_is_kept_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "alerts.yaml"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    new = Replacement(path, "new 中", instead_of=None)
    assert path.read_text(encoding="utf-8") == "old"
    new.take()
    assert path.read_text(encoding="utf-8") == "new 中"
    assert new.digest == digest_of("new 中")
    assert backup_of(path).read_text(encoding="utf-8") == "old"
    assert path.stat().st_mode & 0o777 == 0o640
    assert backup_of(path).stat().st_mode & 0o777 == 0o640
    assert sorted(one.name for one in tmp_path.iterdir()) == ["alerts.yaml", "alerts.yaml.bak"]


def test_what_is_dropped_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "alerts.yaml"
    path.write_text("old", encoding="utf-8")
    Replacement(path, "new", instead_of=None).drop()
    assert [one.name for one in tmp_path.iterdir()] == ["alerts.yaml"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "real.yaml"
    target.write_text("old", encoding="utf-8")
    link = tmp_path / "alerts.yaml"
    link.symlink_to(target)
    Replacement(link, "new", instead_of=None).take()
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_a_folder_that_is_gone_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotWritableError, match="cannot be replaced: No such file or directory; "):
        Replacement(tmp_path / "gone" / "alerts.yaml", "new", instead_of=None)


def test_a_folder_that_may_not_be_written_is_told() -> None:
    """The kernel's own folder, in which nobody makes files: root, too, may write into any other."""
    with pytest.raises(NotWritableError, match=r"Permission denied|Operation not permitted|Read-only file system"):
        Replacement(Path("/sys/alerts.yaml"), "new", instead_of=None)


def test_a_backup_that_cannot_be_kept_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "alerts.yaml"
    path.write_text("old", encoding="utf-8")
    backup_of(path).mkdir()
    (backup_of(path) / "something").touch()
    with pytest.raises(NotWritableError):
        Replacement(path, "new", instead_of=None).take()
    assert path.read_text(encoding="utf-8") == "old"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["alerts.yaml", "alerts.yaml.bak"]


def test_a_file_that_somebody_else_changed_meanwhile_is_left_to_them(tmp_path: Path) -> None:
    path = tmp_path / "alerts.yaml"
    path.write_text("old", encoding="utf-8")
    new = Replacement(path, "new", instead_of="old")
    path.write_text("theirs", encoding="utf-8")
    with pytest.raises(ChangedMeanwhileError, match="changed meanwhile"):
        new.take()
    assert path.read_text(encoding="utf-8") == "theirs"
    assert [one.name for one in tmp_path.iterdir()] == ["alerts.yaml"]
