"""Names in paths: whatever an agent calls a node or a run, with slashes and line feeds in it."""

from starlette.convertors import Convertor, register_url_convertor


class Whole(Convertor[str]):
    """Starlette's `path` ends at a line feed, and its `str` at a slash."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("whole", Whole())

NAME, ALERT = "{name:whole}", "{alert:whole}"  # what a route's path has for it
