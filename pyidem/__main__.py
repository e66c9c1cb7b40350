"""`python -m pyidem`."""

from pyidem.cli import main

if __name__ == "__main__":
    main()
