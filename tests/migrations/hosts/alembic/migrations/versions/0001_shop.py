"""The tables of the shop."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade():
    op.create_table(
        "orders",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("amount", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="orders_pkey"),
    )
    op.create_table(
        "invoices",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(20), server_default=sa.text("'open'"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="invoices_pkey"),
        schema="billing",
    )
    op.create_index("invoices_state", "invoices", ["state"], schema="billing")


def downgrade():
    op.drop_table("invoices", schema="billing")
    op.drop_table("orders")
