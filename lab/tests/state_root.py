# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeps tests out of the installation's own state; loaded by `-p`, before Django reads its settings.

On disk, not in a temporary folder: the kernels that `make test` builds are found built the next time.
"""

from __future__ import annotations

import os

os.environ.setdefault("KPERFLAB_HOME", f"/var/tmp/kperflab-tests-{os.getuid()}")
