"""A Django project whose tests run with Django's own runner, in a test database that it makes from a template."""
