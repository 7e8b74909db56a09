"""The steps of one thing, their sum, the whole, and what is left between the two."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs

from benchmarks.harness import Case, Group
from benchmarks.parts.steps import Step, step_ns

SUM = "the steps, in all"
TOGETHER = "the generated functions alone, in a loop"
LEFT = "left: the whole less those functions"
NEEDED = "of the whole, what no library could leave out"
ADDED = "of the whole, what the library adds"


@attrs.frozen
class Section:
    """`together` runs the generated functions that have all the steps, without an orchestra around them.

    `whole` says, by its name, what is measured from end to end with so many messages; the first of them is
    what the steps explain.
    """

    name: str
    title: str
    steps: Sequence[Step]
    together: Step
    whole: Mapping[str, Callable[[int], float]]

    def group(self, count: int) -> Group:
        """The cases, each with a run of about `count` messages; the sums are of the steps of their round."""
        found: dict[str, float] = {}

        def kept(name: str, run: Callable[[], float]) -> Case:
            def measured() -> float:
                found[name] = run()
                return found[name]

            return Case(name, measured)

        def together(*, needed: bool) -> float:
            return sum(found[step.name] for step in self.steps if step.needed or not needed)

        first = next(iter(self.whole))
        return Group(
            name=self.name,
            title=self.title,
            unit="ns",
            cases=[
                *(kept(step.name, partial(step_ns, step, count)) for step in self.steps),
                kept(SUM, lambda: together(needed=False)),
                kept(TOGETHER, partial(step_ns, self.together, count)),
                *(kept(name, partial(whole, count)) for name, whole in self.whole.items()),
                kept(LEFT, lambda: found[first] - found[TOGETHER]),
                kept(NEEDED, lambda: together(needed=True)),
                kept(ADDED, lambda: found[first] - found[NEEDED]),
            ],
            one_loop=True,
        )
