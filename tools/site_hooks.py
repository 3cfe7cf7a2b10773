"""What mkdocs does to a page before it becomes HTML: the mark `no-run` is for `run_doc_blocks.py`, not for readers.

Markdown for the site takes a fence for one only when nothing but a language stands behind it.
"""

import re
from typing import Any

_NOT_RUN = re.compile(r"^(\s*```\w+) no-run$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The text of a page without the mark.

    >>> on_page_markdown("```python no-run\\n1 / 0\\n```")
    '```python\\n1 / 0\\n```'
    """
    return _NOT_RUN.sub(r"\1", markdown)
