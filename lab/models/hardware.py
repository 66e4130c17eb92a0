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


class Host(models.Model):
    """A computer that runs guests, with the accelerator a real kernel really booted under."""

    name = models.CharField(max_length=255, unique=True)
    accelerator = models.CharField(max_length=20)
    accelerator_reason = models.TextField(blank=True, default="")
    # Kernel, QEMU and /dev/kvm as they were when probed: a change asks for a new probe.
    fingerprint = models.CharField(max_length=500, blank=True, default="")
    probed_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
