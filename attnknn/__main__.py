"""`python -m attnknn`: the terminal."""

from attnknn.cli import main

main()
