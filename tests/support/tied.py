"""Processes that end with the one that started them."""


def tied(command):
    """The command line that runs `command` until it ends or its starter (the thread, in fact) does."""
    return ["setpriv", "--pdeathsig", "TERM", "--", *map(str, command)]
