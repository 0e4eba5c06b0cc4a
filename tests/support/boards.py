"""firmware/boards/boards.txt, the list of boards."""

import collections
import os

Board = collections.namedtuple("Board", "name machine core identity nvm files")
LIST = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                    "firmware", "boards", "boards.txt")


def all_boards():
    with open(LIST) as f:
        return [Board(*line.split()) for line in f if line[:1].isalpha()]


def qemu_boards():
    """Those with a machine under QEMU: {name: Board}."""
    return {b.name: b for b in all_boards() if b.machine != "-"}
