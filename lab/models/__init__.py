# SPDX-License-Identifier: GPL-2.0-or-later
# The one package file that is not empty: Django finds an app's models only through it.
from lab.models.audit import AuditEntry
from lab.models.execution import Build, LateAnswer, LostClaim, Run
from lab.models.experiment import Case, Experiment, Switch, Tree, Variant, Withdrawal
from lab.models.fetch import Fetch
from lab.models.hardware import Chore, Deployment, HealthCheck, Quarantine, SigningKey, Target, Worker
from lab.models.measurement import Comparison, Effect, Profile, Sample
from lab.models.netboot import Netboot, NetbootPiece
from lab.models.note import Note, Triage
from lab.models.people import IdempotencyKey, Token, User
from lab.models.standing import Alert, Delivery, Hook, Standing
from lab.models.trend import BasePoint, Bisection, BisectionStep, Revision, StepDecision, Trend
