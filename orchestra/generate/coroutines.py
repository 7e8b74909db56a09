"""What a generator may take over with `yield from`, as an `await` would."""

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any


def as_coroutine(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method itself where it is an `async def`; for what gives another awaitable, one around it."""
    function = getattr(method, "__func__", method)
    if isinstance(function, FunctionType) and function.__code__.co_flags & inspect.CO_COROUTINE:
        return method

    async def call(ctx: Any, given: Any) -> Any:
        return await method(ctx, given)

    return call
