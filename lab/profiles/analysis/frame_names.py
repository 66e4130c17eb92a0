# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of frames as the source has them, and idle CPUs."""

# A CPU that idles is below this function, unless it is below one through which an interrupt enters.
IDLE = "do_idle"
INTERRUPTS = ("interrupt", "sysvec", "softirq")
# Roots of exact profiles that are not the workload's: what came in between (workers/microscope/calltree.py).
ASIDE = frozenset({"[interrupts]", "[kernel threads]"})

# Suffixes that GCC appends to the name of its copy of a function: the copy has the same source.
_COPIES = frozenset({"isra", "constprop", "part", "cold", "lto_priv"})


def normalise(symbol: str) -> str:
    """Return the source's name of a symbol: without .isra.0, .constprop.1, .part.2, .cold. A module's name stays behind it."""
    if "." not in symbol:
        return symbol
    function, module = _parted(symbol)
    # From the end, a word at a time: linear however long a hostile symbol is.
    parts = function.split(".")
    kept = word = len(parts)
    while word > 1:
        word -= 1
        if parts[word] in _COPIES:
            kept = word
        elif not parts[word].isdecimal():
            break
    return f"{'.'.join(parts[:kept]) or function}{module}"


def function_of(symbol: str) -> str:
    """Return the name that a diff has for a symbol: that of the source, without the module of "foo [module]"."""
    return _parted(normalise(symbol))[0]


def _parted(symbol: str) -> tuple[str, str]:
    """Return a symbol as its function and " [module]", or nothing."""
    function, bracket, _ = symbol.rpartition(" [")
    return (function, symbol[len(function) :]) if bracket and symbol.endswith("]") else (symbol, "")
