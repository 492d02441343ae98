"""Event sequences (Shaked & Rokach 2016): sequences ─▶ clusters ─▶ count ─▶ privatise ─▶ generate ─▶ stage."""
