# SPDX-License-Identifier: GPL-2.0-or-later
"""Django settings: one place that reads the environment.

Each value may instead be in a file that the variable with _FILE after its name names, as secrets should. While a service of this
home is up (`make up`), every process of the home takes over the service's variables.

KPERFLAB_HOME      where everything is kept (default /var/lib/kperflab for root,
                   else ~/.local/share/kperflab)
KPERFLAB_DATABASE  postgres://user:password@host:port/name, where the host must prove its name with a certificate that this
                   machine trusts (SSL_CERT_FILE, or ?sslrootcert=FILE at the end, names other authorities), unless the URL ends
                   with ?sslmode=require (encrypted, not proven) or disable; an empty host stands for a socket:
                   postgres://user@%2Frun%2Fpg/name (default: SQLite in the home). Several hosts, db1:5432,db2:5432: whichever of
                   them takes writes, as after a failover
KPERFLAB_REDIS     redis://:password@host:port/0 or unix:///path: what wakes workers, and the cache (default: neither; tasks
                   run in the process that sends them)
KPERFLAB_CHECK_HOURS   how old a target's last health check may grow before an idle one has another (default 24); 0: only on request
KPERFLAB_CHECK_KERNEL  the artifact that health checks boot (default: the base of the last experiment that went well)
KPERFLAB_LEASE_S   how long a claim lasts without a sign of life (default 15)
KPERFLAB_DISK_GIB  no kernel is built where less is free (default 5 % of the disk, at least 5), nothing is booted with less than a
                   fifth of it (default 1)
KPERFLAB_TARGETS   of `make up`: the targets whose workers run on this machine, separated by commas (default: all; empty: none)
KPERFLAB_STATIC    where `manage.py collectstatic` put the pages' files, compressed (default: served from the sources)
KPERFLAB_HOSTS     further host names the web pages answer to, separated by commas
KPERFLAB_PRIVATE   1 lets nobody see anything without signing in; else anonymous people are viewers
KPERFLAB_LOCAL_PATHS        1 lets submitters, not operators alone, name git repositories by their folder here
KPERFLAB_PRIVATE_ADDRESSES  1 lets submissions name git addresses of closed networks
KPERFLAB_LORE      the archive of mails that b4 asks, empty for none (default https://lore.kernel.org/all)
KPERFLAB_PROXIES   how many reverse proxies stand in front (default 0) and are believed about addresses
KPERFLAB_DEBUG     1 shows tracebacks in the browser; never on a shared machine
KPERFLAB_URL       where people reach the pages, for links in mails and hooks (default http://127.0.0.1:8000); https:// makes cookies
                   secure and browsers insist on it
KPERFLAB_HOOKS_PRIVATE  1 lets hooks go to private addresses and over http
KPERFLAB_SMTP      smtp://user:password@host:port or smtps://…; without it nobody gets a mail when an experiment finishes,
                   and other mails go to the log
KPERFLAB_STORE     where all machines keep artifacts and run files: a directory, or s3://bucket/prefix?endpoint=http://… with
                   AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or …_FILE); empty: each machine's HOME alone
KPERFLAB_FRONT     0 compiles kernels by gcc alone, not through the compiler front, which answers from what it compiled before; on
                   all machines or none, for artifacts have other keys (docs/design/front.md)
KPERFLAB_VOUCHED   git addresses, as their trees are registered, each followed by those of its branches and tags whose commits you vouch
                   for: https://example.org/linux.git refs/heads/master refs/tags/v6.*; what the front compiles of such a base answers
                   every later build, as with source archives (default: each base's files answer its own variants alone); after taking one
                   out, labctl lab withdraw-trust
KPERFLAB_CACHE_GIB how much of the store this machine keeps at hand (default a quarter of its disk)
KPERFLAB_KEEP_DAYS how long unneeded run files and artifacts are kept (default 90; 0 for ever)
KPERFLAB_MAIL_FROM the sender of mails (default kperflab@<this host's name>)
KPERFLAB_LOG       what services log: text (default), a line for people, or json, an object a line
KPERFLAB_METRICS_FROM  networks that may read /metrics and all of /ready/, separated by commas: 10.1.0.0/16,fd00::/8 (default: this
                   machine and operators alone)
"""

