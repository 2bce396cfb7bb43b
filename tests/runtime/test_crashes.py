"""Wherever a query dies, its output is the oracle's: nothing twice, nothing missing."""

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from skewless.testing import (
    POINTS,
    Driver,
    Fault,
    Replay,
    assert_same_rows,
    join_oracle,
    wait_until,
)

from .batches import batches, build, endless, join_options, oracle_options
