# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

from lab.profiles.analysis.frame_names import normalise


@pytest.mark.parametrize(
    ("symbol", "source"),
    [
        ("down_read", "down_read"),
        ("foo.isra.0", "foo"),
        ("foo.constprop.12", "foo"),
        ("foo.part.3.cold", "foo"),
        ("foo.isra.0.cold", "foo"),
        ("foo.cold", "foo"),
        ("foo.12", "foo.12"),
        ("foo.12.cold", "foo.12"),
        ("foo.isra.x", "foo.isra.x"),
        ("[k] 0xffff.isra", "[k] 0xffff"),
        ("rxe_open [rdma_rxe]", "rxe_open [rdma_rxe]"),
        ("rxe_open.isra.0 [rdma_rxe]", "rxe_open [rdma_rxe]"),
        ("rxe_open.constprop.0.cold [rdma_rxe]", "rxe_open [rdma_rxe]"),
        ("[rdma_rxe]", "[rdma_rxe]"),
        ("isra_of_mine", "isra_of_mine"),
        (".cold", ".cold"),
        (".isra" * 2000 + ".x", ".isra" * 2000 + ".x"),
    ],
)
def test_copies_the_compiler_made_bear_the_name_of_the_source(symbol: str, source: str) -> None:
    assert normalise(symbol) == source