import os
import secrets
import socket
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kernels.mails.uploads import MAX_MEMBERS
from lab.environment import adopt, read_flag, read_networks, read_number, read_refs, read_variable, state_root
from lab.service_urls import caches, database, mail_server
from lab.storage.store_settings import store_settings


def _secret(path: Path) -> str:
    """Return the installation's own secret, made once and readable by its owner only."""
    if not path.exists():
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(48))
        # A power cut would leave an empty file, with which nothing starts any more.
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        try:
            # Two processes may start at once: the first link wins, both read the same key.
            path.hardlink_to(draft)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()


HOME = state_root()
# The secret key lives there.
# Others may pass through, as QEMU's user must, but not look around.
HOME.mkdir(mode=0o711, parents=True, exist_ok=True)
adopt(HOME)
SECRET_KEY = _secret(HOME / "secret.key")
DEBUG = read_flag("KPERFLAB_DEBUG")
ALLOWED_HOSTS = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    *filter(None, read_variable("KPERFLAB_HOSTS").split(",")),
]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "knox",
    "django_filters",
    "axes",
    "drf_spectacular",
    "lab",
    "web",
]
MIDDLEWARE = [
    "web.requestlog.log_requests",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "lab.operations.headers.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "web.audit.keep_audit",
    "web.access.SignInFirst",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
    "web.views.missing.ErrorPages",
]
ROOT_URLCONF = "web.urls"
WSGI_APPLICATION = "web.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "web.access.permissions",
                "web.navigation.section",
            ],
            "builtins": ["web.templatetags.figures", "web.templatetags.verdicts"],
        },
    }
]

REDIS = read_variable("KPERFLAB_REDIS")
CACHES = caches(REDIS)
CHECK_HOURS = read_number("KPERFLAB_CHECK_HOURS", 24, least=0)
CHECK_KERNEL = read_variable("KPERFLAB_CHECK_KERNEL")
LEASE_S = read_number("KPERFLAB_LEASE_S", 15, least=1)
# 0 stands for the default, which depends on the disk.
DISK_GIB = read_number("KPERFLAB_DISK_GIB", 0)
DATABASES = {"default": database(read_variable("KPERFLAB_DATABASE"), HOME)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "lab.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
# Ten wrong passwords from one address lock the account for that address, in the pages and in the API alike.
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_CALLABLE = "web.views.account.locked_out"
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
# Behind a proxy everybody would share its address, and lock everybody else out.
AXES_CLIENT_IP_CALLABLE = "web.addresses.client_address"
LOGIN_URL = "login"
CSRF_FAILURE_VIEW = "web.views.missing.form_refused"
LOGIN_REDIRECT_URL = "front"
LOGOUT_REDIRECT_URL = "front"
ANONYMOUS_MAY_READ = not read_flag("KPERFLAB_PRIVATE")

# The library keeps a token's SHA-512 alone; ours adds a name and scopes.
KNOX_TOKEN_MODEL = "lab.Token"  # noqa: S105  a model, no password
REST_KNOX = {"AUTH_HEADER_PREFIX": "Token", "TOKEN_LIMIT_PER_USER": None}

FRONT = read_flag("KPERFLAB_FRONT", default=True)
VOUCHED = read_refs("KPERFLAB_VOUCHED")
LOCAL_PATHS = read_flag("KPERFLAB_LOCAL_PATHS")
PRIVATE_ADDRESSES = read_flag("KPERFLAB_PRIVATE_ADDRESSES")
LORE = read_variable("KPERFLAB_LORE", "https://lore.kernel.org/all").rstrip("/")
# Reverse proxies in front of us: without one, the address a request comes from is the peer's, whatever it claims.
PROXIES = int(read_number("KPERFLAB_PROXIES", 0))
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "web.api.auth.TokenAuth",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["web.api.auth.Allowed"],
    "DEFAULT_THROTTLE_CLASSES": ["web.api.auth.PersonLimit", "web.api.auth.StrangerLimit"],
    "DEFAULT_PARSER_CLASSES": ["web.api.bodies.StrictJSON"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PAGINATION_CLASS": "web.api.paging.Pages",
    "DEFAULT_SCHEMA_CLASS": "web.api.schema.Schema",
    "EXCEPTION_HANDLER": "web.api.problems.answer",
    "URL_FORMAT_OVERRIDE": None,
    "NUM_PROXIES": PROXIES,
}
# Limits on API requests: of a person, of an address without a sign-in, with passwords, and for the purposes below.
API_RATES = {
    "person": "1200/min",
    "stranger": "300/min",
    "login": "10/min",
    "submit": "60/min",
    "push": "60/min",
    "netboot": "120/min",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "kperflab",
    "DESCRIPTION": "A lab for kernel performance patches: experiments, what they are made of, and what came out.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        # Experiments and runs have equal states.
        "State": "lab.models.states.ExperimentState",
        "VariantState": "lab.models.states.VariantState",
        "BuildState": "lab.models.states.BuildState",
        "DeliveryState": "lab.models.states.DeliveryState",
        "TriageState": "lab.models.Triage.State",
        "VariantRole": "lab.models.states.Role",
        "UserRole": "lab.models.User.Role",
        "SwitchKind": "lab.models.Switch.Kind",
        "ProfileKind": "lab.models.Profile.Kind",
        "HookKind": "lab.models.Hook.Kind",
        "WorkKind": "lab.models.LateAnswer.Kind",
        "FetchState": "lab.models.states.FetchState",
        "FetchKind": "lab.models.Fetch.Kind",
        "Scope": "lab.people.permissions.ACTIONS",
    },
}

