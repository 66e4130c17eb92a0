# SPDX-License-Identifier: GPL-2.0-or-later
"""The fragments that a machine may name come out whole on the trees we know: not a symbol is lost."""

from __future__ import annotations

import pytest
from django.conf import settings

from kernels.builds.layers import Layers
from kernels.builds.resolve_config import Question, resolve_config
from kernels.builds.toolchain import detect_toolchain
from kernels.configs.request import ConfigRequest, load_fragment, read_config
from kernels.sandbox.command import Limits
from kernels.trees.tree import DEFAULT_ARCHIVES, import_archive, resolve
from lab.submission.prepare import CONFIG_BASE, _base_fragments

pytestmark = [pytest.mark.real, pytest.mark.campaign]


@pytest.mark.parametrize("name", ["debian-6.1", "debian-6.12"])
def test_a_metal_kernel_has_all_that_is_asked_of_it(name: str) -> None:
    tree = import_archive(name, DEFAULT_ARCHIVES[name], settings.HOME / "trees")
    base = resolve(tree, "")
    config = ConfigRequest(CONFIG_BASE, (*_base_fragments(), load_fragment("metal")))
    # Raises ConfigRejected.
    text = resolve_config(
        Question(tree, base, base, config, detect_toolchain()), Layers(settings.HOME), Limits()
    )
    symbols = read_config(text)
    asked = ("CPU_FREQ", "X86_INTEL_PSTATE", "EFI_STUB", "IXGBE", "X86_MCE", "KEXEC", "EFI_RUNTIME_MAP")
    assert {symbols[symbol] for symbol in asked} == {"y"}
    # Nothing is loaded from a disk that it does not have.
    assert [symbol for symbol, value in symbols.items() if value == "m"] == []
