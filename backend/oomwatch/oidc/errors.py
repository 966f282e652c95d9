"""What keeps somebody from signing in by way of the identity provider."""


class OidcError(Exception):
    """The text is for whoever signs in and for who runs the server; it holds no secret."""
