"""How long a step takes, from the speeds of a machine that the recipe names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attendo.workflow.recipe import RatesConfig
    from attendo.workflow.step import Step


class RecipeRates:
    """Estimates steps by the rates of a recipe.

    Args:
        rates: the speeds that are known.

    """

    def __init__(self, rates: RatesConfig) -> None:
        self._rates = rates

    def estimate(self, step: Step) -> float | None:
        """Return the seconds of a step; None if its work or the speed is not known.

        >>> from attendo.workflow.recipe import RatesConfig
        >>> from attendo.workflow.step import Step, Work
        >>> step = Step("a", 1, {}, lambda _: [], (), work=Work("translate", 5200))
        >>> rates = RatesConfig(translate_lines_per_second=2600, start_seconds=30)
        >>> RecipeRates(rates).estimate(step)
        32.0
        """
        work, rates = step.work, self._rates
        if work is None:
            return None
        if work.kind == "other":
            return work.amount
        is_training = work.kind == "train"
        speed = rates.train_tokens_per_second if is_training else rates.translate_lines_per_second
        if speed is None:
            return None
        return work.amount / speed + rates.start_seconds
