from __future__ import annotations

import numpy as np
import pytest

from attendo.core.sinusoids import sinusoidal_table
from attendo.model.positional_encoding import LAYOUTS, sinusoidal


@pytest.mark.parametrize("d_model", [1, 2, 15, 64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_numpy_and_pytorch_have_the_same_table(layout, d_model):
    expected = sinusoidal(300, d_model, layout=layout).numpy()
    found = sinusoidal_table(300, d_model, layout=layout)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
