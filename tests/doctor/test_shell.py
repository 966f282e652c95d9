"""Launch scripts as text against bash itself, which is given the same scripts to run."""

import shutil
import subprocess

import pytest

from oomwatch.doctor.read import ReadingError, Source, read
from oomwatch.doctor.read.shell.script import Script, read_script

SCRIPTS = [
    "run a.b=1 c.d=2",
    "run a.b=1 \\\n  c.d=2 \\\n  e.f=3\nrun again=1",
    "run 'a b' \"c d\" e\\ f",
    "A=5\nrun x=$A y=${A} z=\"$A\" w='$A'",
    "A='1 2'\nrun $A \"$A\" x$A\"y\"",
    "run ${A:-7} ${A-8} \"${A:-a b}\" ${A:-a b} ${A:-${B:-3}}",
    "A=\nrun x${A:-7} y${A-8}z ${A:+set} ${B:+set}",
    "A=1\nrun ${A:+set$A} ${A+x}",
    "A=1; B=$A$A; A=2\nrun $A $B",
    "ARGS=(a=1 'b c' \"d\")\nrun \"${ARGS[@]}\" ${ARGS[@]} x${ARGS[*]}y \"${ARGS[*]}\"",
    "ARGS=(\n  a=1  # one\n  # two\n  b=2\n)\nARGS+=(c=3)\nrun \"${ARGS[@]}\"",
    "ARGS=()\nrun \"${ARGS[@]}\" end",
    "A=a\nA+=b\nrun $A",
    "export A=1 B='2 3'\nrun $A \"$B\"",
    "readonly A=1\ndeclare -x B=2\nrun $A $B",
    "run $((1 + 2)) x=$((2*(3+4))) $((7/2)) $((-7/2)) $((7%3)) $((-7%3))",
    "n=4\nrun $((n*2)) $((${n}*3)) $(( $n + 1 ))",
    "run a  # comment\nrun b",
    "run a#b '#c' \\#d",
    "run a; run b && run c",
    "run a > /dev/null 2>&1 < /dev/null\nrun b 2>/dev/null",
    "run a | cat\n",
    "cat > /dev/null <<EOF\nrun no\nEOF\nrun yes",
    "cat > /dev/null <<-'EOF'\n\trun no\n\tEOF\nrun yes",
    "cat <<< 'run no' > /dev/null\nrun yes",
    "X=1 run a",
    "if true; then\n  run a\nfi\nrun b",
    "for x in 1; do\n  run a\ndone",
    "case a in\n  a) run x ;;\nesac",
    "f() {\n  run inner\n}\nf",
    "run [1,2] '[\"a\",\"b\"]' x=\\[1\\] {a:1}",
    "run a=\"b\\\"c\" 'it'\\''s' \"a\\nb\" \"\\$x\"",
    "run $'a b' x",
    "run \"multi\nline\"",
    "run ~a.b --x=1 -m y",
    "set -x\nrun a",
    "run \"$@\" end $@ $* \"${@:2}\" ${*:1}",
    "run a\\\nb",
    "run ''  \"\" end",
    "[ -z \"$A\" ] && A=3\nrun $A",
    "run a &\nwait",
    "A=x\nrun $A.b=1 ${A}_c=2 $A/d",
    "run $ a$ $. \"$\"",
    "time run a",
    "{ run a; }",
    "( run a )",
    "! run a",
    "ARGS=(a b)\nrun $ARGS ${ARGS} ${ARGS[@]:-x}",
    "run a \\\n\\\n b",
]  # fmt: skip


VERL = "python3 -m verl.trainer.main_ppo"
TWO = "data.train_batch_size=60 trainer.nnodes=2"


def ours(text: str) -> list[list[str]]:
    commands = read_script(text, "train.sh").commands
    words = ([word.text for word in command.words] for command in commands)
    return [one[1:] for one in words if one[0] == "run"]


def bashs(text: str) -> list[list[str]]:
    bash = shutil.which("bash")
    assert bash is not None
    own = 'exec 9>&1\nrun() { printf \'%s\\0\' "$#" "$@" >&9; }\nset +e\n'
    program = [bash, "--norc", "--noprofile", "-c", f"{own}{text}"]
    done = subprocess.run(
        program, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=60, check=False
    )
    found, pieces = [], done.stdout.split("\0")[:-1]
    while pieces:
        count = int(pieces.pop(0))
        found.append(pieces[:count])
        pieces = pieces[count:]
    return found


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_script_says_what_bash_makes_of_it(text: str) -> None:
    assert ours(text) == bashs(text)


def one(text: str) -> Script:
    return read_script(text, "train.sh")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("run x=$A", ("A",)),
        ("run x=${A}", ("A",)),
        ("run x=$(date +%s)", ("date +%s",)),
        ("run x=`date`", ("date",)),
        ("run x=${A%.*}", ("A%.*",)),
        ("run x=$((A*2))", ("A*2",)),
        ("A=$HOME/m\nrun x=$A", ("HOME",)),
        ("run x=$1", ("1",)),
        ("run x=${1:-5}", ()),
        ("for A in 1 2; do run x=$A; done", ("A",)),
    ],
)
def test_what_only_running_tells_is_named(text: str, names: tuple[str, ...]) -> None:
    assert one(text).commands[-1].words[1].unresolved == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("if [ $X = 1 ]; then A=1; else A=2; fi\nrun x=$A", ("A",)),
        ("A=1\nrun x=$A", ()),
        ("test -n '' || A=1\nB=$A\nrun x=$B", ("A",)),
    ],
)
def test_what_hangs_on_a_branch_is_named(text: str, names: tuple[str, ...]) -> None:
    assert one(text).commands[-1].words[1].doubtful == names


