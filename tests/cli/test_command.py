"""The command as a user meets it: what it prints where, and its exit status."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Command = Callable[..., "subprocess.CompletedProcess[str]"]


def one_line_on_stderr(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 2, done
    assert done.stdout == "", done
    told = [line for line in done.stderr.splitlines() if "the module speaks" not in line]
    assert len(told) == 1, done.stderr
    assert told[0].startswith("orchestra: ")
    return told[0]


def test_expand_prints_the_source_that_was_generated(command: Command) -> None:
    done = command("expand", "shop:Circle")
    assert done.returncode == 0, done.stderr
    assert "Order" in done.stdout and "till" in done.stdout
    assert "\x1b" not in done.stdout
    compile(done.stdout, "<expanded>", "exec")


def test_expand_adds_the_sources_of_the_boxes_that_are_used(command: Command) -> None:
    boxed, unboxed = command("expand", "shop:Shop").stdout, command("expand", "shop:Circle").stdout
    compile(boxed, "<expanded>", "exec")
    assert "quantity" in boxed
    assert "quantity" not in unboxed


def test_expand_is_highlighted_on_a_terminal(command: Command) -> None:
    done = command("expand", "shop:Circle", FORCE_COLOR="1", TERM="xterm-256color")
    assert done.returncode == 0
    assert "\x1b[" in done.stdout


def test_what_a_module_prints_while_it_is_imported_goes_to_stderr(command: Command) -> None:
    done = command("graph", "shop:Circle")
    assert done.stdout.startswith("digraph ")
    assert "the module speaks" in done.stderr


def test_graph_draws_for_graphviz_by_default_and_for_mermaid(command: Command) -> None:
    dot, mermaid = command("graph", "shop:Circle"), command("graph", "shop:Circle", "--format", "mermaid")
    assert dot.returncode == mermaid.returncode == 0
    assert '"desk" -> "till" [label="Receipt' in dot.stdout
    assert mermaid.stdout.startswith("flowchart LR\n")
    assert "desk" in mermaid.stdout


def test_an_heir_that_adds_nothing_has_the_plan_of_its_base(command: Command) -> None:
    assert command("expand", "shop:Heir").stdout == command("expand", "shop:Circle").stdout


def test_graph_writes_a_file(command: Command, folder: Path) -> None:
    done = command("graph", "shop:Circle", "--format", "mermaid", "-o", "circle.mmd")
    assert (done.returncode, done.stdout) == (0, "")
    assert (folder / "circle.mmd").read_text(encoding="utf-8").startswith("flowchart LR\n")


def test_a_file_that_cannot_be_written_is_one_line(command: Command) -> None:
    assert "nowhere" in one_line_on_stderr(command("graph", "shop:Circle", "-o", "nowhere/circle.dot"))


def test_svg_without_graphviz_says_how_to_install_it(command: Command, folder: Path) -> None:
    told = one_line_on_stderr(command("graph", "shop:Circle", "--format", "svg", PATH=str(folder)))
    assert "Graphviz" in told
    assert "apt install graphviz" in told


def a_dot(folder: Path, body: str) -> str:
    """A stand-in for the command `dot`, and the PATH it is found on."""
    program = folder / "bin" / "dot"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport sys\n{body}", encoding="utf-8")
    program.chmod(0o755)
    return str(program.parent)


def test_svg_is_what_graphviz_makes_of_the_dot_drawing(command: Command, folder: Path) -> None:
    path = a_dot(folder, "print('<svg>', sys.argv[1], sys.stdin.read())")
    done = command("graph", "shop:Circle", "--format", "svg", PATH=path)
    assert done.returncode == 0
    assert done.stdout.startswith('<svg> -Tsvg digraph "Circle"')


def test_a_failure_of_graphviz_is_one_line_and_status_1(command: Command, folder: Path) -> None:
    path = a_dot(folder, "sys.stdin.read(); sys.exit('no such\\nfont')")
    done = command("graph", "shop:Circle", "--format", "svg", PATH=path)
    assert done.returncode == 1
    assert "orchestra: `dot` failed with status 1: no such font" in done.stderr


def test_check_of_a_sound_orchestra_ends_with_status_0(command: Command) -> None:
    done = command("check", "shop:Booth")
    assert done.returncode == 0, done.stderr
    assert "info: no subsystem declares to send Order (to 'teller')" in done.stdout
    assert done.stdout.endswith("0 errors, 0 warnings, 1 info\n")


def test_check_fails_for_a_cycle_that_can_lock_up(command: Command) -> None:
    done = command("check", "shop:Circle")
    assert done.returncode == 1
    assert "error: cycle desk -[Receipt]-> till -[Order]-> desk can lock up" in done.stdout


def test_check_only_informs_of_a_cycle_that_is_broken(command: Command) -> None:
    done = command("check", "shop:Broken")
    assert done.returncode == 0
    assert "cannot lock up: no send waits without a limit on desk -> till" in done.stdout


def test_an_unbounded_lane_is_a_warning_that_fails_only_a_strict_check(command: Command) -> None:
    done, strict = command("check", "shop:Wide"), command("check", "--strict", "shop:Wide")
    assert (done.returncode, strict.returncode) == (0, 1)
    assert "warning: the DATA lane of 'desk' is unbounded" in done.stdout


def test_check_tells_which_lanes_may_lose_messages_and_by_what(command: Command) -> None:
    done = command("check", "shop:Leaky")
    assert done.returncode == 0, done
    lossy = [line for line in done.stdout.splitlines() if "may lose messages" in line]
    full = "may lose messages when it is full"
    assert lossy == [
        f"info: the DATA_HIGH lane of 'desk' {full}: BlockFirst, senders are freed after 5 s",
        f"info: the DATA lane of 'desk' {full}: senders are freed after 5 s",
        f"info: the DATA_LOW lane of 'desk' {full}: DropOldest",
        f"info: the DATA lane of 'till' {full}: Drop after 5 ms",
    ]
    assert "may lose messages" not in command("check", "shop:Broken").stdout


def test_check_says_that_a_lane_which_drops_breaks_a_cycle(command: Command) -> None:
    told = command("check", "shop:Leaky").stdout
    assert "cannot lock up: no send waits without a limit on desk -> till" in told


def test_graph_shows_the_policies(command: Command) -> None:
    told = command("graph", "shop:Leaky").stdout
    assert "DATA 1024 Drop after 5 ms" in told and "DATA_LOW 1 DropOldest" in told


def test_check_tells_what_rides_beside_a_box_and_what_a_box_is_not_worth(command: Command) -> None:
    told = command("check", "shop:Shop").stdout
    assert "Basket" in told and "note" in told
    assert "Order" in told and "costs more than it gives" in told


def test_run_takes_a_function_that_returns_an_instance(command: Command) -> None:
    done = command("run", "shop:booth")
    assert done.returncode == 0, done.stderr
    assert "the teller ran" in done.stdout


def test_an_error_of_the_users_own_function_keeps_its_traceback(command: Command) -> None:
    done = command("run", "shop:fails")
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "from the user" in done.stderr


def test_the_traceback_of_a_failure_has_the_users_lines_alone(command: Command) -> None:
    done = command("run", "shop:sink")
    assert done.returncode == 1
    places = re.findall(r'File "(.*)", line \d+, in (\w+)', done.stderr)
    assert {Path(file).name for file, _ in places} == {"shop.py"}
    assert {name for _, name in places} == {"started", "pour"}
    assert "KeyError: 'the jug'" in done.stderr
    assert "OrchestraError: " in done.stderr
    assert done.stderr.endswith("Frames of orchestra and asyncio are left out; --verbose shows them.\n")


def test_verbose_shows_every_frame(command: Command) -> None:
    done = command("run", "shop:sink", "--verbose")
    assert done.returncode == 1
    assert "in pour" in done.stderr and "launch.py" in done.stderr
    assert "left out" not in done.stderr


def test_a_timeout_below_zero_is_refused(command: Command) -> None:
    assert "--timeout" in one_line_on_stderr(command("run", "shop:booth", "--timeout", "-1"))


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("shop:needs", "cannot be called without arguments (missing a required argument: 'argument'):"),
        ("shop:Booth", "cannot be called without arguments"),
        ("shop:nothing", "returned a NoneType, not an orchestra"),
        ("shop:Plain", "is no orchestra"),
        ("shop:number", "cannot be called without arguments"),
    ],
)
def test_run_refuses_what_gives_no_instance(command: Command, target: str, told: str) -> None:
    assert told in one_line_on_stderr(command("run", target))


@pytest.mark.parametrize("verb", ["expand", "run"])
@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("nowhere:App", "there is no module 'nowhere'"),
        ("shop.deep:App", "there is no module 'shop.deep'"),
        ("shop:Nope", "module 'shop' has no 'Nope'"),
        ("shop:Circle.Nope", "object 'shop.Circle' has no 'Nope'"),
        ("shop", "write MODULE:NAME"),
        ("shop:", "write MODULE:NAME"),
        (":Shop", "write MODULE:NAME"),
        ("shop.py:Shop", "'shop.py:Shop' names a file: write shop:Shop"),
        ("./shop:Shop", "write MODULE:NAME"),
        ("shop:Shop:Shop", "write MODULE:NAME"),
        ("", "write MODULE:NAME"),
    ],
)
def test_a_wrong_target_is_one_line_and_status_2(command: Command, verb: str, target: str, told: str) -> None:
    assert told in one_line_on_stderr(command(verb, target))


@pytest.mark.parametrize(
    "words", [("graph",), ("graph", "--format", "mermaid"), ("check",), ("check", "--strict")]
)
def test_a_wrong_target_is_one_line_for_every_command(command: Command, words: tuple[str, ...]) -> None:
    assert "has no 'Nope'" in one_line_on_stderr(command(*words, "shop:Nope"))
    assert "is no orchestra" in one_line_on_stderr(command(*words, "shop:Plain"))


@pytest.mark.parametrize(
    ("name", "source", "told"),
    [
        ("broken", "def f(:\n", "SyntaxError"),
        ("divides", "\n1 / 0\n", "ZeroDivisionError: division by zero"),
        ("imports", "import nowhere_at_all\n", "No module named 'nowhere_at_all'"),
        ("leaves", "raise SystemExit(0)\n", "SystemExit"),
        ("wordy", "raise ValueError('one\\ntwo')\n", "one two"),
        (
            "undeclared",
            "from orchestra import orchestra\nclass H: ...\n@orchestra(signal=H, event=H)\nclass App: ...\n",
            "undeclared.py",
        ),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_line_that_says_why_and_where(
    command: Command, folder: Path, name: str, source: str, told: str
) -> None:
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    line = one_line_on_stderr(command("expand", f"{name}:App"))
    assert told in line
    assert f"{name}.py" in line


def test_wrong_words_are_one_line_and_status_2(command: Command) -> None:
    assert "nope" in one_line_on_stderr(command("nope"))
    assert "TARGET" in one_line_on_stderr(command("expand"))
    assert "--loud" in one_line_on_stderr(command("expand", "shop:Shop", "--loud"))
    assert "png" in one_line_on_stderr(command("graph", "shop:Shop", "--format", "png"))


def test_version_is_told(command: Command) -> None:
    done = command("--version")
    assert done.returncode == 0
    assert done.stdout.strip()


def test_help_names_the_commands(command: Command) -> None:
    done = command("--help")
    assert done.returncode == 0
    assert all(verb in done.stdout for verb in ("expand", "graph", "check", "run"))


@pytest.mark.parametrize(
    "words", [("expand", "shop:Circle"), ("graph", "shop:Circle"), ("check", "shop:Circle")]
)
def test_a_reader_that_stops_early_ends_the_command_quietly(folder: Path, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "orchestra", *words],
        cwd=folder,
        stdout=writing,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=50,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    os.close(writing)
    assert done.returncode in (0, 1)
    assert done.stderr == "the module speaks while it is imported\n"


@pytest.mark.parametrize("missing", ["cyclopts", "rich"])
def test_without_the_extra_the_command_says_how_to_get_it(missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; "
        "from orchestra.__main__ import main; sys.exit(main(['--version']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    assert "pip install 'orchestra-wiring[cli]'" in one_line_on_stderr(done)


def test_importing_the_library_imports_neither_cyclopts_nor_rich() -> None:
    program = "import sys, orchestra; print([name for name in ('cyclopts', 'rich') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=50,
        check=True,
    )
    assert done.stdout == "[]\n"


DROPS = """
from shop import *

