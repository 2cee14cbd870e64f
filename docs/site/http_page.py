"""The page of the HTTP interface, made from its OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prevalens.service.app import create_app
from prevalens.service.settings import Settings

_INTRODUCTION = """\
# HTTP interface

The operations of [`prevalens serve`](../service.md), from its OpenAPI description. A running server
shows the same at `/docs` and, for programs, at `/openapi.json`.
"""


def page() -> str:
    """A section per operation, then one per type."""
    description = create_app(Settings()).openapi()
    sections = [_INTRODUCTION]
    for path, operations in sorted(description["paths"].items()):
        for method, operation in operations.items():
            sections += _operation(f"{method.upper()} {path}", operation)
    sections.append("\n## Types\n")
    for name, schema in sorted(description["components"]["schemas"].items()):
        sections += _type(name, schema)
    return "\n".join(sections)


def _operation(title: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield operation.get("description") or operation.get("summary", "")
    parameters = operation.get("parameters", [])
    if parameters:
        yield "\n| parameter | place | type | meaning |\n|---|---|---|---|"
    for one in parameters:
        meaning = one.get("description", "")
        yield f"| `{one['name']}` | {one['in']} | {_kind(one['schema'])} | {_cell(meaning)} |"
    body = operation.get("requestBody", {}).get("content", {})
    if body:
        kinds = (f"`{kind}`: {_kind(value.get('schema', {}))}" for kind, value in body.items())
        yield "\nBody: " + "; ".join(kinds) + "."
    yield "\n| answer | meaning | type |\n|---|---|---|"
    for status, answer in sorted(operation["responses"].items()):
        kinds = {_kind(value.get("schema", {})) for value in answer.get("content", {}).values()}
        yield f"| {status} | {_cell(answer['description'])} | {', '.join(sorted(kinds))} |"


def _type(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"\n### {name}\n"
    yield schema.get("description", "")
    required = set(schema.get("required", ()))
    if schema.get("properties"):
        yield "\n| field | type | required | meaning |\n|---|---|---|---|"
    for field, value in schema.get("properties", {}).items():
        needed = "yes" if field in required else "no"
        meaning = _cell(value.get("description", ""))
        yield f"| `{field}` | {_kind(value)} | {needed} | {meaning} |"


def _kind(schema: dict[str, Any]) -> str:
    """A type in a few words, with a link if it has a section of its own."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_kind, schema["anyOf"])))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    return str(schema.get("type", "any"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
