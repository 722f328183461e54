import os
import random

import pytest

from hosts import World


@pytest.fixture
def world(tmp_path):
    random.seed(int(os.environ.get("TAMIS_SEED", "7"), 0))
    w = World(tmp_path)
    yield w
    w.end()
