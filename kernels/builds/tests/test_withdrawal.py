# SPDX-License-Identifier: GPL-2.0-or-later
"""After a withdrawal of trust nothing that the compiler front kept before it answers a build."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernels.builds.builder import Builder
from kernels.builds.tests.test_front_builds import as_base, header, trusted
from kernels.builds.tests.test_front_builds import based as based
from kernels.builds.tests.test_front_builds import compiled as compiled
from kernels.builds.tests.test_front_builds import home_with_base as home_with_base
from kernels.builds.tests.test_front_builds import own as own
from kernels.tests.pretend import PretendKernel

pytestmark = pytest.mark.process


def withdraw(builder: Builder, token: str = "ab" * 8) -> None:
    """Have a builder heed a withdrawal of trust."""
    assert builder.compiled_files
    builder.compiled_files.withdrawal = token


def test_after_a_withdrawal_no_trusted_file_layer_or_kernel_from_before_answers(
    based: Builder, pretend: PretendKernel
) -> None:
    request = trusted(pretend.request())
    before = based.build(request)
    withdraw(based)
    ours = based.build(request)
    assert (ours.key != before.key, ours.metadata.layer) == (True, "")
    assert (based.front_events["miss"], based.front_events["hit"]) == (4, 0)


def test_after_a_withdrawal_a_near_revision_is_not_built_over_a_layer_from_before(
    based: Builder, pretend: PretendKernel
) -> None:
    near = trusted(as_base(pretend, header(pretend, "a comment")))
    withdraw(based)
    assert based.build(near).metadata.layer == ""
    assert based.front_events["hit"] == 0


def test_after_a_withdrawal_a_strangers_base_is_not_answered_from_before_either(
    based: Builder, pretend: PretendKernel
) -> None:
    withdraw(based)
    based.build(as_base(pretend, header(pretend, "a comment")))
    assert based.front_events["hit"] == 0


def test_what_is_trusted_after_a_withdrawal_answers_until_the_next(
    based: Builder, pretend: PretendKernel
) -> None:
    near = trusted(as_base(pretend, header(pretend, "a comment")))
    withdraw(based)
    based.build(trusted(pretend.request()))
    assert based.build(near).metadata.layer == based.layer_of(trusted(pretend.request())).parent.name
    withdraw(based, "cd" * 8)
    assert based.build(near).metadata.layer == ""


def test_a_withdrawal_changes_no_key_of_the_compiler_alone(
    builder: Builder, based: Builder, pretend: PretendKernel
) -> None:
    request = pretend.request()
    other = replace(request, toolchain=replace(request.toolchain, cc="cc"))
    withdraw(based)
    assert based.key(other) == builder.key(other)
