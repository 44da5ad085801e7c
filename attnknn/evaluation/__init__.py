"""The honest protocol: every vote on the same neighbors, with paired intervals."""
