"""De-identify relational health data inside the database that holds it."""

__version__ = "0.1.0"
