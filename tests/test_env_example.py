"""`.env.example` says what can be set, and says it truly."""

from pathlib import Path

from bot.registry import load
from bot.settings import environment, example, read, refuse_unknown

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / ".env.example"


def test_it_has_the_settings_of_the_built_in_plugins() -> None:
    """`make settings` is how it is made; a plugin that comes with the bot hides no setting of its own."""
    assert EXAMPLE.read_text(encoding="utf-8") == example(load(installed=False).sections)


def test_its_defaults_can_be_uncommented(tmp_path: Path) -> None:
    """Copied to `.env` with every line uncommented, it changes nothing: the same defaults, and nothing is refused."""
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    chosen = [line.removeprefix("# ") for line in lines if line.startswith("# ") and line.removeprefix("# ").split("=")[0].isupper()]
    (tmp_path / ".env").write_text("\n".join(chosen), encoding="utf-8")
    written = {line.split("=")[0] for line in chosen}
    values = {name: value for name, value in environment(tmp_path).items() if name in written}
    sections = load(installed=False).sections

    refuse_unknown(values, sections)
    for section in sections:
        defaults = read(section, {}).model_dump()
        assert read(section, values).model_dump() == {**defaults, **_documents(defaults)}
    assert len(chosen) == sum(len(section.model_fields) for section in sections)


def _documents(defaults: dict[str, object]) -> dict[str, object]:
    """The default folders stand in the checkout; in the file they are written from its root."""
    documents = defaults.get("documents")
    return {"documents": tuple(str(Path(d).relative_to(ROOT)) for d in documents)} if isinstance(documents, tuple) else {}
