"""What the applications in the middleware keep of a request and of an answer."""

LARGE = 3 * 1024 * 1024
LIMIT = 64 * 1024
