"""Sign-in by OpenID Connect: the authorization code flow with PKCE, of a confidential or a public client."""
