"""Write docs/reference/advice.md, and its translation, from the catalogue: `python -m tests.advice.write_page`."""

from pathlib import Path

from scripts import translations

from oomwatch import wire
from oomwatch.advice.catalogue import Entry, entries
from oomwatch.catalogue import say
from oomwatch.core.cause import HYPOTHESES
from oomwatch.core.subject import Topic

_FOLDER = Path(__file__).resolve().parents[2] / "docs/reference"
PATHS: dict[wire.Language, Path] = {"en": _FOLDER / "advice.md", "zh": _FOLDER / "advice.zh.md"}
_EN = """# Causes and remedies

An alert that fires says what is probably behind it, on what evidence, and the best three things to change. This
page lists all causes and remedies; it is made from the data (`python -m tests.advice.write_page`).

- **Causes** are judged by `backend/oomwatch/core/cause/`: each is one small function from what is known (peaks
  and floors of the phases, lengths, torch's figures, what the engine keeps after it slept, who holds the card)
  to a score. The scores of an alert's causes add up to 1 at most.
- **Remedies** are data: `backend/oomwatch/advice/remedies.yaml`. A setting is named only to a run whose
  configuration has it, or whose version of verl knows it (`verlkeys.json`, read from the releases). The
  value to set is worked out from the run's own configuration and the evidence, and keeps to what verl's batch
  arithmetic lets divide. Where the configuration was not told, the setting is named and no value.
- A remedy is worth more the likelier its cause, the more of what is needed it frees, and the less it costs. Of the best
  three, one that prevents nothing and only limits the damage stands last.
- "Needed" is what has to be freed to fit what failed, to get below the rule's limit or, where memory rises, to go
  on for fifty steps at the present pace. Where that is more than the card has, it is not told.
- "Reported" figures are those of others, and not measured here.
"""
_ZH = """# 原因与处理建议

触发的告警会说明背后可能是什么、依据什么，以及最值得做的三项修改。本页列出全部原因和处理建议；
它由数据生成（`python -m tests.advice.write_page`）。

- **原因**由 `backend/oomwatch/core/cause/` 判断：每个原因是一个小函数，
  从已知的情况（各阶段的峰值和谷值、长度、torch 的数字、引擎休眠后留下的、谁占着卡）得出一个分数。
  一个告警的各原因的分数之和至多为 1。
- **处理建议**是数据：`backend/oomwatch/advice/remedies.yaml`。只有当任务的配置里有某项设置，
  或它的 verl 版本认识该设置（`verlkeys.json`，从各发布版本读出）时，才提到它。
  要设的值由任务自己的配置和依据算出，并遵守 verl 的批次算术对整除的要求。不知道配置时，只提设置，不给值。
- 原因越可能、能释放的占所需的比例越大、代价越小，建议就越靠前。
  最好的三项中，什么也避免不了、只能减少损失的排在最后。
- “所需”是要释放多少：放得下失败的那一次，降到规则的界限以下，或者在内存上升时，照现在的速度再走五十步。
  如果这超过卡的容量，就不说。
- “据报道”的数字来自他人，不是在这里测得的。
"""
HEAD: dict[wire.Language, str] = {"en": _EN, "zh": _ZH}
SECTIONS: dict[wire.Language, tuple[str, str]] = {"en": ("Causes", "Remedies"), "zh": ("原因", "处理建议")}
COLUMNS: dict[wire.Language, tuple[str, str]] = {
    "en": ("| cause | what it is | of alerts about |", "| remedy | what to do | setting | for | costs | source |"),
    "zh": ("| 原因 | 是什么 | 用于哪类告警 |", "| 建议 | 做什么 | 设置 | 用于 | 代价 | 来源（英文） |"),
}
PRICES: dict[wire.Language, dict[int, str]] = {
    "en": {2: "a little", 3: "much", 4: "changes what is learned"},
    "zh": {2: "较小", 3: "较大", 4: "影响训练效果"},
}
TOPICS: dict[wire.Language, dict[Topic, str]] = {
    "en": {},
    "zh": {"device": "显存", "host": "主机内存", "disk": "磁盘", "speed": "速度", "switch": "切换"},
}
COMMA: dict[wire.Language, str] = {"en": ", ", "zh": "、"}
COLON: dict[wire.Language, str] = {"en": ": ", "zh": "："}


def page(language: wire.Language) -> str:
    causes, remedies = SECTIONS[language]
    parts = [HEAD[language], f"## {causes}", "", *_causes(language), "", f"## {remedies}", "", *_remedies(language), ""]
    return "\n".join(parts)


def _causes(language: wire.Language) -> list[str]:
    topics = {cause: [one.topics for one in HYPOTHESES if one.cause == cause] for cause in wire.CAUSES}
    return [
        COLUMNS[language][0],
        "|---|---|---|",
        *(f"| `{cause}` | {say(f'cause.{cause}', language)} | {_about(topics[cause], language)} |" for cause in topics),
    ]


def _about(topics: list[tuple[Topic, ...]], language: wire.Language) -> str:
    each = dict.fromkeys(topic for one in topics for topic in one)
    return COMMA[language].join(TOPICS[language].get(topic, topic) for topic in each)


def _remedies(language: wire.Language) -> list[str]:
    return [COLUMNS[language][1], "|---|---|---|---|---|---|", *(_row(one, language) for one in entries())]


def _row(entry: Entry, language: wire.Language) -> str:
    keys = "<br>".join(f"`{key}`" for key in entry.keys) or "-"
    price, text = entry.price.by_language()[language], entry.text.by_language()[language]
    if entry.price.level > 1:
        price = f"{PRICES[language][entry.price.level]}{COLON[language]}{price}"
    return f"| `{entry.remedy}` | {text} | {keys} | {', '.join(entry.causes)} | {price} | {entry.source} |"


def write() -> None:
    for language, place in PATHS.items():
        place.write_text(page(language), encoding="utf-8")
    translations.note(PATHS["zh"])


if __name__ == "__main__":
    write()
