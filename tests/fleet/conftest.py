import os
import random

import pytest

from fleet import Fleet


@pytest.fixture
def fleet(tmp_path):
    random.seed(int(os.environ.get("TAMIS_SEED", "7"), 0))
    f = Fleet(tmp_path)
    yield f
    f.end()
