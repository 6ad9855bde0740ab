"""The priority of a process that reads behind a live broker."""

import multiprocessing
import os

from kforensics.source.beside_broker import lower_priority


def _lowered(sender):
    lower_priority()
    sender.send(os.nice(0))


def test_priority_is_lowered_in_a_process_of_its_own():
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_lowered, args=(sender,))
    process.start()
    assert receiver.recv() == min(19, os.nice(0) + 19)
    process.join()
    assert os.nice(0) < 19  # this process keeps its own
