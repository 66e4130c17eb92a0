# SPDX-License-Identifier: GPL-2.0-or-later
"""The conclusion of an experiment as pages show it."""

from lab.comparisons.shape import ConclusionData
from web.words import prose

# The colour of the block by the outcome that counts most; none where nothing changed.
_TONES = (
    ("bad", {"regression", "mixed"}),
    ("warn", {"in-doubt", "inconclusive", "no-base", "not-booted", "not-built"}),
    ("good", {"improvement"}),
)


def conclusion_block(data: ConclusionData) -> dict[str, str]:
    """Return the block at the top of a page. tone: a notice's CSS class. body: how sure it is and why; next: what to do."""
    text, headline, step = data["text"], data["headline"], data["next"]["text"]
    body = text.removeprefix(headline).removesuffix(step).strip()
    words = {one["outcome"] for one in data["outcomes"]}
    tone = next((tone for tone, some in _TONES if words & some), "")
    return {"tone": tone, "headline": prose(headline), "body": prose(body), "next": prose(step)}
