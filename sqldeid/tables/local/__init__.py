"""`search.method = "local"`: each equivalence class has levels of its own, with a proven bound of what must be lost."""
