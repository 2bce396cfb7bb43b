"""POSG's state machines, transition by transition (Fig. 2 and 3)."""

import numpy as np
import pytest

from skewless.lab.reproduce.online import posg_machines as machines
from skewless.lab.reproduce.online.posg_machines import new_posg, posg_assign, posg_executed

CELLS = np.array([0, 1])  # one item, alone in its cells
OTHER = np.array([2, 3])
WINDOW, MU = 4, 0.05


def execute(posg, instance: int, times, epoch: int = 0, sent: float = 0.0, cells=CELLS) -> None:
    for time in times:
        posg_executed(posg, instance, cells, time, epoch, sent, 0, WINDOW, MU)


def state(posg) -> int:
    return int(posg.scheduler[machines.STATE])


def learned(instances: int = 2):
    """A scheduler that has just received the matrices of all instances."""
    posg = new_posg(instances, 2, 4)
    for instance in range(instances):
        execute(posg, instance, [10.0] * 2 * WINDOW)
    return posg


def test_an_instance_sends_its_matrices_when_two_snapshots_agree() -> None:
    posg = new_posg(2, 2, 4)
    execute(posg, 0, [10.0] * WINDOW)
    assert posg.phase[0] == machines.STABILIZING
    assert posg.S[0, 0, 0] == 10.0
    assert np.isnan(posg.S[0, 0, 3]), "a cell that was never hit has no mean"
    assert not posg.known[0]
    execute(posg, 0, [10.0] * WINDOW)
    assert posg.known[0]
    assert posg.known_f[0, 0, 0] == 2 * WINDOW
    assert posg.phase[0] == machines.START
    assert posg.F[0].sum() == 0, "sent, and begun anew"


def test_an_instance_whose_costs_still_change_takes_another_snapshot() -> None:
    posg = new_posg(1, 2, 4)
    execute(posg, 0, [10.0] * WINDOW)
    execute(posg, 0, [20.0] * WINDOW)
    assert not posg.known[0]
    assert posg.phase[0] == machines.STABILIZING
    assert posg.S[0, 0, 0] == 15.0


def test_the_scheduler_deals_in_turn_until_all_have_sent() -> None:
    posg = new_posg(2, 2, 4)
    assert [posg_assign(posg, CELLS, n)[0] for n in range(4)] == [0, 1, 0, 1]
    execute(posg, 0, [10.0] * 2 * WINDOW)
    assert state(posg) == machines.ROUND_ROBIN
    assert posg.estimated.tolist() == [0.0, 0.0]
    execute(posg, 1, [10.0] * 2 * WINDOW)
    assert state(posg) == machines.SEND_ALL


def test_a_request_goes_to_every_instance_and_the_replies_correct_the_estimates() -> None:
    posg = learned()
    first = posg_assign(posg, CELLS, 0)
    assert state(posg) == machines.SEND_ALL
    second = posg_assign(posg, CELLS, 1)
    assert (first, second) == ((0, 1, 10.0), (1, 1, 10.0))
    assert state(posg) == machines.WAIT_ALL
    # While it waits it is greedy already.
    assert posg_assign(posg, CELLS, 2) == (0, 0, 20.0)
    execute(posg, 0, [10.0], epoch=1, sent=10.0)
    assert state(posg) == machines.WAIT_ALL
    assert posg.estimated.tolist() == [20.0, 10.0], "all replies are applied together"
    execute(posg, 1, [30.0], epoch=1, sent=10.0)
    assert state(posg) == machines.RUN
    # Δ = cumulated − estimated: 8·10 + 10 − 10 for the first, 8·10 + 30 − 10 for the second.
    assert posg.estimated.tolist() == [100.0, 110.0]
    assert posg_assign(posg, CELLS, 3)[0] == 0
    assert posg.scheduler[machines.FIRST_RUN] == 3


def test_new_matrices_begin_a_new_epoch_and_old_replies_are_ignored() -> None:
    posg = learned()
    posg_assign(posg, CELLS, 0)
    posg_assign(posg, CELLS, 1)
    execute(posg, 0, [10.0] * 2 * WINDOW)
    assert state(posg) == machines.SEND_ALL
    assert posg.scheduler[machines.EPOCH] == 2
    before = posg.estimated.copy()
    execute(posg, 0, [10.0], epoch=1, sent=10.0)
    execute(posg, 1, [10.0], epoch=1, sent=10.0)
    assert state(posg) == machines.SEND_ALL
    assert posg.estimated.tolist() == before.tolist()


def test_an_unseen_item_is_estimated_by_the_mean() -> None:
    posg = learned()
    assert posg_assign(posg, OTHER, 0)[2] == pytest.approx(10.0)
