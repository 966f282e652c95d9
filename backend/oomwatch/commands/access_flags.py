"""What the commands on the database take: token, audit, backup. Light to load: every command of `oomwatch` reads it."""

import argparse
from pathlib import Path

from oomwatch.access.person import PERSON_ROLES
from oomwatch.access.token import ROLES

TOKENS = """\
Makes, lists and revokes tokens of agents, readers and operators. The server's database keeps their digests: a token is
shown once, when it is made. A running server takes changes over within two seconds.

  agent     may send what a node says; with --node, for these nodes alone
  reader    may look: the page, the REST interface, /metrics
  operator  may look and act: acknowledge, silence, change rules, forget nodes

As soon as there is a token of a role, whoever wants to do what it is for needs one.

examples:
  oomwatch token create --role agent gpu-pool
  oomwatch token create --role operator --expires 90d lin
  oomwatch token list
  oomwatch token rotate gpu-pool --grace 24h
  oomwatch token revoke lin

The database is the one of --db or OOMWATCH_DB, else the one that a server on this machine would use."""

CREATE = "Makes a token and prints it; it cannot be shown again."
LIST = "Lists the tokens, without their secrets."
ROTATE = "Makes another token of the same name and role, and lets the old ones expire after the time of grace."
REVOKE = "Makes the tokens of this name useless. Whoever is connected by one of them is cut off."

BACKUP = """\
Copies the database of a server into FILE, while the server runs, and checks the copy. To restore it, stop the server
and put FILE in the database's place (docs/howto/backup.md).
The database is the one of --db or OOMWATCH_DB, else the one that a server on this machine would use."""

BEGIN_ANEW = """\
Gives a damaged database up: the file of --db or OOMWATCH_DB (else the one that a server on this machine would use) is
put aside under another name, and an empty one takes its place. Restore a backup instead where there is one
(docs/howto/backup.md). Users and tokens are gone too, so the new one lets nobody in until one is made, unless --open is
said. The server must be stopped; a file that is sound, or not oomwatch's, is left as it is."""

AUDIT = """\
Lists what people had the server do: who, by which token, from where, and whether it was done. The latest first.
The database is the one of --db or OOMWATCH_DB, else the one that a server on this machine would use."""


USERS = """\
Makes, lists and removes people who sign in with a browser by name and password. Scripts, agents and Prometheus have
tokens (oomwatch token). The server's database keeps hashes of the passwords. A running server takes changes over within
two seconds.

  reader    may look: the page, the REST interface
  operator  may look and act: acknowledge, silence, change rules, forget nodes

As soon as there is a user, nobody looks or acts who has not signed in or shows a token.

examples:
  oomwatch user add lin --role operator
  oomwatch user password lin
  oomwatch user remove lin

The password is asked for, twice, and shown nowhere.
The database is the one of --db or OOMWATCH_DB, else the one that a server on this machine would use."""

USER_ADD = "Makes a user, and asks for the password."
USER_LIST = "Lists the users."
USER_REMOVE = "Removes a user. Every browser that signed in by this name is signed out."
USER_PASSWORD = "Asks for another password of a user. Every browser that signed in by the old one is signed out."  # noqa: S105


def add_database_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--db", metavar="FILE|URL", help="the server's database (OOMWATCH_DB)")


def add_create_flags(parser: argparse.ArgumentParser) -> None:
    add_database_flag(parser)
    parser.add_argument("name", metavar="NAME", help="what it is for or whose it is: a person, a pool of nodes")
    parser.add_argument("--role", choices=ROLES, required=True, help="what its holder may do")
    parser.add_argument(
        "--node", action="append", default=[], metavar="NODE", help="node that an agent may speak for; may be repeated"
    )
    parser.add_argument("--expires", metavar="TIME", help="for how long it is good, for example 90d (default: always)")


def add_list_flags(parser: argparse.ArgumentParser) -> None:
    add_database_flag(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_rotate_flags(parser: argparse.ArgumentParser) -> None:
    add_database_flag(parser)
    parser.add_argument("name", metavar="NAME", help="name of the tokens")
    parser.add_argument("--grace", metavar="TIME", default="24h", help="so long the old ones are good (default: 24h)")


def add_revoke_flags(parser: argparse.ArgumentParser) -> None:
    add_database_flag(parser)
    parser.add_argument("name", metavar="NAME", help="name or id of the tokens")


def add_user_add_flags(parser: argparse.ArgumentParser) -> None:
    add_user_password_flags(parser)
    parser.add_argument("--role", choices=PERSON_ROLES, required=True, help="what the user may do")


def add_user_password_flags(parser: argparse.ArgumentParser) -> None:
    add_user_name(parser)
    parser.add_argument(
        "--password-stdin", action="store_true", help="read the password from standard input, its first line"
    )


def add_user_name(parser: argparse.ArgumentParser) -> None:
    add_database_flag(parser)
    parser.add_argument("name", metavar="NAME", help="by which the user signs in")


def add_audit_flags(parser: argparse.ArgumentParser) -> None:
    add_list_flags(parser)
    parser.add_argument("--since", metavar="TIME", default="7d", help="how far back, for example 24h (default: 7d)")


def add_backup_flags(parser: argparse.ArgumentParser) -> None:
    add_database_flag(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="where to; it must not be there")


def add_begin_anew_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    add_database_flag(parser)
    parser.add_argument(
        "--open", action="store_true", help="let whoever can reach the server in, as a first start does"
    )