class Once(Actor):
    def started(self, ctx):
        ctx.try_send(Order(1))
        ctx.try_send(Order(2))

    def handle(self, ctx, message):
        ctx.finish()

@orchestra(signal=Halt, event=Halt)
class App:
    once: Once = subsystem(consumes=Order, sends=[Order])

def app():
    return App(once=Once())
"""


def test_run_shows_what_the_library_warns_of(command: Command, folder: Path) -> None:
    (folder / "drops.py").write_text(DROPS, encoding="utf-8")
    done = command("run", "drops:app")
    assert done.returncode == 0
    assert "orchestra: Order to 'once' was not handled: finished" in done.stderr


def test_run_leaves_the_warnings_to_a_program_that_sets_logging_up(command: Command, folder: Path) -> None:
    set_up = "import logging\nlogging.basicConfig(format='mine: %(message)s')\n"
    (folder / "drops.py").write_text(set_up + DROPS, encoding="utf-8")
    told = command("run", "drops:app").stderr
    assert "mine: Order to 'once'" in told
    assert "orchestra: Order" not in told


def test_run_ends_with_status_0_at_the_first_interrupt(folder: Path) -> None:
    (folder / "waits.py").write_text(
        "import asyncio\n"
        "from shop import *\n"
        "class Waiter(Subsystem):\n"
        "    async def run(self, ctx):\n"
        "        print('ready', flush=True)\n"
        "        async for item in ctx: ...\n"
        "        print('over')\n"
        "class Talker(Subsystem):\n"
        "    async def run(self, ctx):\n"
        "        while not ctx.closed:\n"
        "            await asyncio.sleep(0.01)\n"
        "@orchestra(signal=Halt, event=Halt)\n"
        "class App:\n"
        "    waiter: Waiter = subsystem(consumes=Order, sends=[Basket])\n"
        "    talker: Talker = subsystem(consumes=Basket, sends=[Order])\n"
        "def app(): return App(waiter=Waiter(), talker=Talker())\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestra", "run", "waits:app", "--timeout", "2.5"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line == "ready\n":
            break
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert out.endswith("over\n")
    told = err.splitlines()[-1]
    assert told == "orchestra: SIGINT: stopping within 2.5 s; a second signal ends the process at once"
