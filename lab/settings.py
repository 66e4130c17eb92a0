# SPDX-License-Identifier: GPL-2.0-or-later
"""Django settings: one place that reads the environment.

KPERFLAB_HOME      where everything is kept (default /var/lib/kperflab for root,
                   else ~/.local/share/kperflab)
KPERFLAB_HOSTS     further host names the web pages answer to, separated by commas
KPERFLAB_DEBUG     1 shows tracebacks in the browser; never on a shared machine
"""

import os
import secrets
import tempfile
from pathlib import Path


def _home() -> Path:
    """Return the state root; made when missing, since the secret key lives there."""
    default = Path("/var/lib/kperflab") if os.geteuid() == 0 else Path.home() / ".local/share/kperflab"
    home = Path(os.environ.get("KPERFLAB_HOME") or default).absolute()
    home.mkdir(parents=True, exist_ok=True)
    return home


def _secret(path: Path) -> str:
    """Return the installation's own secret, made once and readable by its owner only."""
    if not path.exists():
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(48))
        try:
            # Two processes may start at once: the first link wins, both read the same key.
            path.hardlink_to(draft)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()


HOME = _home()
SECRET_KEY = _secret(HOME / "secret.key")
DEBUG = os.environ.get("KPERFLAB_DEBUG") == "1"
ALLOWED_HOSTS = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    *filter(None, os.environ.get("KPERFLAB_HOSTS", "").split(",")),
]

INSTALLED_APPS = [
    "django.contrib.humanize",
    "django.contrib.staticfiles",
    "lab",
    "web",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "lab.headers.content_security_policy",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "web.urls"
WSGI_APPLICATION = "web.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
    }
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(HOME / "kperflab.sqlite3"),
        # WAL lets the pages read while a worker writes; IMMEDIATE takes the write lock at BEGIN, so
        # that two writers wait for each other instead of failing half way.
        "OPTIONS": {
            "timeout": 30,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
        # A file of its own: the queue's tests race threads, which an in-memory database cannot.
        "TEST": {"NAME": str(Path(tempfile.gettempdir()) / f"kperflab-{os.getpid()}.sqlite3")},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
# Files are served from the apps' own folders: nothing to collect before the first page.
WHITENOISE_USE_FINDERS = True

X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Strict"
# A patch series is pasted into one form field; kernels.patch has the finer limits.
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024
