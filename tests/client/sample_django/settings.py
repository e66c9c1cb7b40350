"""The settings of the project. The server is named by libpq's variables."""

import os

SECRET_KEY = "for tests"
USE_TZ = True
ROOT_URLCONF = "tests.client.sample_django.urls"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["PGDATABASE"],
        "ATOMIC_REQUESTS": True,
        # pyidem is installed in it, as it would be by the project's migrations
        "TEST": {"TEMPLATE": os.environ["PGDATABASE"]},
    }
}
