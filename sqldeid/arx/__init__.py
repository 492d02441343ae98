"""Projects of ARX, the reference tool, taken as jobs: what was decided there need not be typed again."""

from sqldeid.arx.importing import Imported, import_arx

__all__ = ["Imported", "import_arx"]
