"""The shared SQL as PostgreSQL reads it."""

import pytest

from bot.database.dialect import numbered, table


@pytest.mark.parametrize(
    ("sql", "prepared", "names"),
    [
        ("SELECT 1", "SELECT 1", ()),
        ("a = :a AND b = :b_2", "a = $1 AND b = $2", ("a", "b_2")),
        ("a = :x OR b = :y OR c = :x", "a = $1 OR b = $2 OR c = $1", ("x", "y")),
        ("(:a,:b)", "($1,$2)", ("a", "b")),
        ("x::text = :x::text", "x::text = $1::text", ("x",)),
        ("':a' = :a", "':a' = $1", ("a",)),
        ("'it''s :a' = :b", "'it''s :a' = $1", ("b",)),
        (r"E'it\'s :a' = :b", r"E'it\'s :a' = $1", ("b",)),
        ('":a" = :a', '":a" = $1', ("a",)),
        ("a -- :no\n= :a", "a -- :no\n= $1", ("a",)),
        ("a /* :no\n:no */ = :a", "a /* :no\n:no */ = $1", ("a",)),
        ("DO $$ :no $$, :a", "DO $$ :no $$, $1", ("a",)),
        ("DO $x$ $$ :no $x$, :a", "DO $x$ $$ :no $x$, $1", ("a",)),
        ("'12:30' < :a || ':'", "'12:30' < $1 || ':'", ("a",)),
    ],
)
def test_parameters_are_numbered(sql: str, prepared: str, names: tuple[str, ...]) -> None:
    """Each name has one number; what stands in quotes, comments, bodies and casts is left alone."""
    assert numbered(sql) == (prepared, names)


@pytest.mark.parametrize(
    ("sql", "made"),
    [
        ("CREATE TABLE a (x TEXT NOT NULL, y BLOB)", 'CREATE TABLE a (x TEXT COLLATE "C" NOT NULL, y BYTEA)'),
        ("create table text (text text,\n blob blob)", 'create table text (text TEXT COLLATE "C",\n blob BYTEA)'),
        ('CREATE TABLE a ("x y" TEXT, z TEXT)', 'CREATE TABLE a ("x y" TEXT COLLATE "C", z TEXT COLLATE "C")'),
        ("ALTER TABLE a ADD COLUMN text TEXT", 'ALTER TABLE a ADD COLUMN text TEXT COLLATE "C"'),
        ("ALTER TABLE text ADD text TEXT DEFAULT 'a TEXT'", "ALTER TABLE text ADD text TEXT COLLATE \"C\" DEFAULT 'a TEXT'"),
        ("CREATE TABLE a (x TEXT DEFAULT CAST(1 AS TEXT))", 'CREATE TABLE a (x TEXT COLLATE "C" DEFAULT CAST(1 AS TEXT))'),
        ('CREATE TABLE a (x TEXT COLLATE "es_ES")', 'CREATE TABLE a (x TEXT COLLATE "es_ES")'),
        ("INSERT INTO a SELECT x TEXT", "INSERT INTO a SELECT x TEXT"),
    ],
)
def test_tables_have_its_types(sql: str, made: str) -> None:
    """Text is ordered by its characters and bytes are BYTEA, whatever columns and tables are called; other statements stay as they are."""
    assert table(sql) == made
