# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots of metal machines over the network, and the pieces that a machine sent."""

from django.db import models
from django.utils import timezone

from lab.models.hardware import Target


class Netboot(models.Model):
    """One boot over the network, known to the machine by its token alone."""

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="netboots")
    # The process that boots it, as in the claims: once that is gone, the machine was left on.
    owner = models.CharField(max_length=300, blank=True, default="")
    # SHA-256 of the token, in hex; the token itself is in the machine's script and nowhere else. Made when the
    # script is fetched: until then a random value, which is no token's hash.
    token_sha256 = models.CharField(max_length=64, unique=True)
    artifact_key = models.CharField(max_length=64)
    # The name of its initramfs in the store.
    initrd = models.CharField(max_length=300)
    cmdline = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    # When the machine fetched its script, which it may once, and from which address; how often it asked.
    fetched_at = models.DateTimeField(null=True, blank=True)
    fetched_from = models.GenericIPAddressField(null=True, blank=True)
    fetches = models.PositiveIntegerField(default=0)
    # The address its pieces come from; and the first sign of interference by another machine.
    reported_from = models.GenericIPAddressField(null=True, blank=True)
    alarm = models.CharField(max_length=200, blank=True, default="", db_default="")
    # When it fetched its initrd: what follows is the kernel's doing.
    loaded_at = models.DateTimeField(null=True, blank=True)
    # How the kernel is started: "power", by the firmware, or "kexec", by the kernel that the machine runs.
    way = models.CharField(max_length=10, default="power", db_default="power")
    # By kexec: the boot whose machine it is offered to, and what that machine checks before it lets go of its own kernel.
    follows = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="followers"
    )
    kernel_sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    initrd_sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    # Whether it succeeded and its machine was left on for the next boot; when the machine last asked for that.
    waits = models.BooleanField(default=False, db_default=False)
    asked_at = models.DateTimeField(null=True, blank=True)
    # Bytes of pieces taken.
    received = models.BigIntegerField(default=0)
    # When the driver ended it, the machine being off.
    closed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"netboot {self.pk} of {self.target_id}"


class NetbootPiece(models.Model):
    """A piece of a stream that a machine posted, in order; a piece sent twice is kept once."""

    netboot = models.ForeignKey(Netboot, on_delete=models.CASCADE, related_name="pieces")
    stream = models.CharField(max_length=20)
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=["netboot", "stream", "number"], name="netboot_piece_once"),
        )

    def __str__(self) -> str:
        return f"{self.stream} {self.number} of netboot {self.netboot_id}"
