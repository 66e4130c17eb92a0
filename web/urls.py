# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages' addresses."""

from django.urls import path
from django.views.generic import RedirectView

from web.views import (
    comparison,
    experiment,
    explain,
    profile,
    profile_data,
    run,
    submission,
    trend,
    trend_data,
)

handler404 = "web.views.missing.not_found"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="experiments")),
    path("experiments/", experiment.listing, name="experiments"),
    path("experiments/new", submission.submit, name="submit"),
    path("experiments/<int:experiment_id>/", experiment.show, name="experiment"),
    path("experiments/<int:experiment_id>/live", experiment.live, name="experiment_live"),
    path("experiments/<int:experiment_id>/runs/", experiment.runs, name="experiment_runs"),
    path("experiments/<int:experiment_id>/comparison/", comparison.show, name="comparison"),
    path(
        "experiments/<int:experiment_id>/explain/<int:comparison_id>/",
        explain.show,
        name="explain",
    ),
    path("experiments/<int:experiment_id>/profile/", profile.first, name="profiles"),
    path("experiments/<int:experiment_id>/profile/<int:case_id>/", profile.show, name="profile"),
    path(
        "experiments/<int:experiment_id>/profile/<int:case_id>/callers.txt",
        profile_data.callers,
        name="callers",
    ),
    path(
        "experiments/<int:experiment_id>/profile/<int:case_id>/symbol.json",
        profile_data.symbol,
        name="symbol",
    ),
    path(
        "experiments/<int:experiment_id>/profile/<int:case_id>/variant.<str:form>",
        profile_data.variant_profile,
        name="variant_profile",
    ),
    path(
        "experiments/<int:experiment_id>/profile/<int:case_id>/difference.<str:form>",
        profile_data.variants_differ,
        name="difference",
    ),
    path("profiles/<int:run_id>.<str:form>", profile_data.run_profile, name="run_profile"),
    path("trends/", trend.listing, name="trends"),
    path("trends/<slug:key>/", trend.show, name="trend"),
    path("trends/<slug:key>.csv", trend_data.as_csv, name="trend_csv"),
    path("trends/<slug:key>.json", trend_data.as_json, name="trend_json"),
    path("builds/<int:build_id>/log", run.build_log, name="build"),
    path("builds/<int:build_id>/log.txt", run.build_log_raw, name="build_log_raw"),
    path("runs/<int:run_id>/", run.show, name="run"),
    path("runs/<int:run_id>/console", run.console, name="run_console"),
    path("runs/<int:run_id>/console.txt", run.console_raw, name="run_console_raw"),
]
