# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel trees."""

from django.db import models


class Tree(models.Model):
    """A kernel tree that experiments name: a source archive or a git repository."""

    class Kind(models.TextChoices):
        """The way in which a tree is imported."""

        ARCHIVE = "archive"
        GIT = "git"

    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=10, choices=Kind)
    location = models.CharField(max_length=1000)
    default_revision = models.CharField(max_length=200)
    # Boots that standing experiments may ask for in 24 hours; none means no limit.
    boots_a_day = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name
