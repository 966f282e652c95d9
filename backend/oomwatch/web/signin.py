"""The page where a browser gives its token, and the cookie that keeps it."""

from urllib.parse import parse_qs, quote

from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from oomwatch.web.answers import content_of

COOKIE = "oomwatch_token"
COOKIE_SECONDS = 30 * 86400
SIGN_IN = "/sign-in"
SIGN_OUT = "/sign-out"
FORM_BYTES_MAX = 8192

# No script and no style sheet of the page's own: nothing else is served to whoever has no token.
_PAGE = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>oomwatch</title>
<main style="font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:15vh auto;padding:0 1rem">
<h1>oomwatch</h1>
{note}
<form method="post" action="{action}">
<p><label for="token">Token · 令牌</label><br>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus
 style="font:inherit;width:100%;box-sizing:border-box;padding:.4rem"></p>
<p><button style="font:inherit;padding:.4rem 1rem">Sign in · 登录</button></p>
</form>
<p style="font-size:14px">An operator makes one by<br><code>oomwatch token create --role reader NAME</code>.<br>
<span lang="zh-Hans">运维人员可用上面的命令创建令牌。</span></p>
</main></html>
"""
_WRONG = (
    '<p role="alert"><strong>This token is not known, or not any more.</strong><br>'
    '<span lang="zh-Hans">此令牌无效，或已失效。</span></p>'
)


def sign_in_page(*, wrong: bool = False) -> Response:
    """The form. 401: what was asked for is not shown."""
    page = _PAGE.format(note=_WRONG if wrong else "", action=SIGN_IN)
    # With no referrer at all a browser sends the form with the Origin null, which the guard takes for a stranger's.
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    answer = HTMLResponse(page, 401, headers)
    answer.headers["Content-Security-Policy"] = (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    return answer


def wants_page(connection: HTTPConnection) -> bool:
    """Whether a person looks, with a browser, for the page."""
    return connection.scope["path"] == "/" and "text/html" in connection.headers.get("accept", "")


async def token_in_form(request: Request) -> str:
    """What was typed into the form. Raises RefusedError where it is too long."""
    form = parse_qs((await content_of(request, FORM_BYTES_MAX, "the form is")).decode(errors="replace"))
    return form.get("token", [""])[0].strip()


def remember(answer: Response, connection: HTTPConnection, token: str, *, secure: bool) -> Response:
    """Keep the token in a cookie that scripts and other sites do not see. `secure`: people come by https."""
    answer.set_cookie(
        COOKIE, quote(token, safe=""), max_age=COOKIE_SECONDS, httponly=True, samesite="strict",
        secure=secure or connection.scope["scheme"] == "https",
    )  # fmt: skip
    return answer


async def sign_out(_: Request) -> Response:
    """Forget the cookie."""
    answer = RedirectResponse("/", status_code=303)
    answer.delete_cookie(COOKIE)
    return answer
