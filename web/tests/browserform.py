# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a form out of a page and sends it as a browser would: what is not in the markup is not sent."""

from __future__ import annotations

from html.parser import HTMLParser


class BrowserForm(HTMLParser):
    """The controls of the form of one id. sent: names and values, in the order of the page."""

    def __init__(self, page: str, form_id: str) -> None:
        super().__init__()
        self.sent: list[tuple[str, str]] = []
        self._form_id, self._inside = form_id, False
        self._select = ""
        # Of the select that is open: its options' values, and the selected one.
        self._options: list[str] = []
        self._selected: int | None = None
        self._text: list[str] | None = None
        self._area = ""
        self._option_has_value = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value if value is not None else "" for name, value in attrs}
        if tag == "form":
            self._inside = said.get("id") == self._form_id
        if not self._inside:
            return
        if tag == "input":
            self._input(said)
        elif tag == "textarea":
            self._area, self._text = said["name"], []
        elif tag == "select":
            self._select, self._options, self._selected = said["name"], [], None
        elif tag == "option":
            self._option_has_value = "value" in said
            self._options.append(said.get("value", ""))
            if "selected" in said:
                self._selected = len(self._options) - 1
            self._text = []

    def _input(self, said: dict[str, str]) -> None:
        kind = said.get("type", "text")
        if kind == "file" or (kind in ("checkbox", "radio") and "checked" not in said):
            return
        self.sent.append((said["name"], said.get("value", "on" if kind == "checkbox" else "")))

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        elif tag == "textarea" and self._area:
            text = "".join(self._text or ())
            # A browser drops the newline that follows the tag, and sends each line end as two characters.
            self.sent.append((self._area, text.removeprefix("\n").replace("\n", "\r\n")))
            self._area, self._text = "", None
        elif tag == "option" and self._select and self._text is not None:
            if not self._option_has_value:
                self._options[-1] = "".join(self._text).strip()
            self._text = None
        elif tag == "select" and self._select:
            if self._options:
                self.sent.append((self._select, self._options[self._selected or 0]))
            self._select = ""

    def as_post(self) -> dict[str, list[str]]:
        """Return what a test client posts."""
        fields: dict[str, list[str]] = {}
        for name, value in self.sent:
            fields.setdefault(name, []).append(value)
        return fields
