"""The page on which people sign in, in both languages at once: nobody who is not known has chosen one.

No script and no style sheet of the page's own: nothing else is served to whoever has no token.
"""

import math
from html import escape
from typing import NamedTuple

from starlette.responses import HTMLResponse, Response

OIDC_START = "/sign-in/oidc"

_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>oomwatch</title>
<style>
main {{ font: 16px/1.5 system-ui, sans-serif; max-width: 26rem; margin: 12vh auto; padding: 0 1rem }}
input, button, .button {{ font: inherit; box-sizing: border-box; padding: .4rem; border-radius: 4px;
  border: 1px solid }}
input {{ width: 100% }}
button, .button {{ display: inline-block; padding: .4rem 1rem; color: ButtonText; background: ButtonFace;
  text-decoration: none; cursor: pointer }}
summary {{ cursor: pointer; padding: .4rem 0 }}
small {{ font-size: 14px }}
</style></head>
<body><main>
<h1>oomwatch</h1>
{note}
{ways}
</main></body></html>
"""
_NAME_FORM = """\
<form method="post">
<p><label for="name">Name · 用户名</label><br>
<input id="name" name="name" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus></p>
<p><label for="password">Password · 密码</label><br>
<input id="password" name="password" type="password" autocomplete="current-password" required></p>
<input type="hidden" name="form" value="{form}">
<p><button>Sign in · 登录</button></p>
</form>
"""
_PROVIDER_LINK = """\
<p><a class="button" href="{start}">Sign in with {host} · 单点登录</a></p>
"""
_HOLDER_FORM = """\
<form method="post">
<p><label for="token">Token · 令牌</label><br>
<input id="token" name="token" type="password" autocomplete="{autocomplete}" required{autofocus}></p>
<input type="hidden" name="form" value="{form}">
<p><button>{button}</button></p>
</form>
<p><small>An operator makes one by<br><code>oomwatch token create --role reader NAME</code>.<br>
<span lang="zh-Hans">运维人员可用上面的命令创建令牌。</span></small></p>
"""
_MORE = """\
<details{open}><summary>With a token · 使用令牌</summary>
{form}</details>
"""


class Ways(NamedTuple):
    """By which ways people may sign in. Tokens are always one. `provider`: the host of OpenID Connect's."""

    has_users: bool
    provider: str | None


class Note(NamedTuple):
    """What went wrong, in both languages; `detail` is what somebody else said, in English."""

    en: str
    zh: str
    detail: str = ""


WRONG_TOKEN = Note("This token is not known, or not any more.", "此令牌无效，或已失效。")
WRONG_PASSWORD = Note("Name and password do not belong together.", "用户名或密码不正确。")
OLD_FORM = Note(
    "This form is no longer good, or your browser keeps no cookies. Try again.",
    "此表单已失效，或浏览器禁用了 Cookie。请重试。",
)
BUSY = Note("Too many people sign in at this moment. Try again in a few seconds.", "当前登录人数过多，请几秒后重试。")
NO_DATABASE = Note(
    "The database cannot be used, so nobody can sign in by name.", "数据库不可用，暂时无法用用户名登录。"
)
LED_HERE = Note(
    "A link on another site cannot sign you in: copy the address into the address bar, or enter the token here.",
    "其他网站上的链接不能用来登录：请把地址复制到地址栏，或在此输入令牌。",
)
LOST_TRIP = Note(
    "This sign-in took too long, was begun in another browser, or is over already. Begin again.",
    "登录已超时、不是在此浏览器中开始的，或已经完成。请重新开始。",
)


def too_often(wait_seconds: float) -> Note:
    """Tries must wait for so long."""
    seconds = math.ceil(wait_seconds)
    return Note(f"Too many tries. Try again in {seconds} s.", f"尝试次数过多，请在 {seconds} 秒后重试。")


def not_vouched_for(reason: str) -> Note:
    """The identity provider, or what it said, is of no use."""
    return Note("The identity provider could not sign you in.", "身份提供方未能完成登录。", reason)


def no_group(name: str) -> Note:
    """Somebody is known elsewhere, and may do nothing here."""
    return Note(
        f"You are signed in as {name}, but in no group that may look at this server.",
        f"你已以 {name} 的身份登录，但不属于任何可以查看此服务器的组。",
    )


def sign_in_page(ways: Ways, form: str, note: Note | None = None, status: int = 401) -> Response:
    """The forms. `form`: what the browser's cookie holds too, so that no other site can send them."""
    page = _PAGE.format(note="" if note is None else _told(note), ways=_ways(ways, form, note))
    # With no referrer at all a browser sends the form with the Origin null, which the guard takes for a stranger's.
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    answer = HTMLResponse(page, status, headers)
    answer.headers["Content-Security-Policy"] = (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    return answer


def _told(note: Note) -> str:
    detail = f'<br><small lang="en">{escape(note.detail)}</small>' if note.detail else ""
    told = f'<strong>{escape(note.en)}</strong><br><span lang="zh-Hans">{escape(note.zh)}</span>{detail}'
    return f'<p role="alert">{told}</p>'


def _ways(ways: Ways, form: str, note: Note | None) -> str:
    told = _NAME_FORM.format(form=escape(form)) if ways.has_users else ""
    if ways.provider is not None:
        told += _PROVIDER_LINK.format(start=OIDC_START, host=escape(ways.provider))
    if not told:
        return _HOLDER_FORM.format(
            form=escape(form), button="Sign in · 登录", autofocus=" autofocus", autocomplete="current-password"
        )
    by_token = _HOLDER_FORM.format(
        form=escape(form), button="Sign in with the token · 用令牌登录", autofocus="", autocomplete="off"
    )
    return told + _MORE.format(form=by_token, open=" open" if note in (WRONG_TOKEN, LED_HERE) else "")
