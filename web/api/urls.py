# SPDX-License-Identifier: GPL-2.0-or-later
"""The addresses under /api/v1/."""

from django.urls import include, path, re_path
from django.views.generic import RedirectView
from rest_framework.routers import SimpleRouter

from web.api.builds import Builds, Variants
from web.api.catalogue import Patches, Trees, Workloads
from web.api.comparisons import Comparisons, Samples
from web.api.experiments import Experiments
from web.api.fetches import Fetches, LimitsView
from web.api.fleet import Claims, Fleet, LateAnswers, Queues, Workers
from web.api.hooks import Deliveries, Hooks
from web.api.me import Login, Me, Tokens
from web.api.problems import unknown
from web.api.profiles import Profiled, ProfiledCallers, ProfiledFiles, Profiles
from web.api.root import Problems, SchemaView
from web.api.runs import Runs
from web.api.standing import Alerts, Standings
from web.api.talk import Notes, Triages
from web.api.targets import Targets
from web.api.trends import Trends

router = SimpleRouter(use_regex_path=False)
router.register("experiments", Experiments, "api-experiments")
router.register("fetches", Fetches, "api-fetches")
router.register("variants", Variants, "api-variants")
router.register("builds", Builds, "api-builds")
router.register("runs", Runs, "api-runs")
router.register("samples", Samples, "api-samples")
router.register("comparisons", Comparisons, "api-comparisons")
router.register("targets", Targets, "api-targets")
router.register("workers", Workers, "api-workers")
router.register("late-answers", LateAnswers, "api-late-answers")
router.register("profiles", Profiles, "api-profiles")
router.register("patches", Patches, "api-patches")
router.register("trees", Trees, "api-trees")
router.register("workloads", Workloads, "api-workloads")
router.register("notes", Notes, "api-notes")
router.register("triage", Triages, "api-triage")
router.register("hooks", Hooks, "api-hooks")
router.register("deliveries", Deliveries, "api-deliveries")
router.register("standing", Standings, "api-standing")
router.register("alerts", Alerts, "api-alerts")
router.register("trends", Trends, "api-trends")

urlpatterns = [
    path("me/", Me.as_view({"get": "show", "patch": "change"}), name="api-me"),
    path("login/", Login.as_view({"post": "create"}), name="api-login"),
    path("tokens/", Tokens.as_view({"get": "list", "post": "create"}), name="api-tokens"),
    path("tokens/<slug:id>/", Tokens.as_view({"delete": "destroy"}), name="api-token"),
    path("fleet/", Fleet.as_view({"get": "show"}), name="api-fleet"),
    path("queues/", Queues.as_view({"get": "list"}), name="api-queues"),
    path("claims/", Claims.as_view({"get": "list"}), name="api-claims"),
    path(
        "claims/build/<int:id>/", Claims.as_view({"delete": "destroy"}, kind="build"), name="api-build-claim"
    ),
    path("claims/run/<int:id>/", Claims.as_view({"delete": "destroy"}, kind="run"), name="api-run-claim"),
    path("limits/", LimitsView.as_view({"get": "list"}), name="api-limits"),
    path("problems/", Problems.as_view({"get": "list"}), name="api-problems"),
    path("experiments/<int:id>/profile/", Profiled.as_view({"get": "show"}), name="api-profiled"),
    path(
        "experiments/<int:id>/profile/callers/",
        ProfiledCallers.as_view({"get": "show"}),
        name="api-profiled-callers",
    ),
    path(
        "experiments/<int:id>/profile/<str:form>/",
        ProfiledFiles.as_view({"get": "show"}),
        name="api-profiled-file",
    ),
    path("schema/", SchemaView.as_view(), name="api-schema"),
    path("docs/", RedirectView.as_view(url="/help/api/", http_method_names=["get", "head"]), name="api-docs"),
    path("", include(router.urls)),
    re_path(r"^.*$", unknown),
]
