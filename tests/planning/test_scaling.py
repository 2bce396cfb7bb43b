"""How many instances a policy asks for."""

import pytest

from skewless.errors import SkewlessError
from skewless.planning.scaling import check_range


@pytest.mark.parametrize("instances", [0, -1, True, (1,), (3, 2), (0, 4), (1, 2, 3), "4", (1, 2.5)])
def test_what_is_no_number_or_range_is_refused(instances: object) -> None:
    with pytest.raises(SkewlessError, match="instances"):
        check_range(instances)


@pytest.mark.parametrize("instances", [None, 1, 4, (1, 1), (2, 16)])
def test_numbers_and_ranges_pass(instances: object) -> None:
    check_range(instances)
