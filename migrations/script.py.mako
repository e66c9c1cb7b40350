"""${message}."""

from alembic import op

from pyidem.migrate import run_frozen

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    run_frozen(op.get_context(), revision, "up")


def downgrade() -> None:
    run_frozen(op.get_context(), revision, "down")
