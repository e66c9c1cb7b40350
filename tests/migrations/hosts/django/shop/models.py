"""The tables of the shop."""

from django.db import models


class Order(models.Model):
    """An order."""

    amount = models.IntegerField()
