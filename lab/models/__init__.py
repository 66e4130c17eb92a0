# SPDX-License-Identifier: GPL-2.0-or-later
# The one package file that is not empty: Django finds an app's models only through it.
from lab.models.execution import Build, Run
from lab.models.experiment import Case, Experiment, Switch, Variant
from lab.models.hardware import Target
from lab.models.measurement import Comparison, Effect, Profile, Sample
from lab.models.source import Tree
from lab.models.trend import Bisection, BisectionStep, Revision

__all__ = [
    "Bisection",
    "BisectionStep",
    "Build",
    "Case",
    "Comparison",
    "Effect",
    "Experiment",
    "Profile",
    "Revision",
    "Run",
    "Sample",
    "Switch",
    "Target",
    "Tree",
    "Variant",
]
