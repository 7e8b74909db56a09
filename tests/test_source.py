"""Generated source has names of its own, can be inspected, and goes with its owner."""

import gc
import inspect
import keyword
import linecache
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.source import Names, Writer, compile_source


@pytest.fixture(autouse=True)
def _clean_linecache() -> Any:
    before = set(linecache.cache)
    yield
    for name in set(linecache.cache) - before:
        del linecache.cache[name]


def test_a_name_is_handed_out_once() -> None:
    names = Names(["order"])
    assert [names.unique("order"), names.unique("order"), names.unique("line")] == [
        "order_2",
        "order_3",
        "line",
    ]


@given(st.lists(st.one_of(st.text(), st.sampled_from([*keyword.kwlist, "type", "set", "a", "a_2"]))))
def test_every_name_is_a_free_identifier(wanted: list[str]) -> None:
    names = Names()
    got = [names.unique(one) for one in wanted]
    assert len(set(got)) == len(got)
    assert all(name.isidentifier() and not keyword.iskeyword(name) and name != "type" for name in got)


def test_functions_may_share_names_but_never_hide_a_name_of_the_module() -> None:
    names = Names()
    assert names.unique("encode") == "encode"
    one, two = names.nested(), names.nested()
    assert [one.unique("item"), two.unique("item"), one.unique("encode")] == ["item", "item", "encode_2"]
    assert names.unique("item") == "item_2"
    assert one.unique("item_2") == "item_2_2"


def test_what_is_known_only_after_a_block_is_written_before_it() -> None:
    writer, before = Writer(), list[str]()
    with writer.block("def f(x)"):
        with writer.after(before):
            with writer.block("for one in x"):
                writer.line("int_(one)")
            before.append("int_ = int")
        writer.line("return x")
    assert writer.source == (
        "def f(x):\n    int_ = int\n    for one in x:\n        int_(one)\n    return x\n"
    )


def test_blocks_indent_and_an_empty_one_passes() -> None:
    writer = Writer()
    with writer.block("def f(x)"):
        with writer.block("if x"):
            writer.line("a = 1\nreturn a")
        with writer.block("else"):
            pass
        writer.line()
        writer.lines(["b = 2", "return b"])
    assert writer.source == (
        "def f(x):\n    if x:\n        a = 1\n        return a\n    else:\n        pass\n"
        "\n    b = 2\n    return b\n"
    )


def test_an_object_is_bound_under_one_name() -> None:
    writer = Writer()
    thing, other = object(), object()
    assert writer.bind(thing, "thing") == "thing" == writer.bind(thing, "again")
    assert writer.bind(other, "thing") == "thing_2"
    assert writer.namespace == {"thing": thing, "thing_2": other}


def test_the_source_is_shown_by_inspect_and_tracebacks_after_a_check_of_the_cache() -> None:
    namespace: dict[str, Any] = {"__name__": "somewhere"}
    source = "def double(x):\n    return x * 2\n\ndef fail():\n    raise ValueError('no')\n"
    name = compile_source("<orchestra generated test>", source, namespace)
    linecache.checkcache()
    assert inspect.getsource(namespace["double"]) == "def double(x):\n    return x * 2\n"
    assert namespace["double"](4) == 8
    try:
        namespace["fail"]()
    except ValueError as error:
        shown = "".join(traceback.format_exception(error))
    assert name in shown and "raise ValueError('no')" in shown


def test_two_sources_of_one_name_are_both_kept() -> None:
    one: dict[str, Any] = {}
    two: dict[str, Any] = {}
    names = [
        compile_source("<orchestra generated twin>", f"def f():\n    return {n}\n", space)
        for n, space in enumerate((one, two))
    ]
    assert names == ["<orchestra generated twin>", "<orchestra generated twin-2>"]
    assert inspect.getsource(one["f"]) == "def f():\n    return 0\n"
    assert inspect.getsource(two["f"]) == "def f():\n    return 1\n"


def test_the_text_goes_with_its_owner() -> None:
    class Owner:
        pass

    owner = Owner()
    name = compile_source("<orchestra generated owned>", "x = 1\n", {}, owner)
    assert name in linecache.cache
    del owner
    gc.collect()
    assert name not in linecache.cache


def test_the_flags_of_this_module_do_not_reach_generated_code() -> None:
    namespace: dict[str, Any] = {}
    compile_source("<orchestra generated flags>", "def f(x: int): pass\n", namespace)
    assert namespace["f"].__annotations__ == {"x": int}