_store = store_settings()
STORE_PROBLEM = _store.problem
CACHE_GIB = read_number("KPERFLAB_CACHE_GIB", 0)
KEEP_DAYS = read_number("KPERFLAB_KEEP_DAYS", 90)

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = read_variable("KPERFLAB_STATIC") or None
# Without a folder of their own, files are served from the apps': nothing to collect before the first page.
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if STATIC_ROOT
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
    **_store.storages,
}

X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Strict"
SESSION_COOKIE_SAMESITE = "Lax"
# A patch series is pasted into one form field; kernels.patches.series has the finer limits.
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024
# As many files as the form says; Django itself stops reading a request that has more.
DATA_UPLOAD_MAX_NUMBER_FILES = MAX_MEMBERS

PUBLIC_URL = (read_variable("KPERFLAB_URL") or "http://127.0.0.1:8000").rstrip("/")
HTTPS = PUBLIC_URL.startswith("https://")
ALLOWED_HOSTS += filter(None, [urlsplit(PUBLIC_URL).hostname])
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL] if HTTPS else []
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if HTTPS else 0
# Liveness probes address the web server, not the proxy; the firmware of a machine that boots from the lab has no certificates.
SECURE_REDIRECT_EXEMPT = [r"^(health|ready|metrics)/?$", r"^netboot/"]
if PROXIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# The lab cannot know whether other names below its domain use https. Without https, lab.W001 reports what matters.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
if not HTTPS:
    SILENCED_SYSTEM_CHECKS += ["security.W004", "security.W008", "security.W012", "security.W016"]
# Where machines that boot over the network reach us: http:// and an IPv4 address, in their own network.
NETBOOT_URL = (read_variable("KPERFLAB_NETBOOT_URL") or PUBLIC_URL).rstrip("/")
ALLOWED_HOSTS += filter(None, [urlsplit(NETBOOT_URL).hostname])
HOOKS_PRIVATE = read_flag("KPERFLAB_HOOKS_PRIVATE")

_smtp = mail_server(read_variable("KPERFLAB_SMTP"))
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if _smtp.hostname else 'console'}.EmailBackend"
EMAIL_HOST = _smtp.hostname or "localhost"
EMAIL_USE_SSL = _smtp.scheme == "smtps"
# Passwords are not sent in clear text.
EMAIL_USE_TLS = bool(_smtp.password) and not EMAIL_USE_SSL
EMAIL_PORT = _smtp.port or (465 if EMAIL_USE_SSL else 587 if EMAIL_USE_TLS else 25)
EMAIL_HOST_USER = unquote(_smtp.username or "")
EMAIL_HOST_PASSWORD = unquote(_smtp.password or "")
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = read_variable("KPERFLAB_MAIL_FROM") or f"kperflab@{socket.gethostname()}"

METRICS_FROM = read_networks("KPERFLAB_METRICS_FROM")
LOG_FORM = "json" if read_variable("KPERFLAB_LOG") == "json" else "text"
