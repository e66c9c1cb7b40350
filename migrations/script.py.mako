"""${message}."""

from alembic import op

from pyidem.migrate import run_frozen

revision = "${up_revision}"
down_revision = "${down_revision}"


def upgrade() -> None:
    run_frozen(op.get_context(), revision, "up")


def downgrade() -> None:
    run_frozen(op.get_context(), revision, "down")
