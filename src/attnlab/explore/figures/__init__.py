"""Pictures of the explorations; imported, and matplotlib with them, only when a picture is asked for."""
