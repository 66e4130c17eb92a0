# SPDX-License-Identifier: GPL-2.0-or-later
"""What kernels run on."""

from django.db import models


class Target(models.Model):
    """One machine that boots kernels, virtual for now."""

    name = models.CharField(max_length=100, unique=True)
    driver = models.CharField(max_length=30, default="libvirt")
    vcpus = models.PositiveSmallIntegerField(default=2)
    memory_mib = models.PositiveIntegerField(default=1024)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name
