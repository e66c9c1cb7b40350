"""First installation."""

from alembic import op

from pyidem.migrate import run_frozen

revision = "idem_0001"
down_revision = None
branch_labels = ("pyidem",)
depends_on = None


def upgrade() -> None:
    run_frozen(op.get_context(), revision, "up")


def downgrade() -> None:
    run_frozen(op.get_context(), revision, "down")
