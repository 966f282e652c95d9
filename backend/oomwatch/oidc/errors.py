"""What keeps somebody from signing in by way of the identity provider."""


class OidcError(Exception):
    """The text is for whoever signs in and for who runs the server; it holds no secret."""


class ProviderAwayError(OidcError):
    """It does not answer, or not as a provider: whoever signs in has done nothing wrong."""
