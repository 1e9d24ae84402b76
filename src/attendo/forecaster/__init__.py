"""Numbers in, what comes next out: a series model with its codec."""

from attendo.forecaster.forecast import Forecast
from attendo.forecaster.forecaster import Forecaster

__all__ = ["Forecast", "Forecaster"]
