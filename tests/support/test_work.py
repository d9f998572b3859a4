"""Work that is taken up again: what is done twice and what is not, whenever it is broken off."""

from __future__ import annotations

import copy

import pytest

from apsvm._support.work import Strand, WorkError


class Memory:
    """A store that takes everything at once, and remembers all it has ever held."""

    def __init__(self, strands=None):
        self.strands = copy.deepcopy(strands or {})
        self.moments = [copy.deepcopy(self.strands)]
        self.stopping = False

    def stored(self, strand):
        return self.strands.get(strand)

    def is_due(self, strand):
        return True

    def is_stopping(self):
        return self.stopping

    def store(self, strand, snapshot):
        self.strands[strand] = copy.deepcopy(snapshot)
        self.moments.append(copy.deepcopy(self.strands))

    def drop(self, prefix):
        for name in [name for name in self.strands if name.startswith(prefix)]:
            del self.strands[name]


def count(strand, done, steps):
    """A piece of some steps, of which the last is kept."""
    piece = strand.piece(f"count to {steps}")
    if piece.result is not None:
        return piece.result["value"]
    value, first = (0, 0) if piece.state is None else (piece.state["value"], piece.state["steps"])
    for step in range(first, steps):
        done.append(("step", steps, step))
        value = 3 * value + step
        piece.reached(lambda value=value, step=step: {"value": value, "steps": step + 1})
    piece.done({"value": value})
    return value


def work(strand, done):
    """Pieces one after the other, one that fails, and some within another."""
    results = [count(strand, done, 3)]
    failing = strand.piece("fails")
    assert failing.result is None
    with strand.piece("within").strand("unfinished"):
        pass
    whole = strand.piece("several")
    if whole.result is None:
        parts = []
        for name in ("a", "b"):
            with whole.strand(name) as inner:
                parts.append(count(inner, done, 2))
        whole.done({"parts": parts})
        results.append(parts)
    else:
        results.append(whole.result["parts"])
    results.append(count(strand, done, 4))
    return results


def test_from_every_moment_the_result_is_the_same_and_no_step_is_done_twice():
    store, done = Memory(), []
    expected = work(Strand(store), done)
    assert len(done) == 3 + 2 + 2 + 4
    lengths = set()
    for moment in store.moments:
        again = []
        assert work(Strand(Memory(moment)), again) == expected
        assert again == done[len(done) - len(again) :]
        lengths.add(len(again))
    assert lengths == set(range(len(done) + 1))


def test_broken_off_again_before_it_has_come_to_where_it_was():
    """That is how a signal while the data is read loses nothing."""
    store, done = Memory(), []
    expected = work(Strand(store), done)
    for moment in store.moments:
        early = Memory(moment)
        Strand(early).break_off()
        again = []
        assert work(Strand(Memory(early.strands)), again) == expected
        assert again == done[len(done) - len(again) :]


def test_stopped_before_it_has_come_to_where_it_was_it_still_knows_what_was_finished():
    store = Memory()
    expected = work(Strand(store), [])
    for moment in store.moments:
        stopping, direct, after = Memory(moment), [], []
        stopping.stopping = True
        work(Strand(stopping), [])  # to its end, for nothing here asks whether to stop
        work(Strand(Memory(moment)), direct)
        assert work(Strand(Memory(stopping.strands)), after) == expected
        assert after == direct  # nothing is lost, and nothing was stored


def test_without_a_store_it_is_the_same():
    done = []
    assert work(Strand(), done) == work(Strand(Memory()), [])
    assert len(done) == 11


def test_strands_within_a_finished_piece_are_forgotten():
    store = Memory()
    work(Strand(store), [])
    assert not [name for name in store.strands if name.startswith("3/")]


def test_nothing_that_begins_after_the_work_is_stopped_is_stored():
    store = Memory()
    strand = Strand(store)
    strand.piece("first").done({"value": 1})
    second = strand.piece("second")
    second.reached(lambda: {"at": 5})
    store.stopping = True
    second.broken_off()
    strand.piece("third").done({"value": 3})
    second.done({"value": 2})
    strand.break_off()
    again = Strand(Memory(store.strands))
    assert again.piece("first").result == {"value": 1}
    taken_up = again.piece("second")
    assert (taken_up.result, taken_up.state) == (None, {"at": 5})
    third = again.piece("third")
    assert (third.result, third.state) == (None, None)


def test_what_was_done_before_the_stop_is_stored_by_the_next_piece():
    store = Memory()
    store.is_due = lambda strand: False
    strand = Strand(store)
    strand.piece("first").done({"value": 1})
    assert not store.strands
    store.stopping = True
    strand.piece("second")
    assert Strand(Memory(store.strands)).piece("first").result == {"value": 1}


def test_the_last_state_is_stored_though_it_was_not_due():
    store = Memory()
    store.is_due = lambda strand: False
    strand = Strand(store)
    piece = strand.piece("epochs")
    for at in range(3):
        piece.reached(lambda at=at: {"at": at})
    assert not store.strands
    piece.broken_off()
    assert Strand(Memory(store.strands)).piece("epochs").state == {"at": 2}


@pytest.mark.parametrize("finished", [True, False])
def test_other_work_is_refused(finished):
    store = Memory()
    piece = Strand(store).piece("a descent")
    piece.done({}) if finished else piece.reached(dict)
    with pytest.raises(WorkError, match="piece 0 of the work is 'a descent', not 'a search'"):
        Strand(Memory(store.strands)).piece("a search")
