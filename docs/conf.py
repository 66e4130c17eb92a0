# SPDX-License-Identifier: GPL-2.0-or-later
"""Sphinx's configuration; `make docs` builds the documentation into build/docs."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

project = "kperflab"
copyright = "the kperflab authors, GPL-2.0-or-later"  # noqa: A001  Sphinx' own name
extensions = ["myst_parser", "docs.generate"]
exclude_patterns = ["ci/README.md"]
myst_heading_anchors = 3
# Pages of the repository that no page of the site stands for.
myst_url_schemes = {"http": None, "https": None, "repo": "{{path}}"}
html_theme = "furo"
html_title = "kperflab"
# Nothing is fetched from elsewhere: a lab may have no network.
html_theme_options: dict[str, object] = {"top_of_page_buttons": []}
html_show_sourcelink = False
html_copy_source = False
