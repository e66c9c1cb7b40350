"""The tables of the shop, in two schemas."""

from sqlalchemy import MetaData, String, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """All tables."""

    metadata = MetaData(naming_convention={"pk": "%(table_name)s_pkey", "ix": "%(table_name)s_%(column_0_name)s"})


class Order(Base):
    """An order, in the default schema."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    amount: Mapped[int]

    @classmethod
    def in_default_schema(cls) -> MetaData:
        """Return what a project that has no other schema knows."""
        metadata = MetaData()
        cls.__table__.to_metadata(metadata)
        return metadata


class Invoice(Base):
    """An invoice, in a schema of its own."""

    __tablename__ = "invoices"
    __table_args__ = {"schema": "billing"}
    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(String(20), index=True, server_default=text("'open'"))
