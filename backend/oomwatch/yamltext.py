"""YAML as plain data, of files that people or other programs wrote. The library is loaded (1 MiB) when first needed."""


class YamlTextError(ValueError):
    """This is no YAML. The sentence tells place and mistake, and shows nothing of the text, which may be secret."""


def load(text: str) -> object:
    """The data of a text; None of an empty one. Raises YamlTextError."""
    import yaml  # noqa: PLC0415 - memory: an agent seldom has such a file

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise YamlTextError(_said(error)) from error
    except RecursionError:
        raise YamlTextError("this is nested too deep") from None
    except (ValueError, OverflowError, AttributeError) as error:  # as the library has it of 2026-99-99, !!timestamp x
        raise YamlTextError("a number or a date in it is none") from error


def _said(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return " ".join(str(error).replace('in "<unicode string>"', "").split()).replace(" ,", ",")
    said = getattr(error, "problem", None) or getattr(error, "context", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: this is no YAML: {said}"