@pytest.mark.parametrize(
    ("text", "sign", "line"),
    [
        ("a\nrun 'x", "'", 2),
        ('run "x\ny', '"', 1),
        ("run ${A", "${", 1),
        ("\nrun $(a", "$(", 2),
        ("A=(b", "(", 1),
        ("run `a", "`", 1),
    ],
)
def test_what_is_not_closed_is_an_error_with_its_place(text: str, sign: str, line: int) -> None:
    with pytest.raises(ReadingError) as caught:
        read_script(text, "train.sh")
    assert (caught.value.what, caught.value.line, caught.value.values) == ("unclosed", line, {"sign": sign})


def whats(text: str) -> list[tuple[str, int | None]]:
    return [(one.what, one.line) for one in read([Source("train.sh", text)], (), "0.5").complaints]


def test_a_comment_within_the_command_cuts_off_what_follows() -> None:
    lines = [VERL, "data.train_batch_size=60", "# data.seed=1", "trainer.nnodes=2", "trainer.n_gpus_per_node=6"]
    text = " \\\n ".join(lines)
    assert whats(text) == [("lost_by_comment", 4)]
    assert read([Source("train.sh", text)], (), "0.5").config["trainer.nnodes"] == 1


def test_a_blank_behind_the_backslash_cuts_off_what_follows() -> None:
    text = "python3 -m verl.trainer.main_ppo \\\n data.train_batch_size=60 \\ \n trainer.nnodes=2"
    assert whats(text) == [("lost_by_blank", 3)]


def test_lines_of_windows_do_not_continue() -> None:
    assert whats("python3 -m verl.trainer.main_ppo \\\r\n data.train_batch_size=60") == [("carriage_returns", 1)]


def test_settings_do_not_begin_with_dashes() -> None:
    assert whats("python3 -m verl.trainer.main_ppo --data.train_batch_size=60") == [("dashes", 1)]


def test_dashes_on_the_doctors_own_command_line_are_nobodys_mistake() -> None:
    reading = read([], ["--data.train_batch_size=60"], "0.5")
    assert (reading.config["data.train_batch_size"], reading.complaints) == (60, ())


def test_of_several_commands_the_last_one_is_read() -> None:
    text = f"{VERL} data.train_batch_size=1\n{VERL} data.train_batch_size=2"
    reading = read([Source("train.sh", text)], (), "0.5")
    assert reading.config["data.train_batch_size"] == 2
    assert [one.what for one in reading.complaints] == ["several_commands"]


@pytest.mark.parametrize(
    "text",
    [
        f"{VERL} {TWO}",
        f"torchrun --nproc_per_node=8 -m verl.trainer.main_ppo {TWO} | tee x.log",
        f"ray job submit --address=http://x --runtime-env=a.yaml -- {VERL} {TWO}",
        f"nohup python recipe/dapo/main_dapo.py {TWO} > x.log 2>&1 &",
        f"srun bash -c '{VERL} {TWO}'",
        f"PYTHONUNBUFFERED=1 python -m verl.trainer.main_ppo --config-path=config --config-name='ppo_trainer' {TWO}",
        f"{TWO}",
        "data.train_batch_size=60\ntrainer.nnodes=2\n",
        f"{VERL} -cn ppo_trainer {TWO}",
        f"if true; then\n {VERL} {TWO}\nfi",
        f"deepspeed_or_what {TWO}",
    ],
)  # fmt: skip
def test_a_command_is_found_whatever_starts_it(text: str) -> None:
    reading = read([Source("-", text)], (), "0.5")
    config = reading.config
    assert (config["data.train_batch_size"], config["trainer.nnodes"], reading.complaints) == (60, 2, ())


def test_a_configuration_of_ones_own_is_asked_for() -> None:
    text = "python3 -m verl.trainer.main_ppo --config-name=mine data.train_batch_size=60"
    assert whats(text) == [("missing_file", None)]
    own = Source("conf/mine.yaml", "data:\n  train_batch_size: 5\n  seed: 1\n")
    assert read([own, Source("train.sh", text)], (), "0.9").complaints[0].what != "missing_file"


def test_a_variable_that_is_unknown_leaves_the_setting_as_it_is_written() -> None:
    text = f"{VERL} actor_rollout_ref.model.path=$HOME/models/Qwen2.5-7B data.train_batch_size=${{BS}}"
    reading = read([Source("train.sh", text)], (), "0.5")
    assert reading.model_path == "$HOME/models/Qwen2.5-7B"
    assert reading.config["data.train_batch_size"] == "$BS"
    complaints = [(one.what, one.values["key"]) for one in reading.complaints]
    assert complaints == [("unresolved_variable", "data.train_batch_size")]  # a path's last part is told
