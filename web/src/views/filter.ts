import { toHex } from "../api/bytes";
import type { Board } from "../api/types";

/// A search box's text as a test. Terms are joined by spaces, and all must hold:
///   word          in any field        -word         in none
///   key=value     field or label      key!=value    not that
export function parseFilter(text: string): (fields: ReadonlyMap<string, string>) => boolean {
  const tests = text
    .toLowerCase()
    .split(/\s+/)
    .filter((t) => t !== "" && t !== "-")
    .map(termTest);
  return (fields) => tests.every((test) => test(fields));
}

type Fields = ReadonlyMap<string, string>;

function termTest(term: string): (fields: Fields) => boolean {
  const pair = /^([^=!]+)(!?=)(.*)$/.exec(term);
  if (pair !== null) {
    const [, key = "", op, wanted = ""] = pair;
    const exclude = op === "!=";
    return (fields) => {
      const value = fields.get(key) ?? fields.get(`label.${key}`);
      return (value === wanted) !== exclude;
    };
  }
  const exclude = term.startsWith("-");
  const word = exclude ? term.slice(1) : term;
  return (fields) => [...fields.values()].some((v) => v.includes(word)) !== exclude;
}

/// Fields as parseFilter() compares them.
export const toFields = (fields: Readonly<Record<string, string>>): Fields =>
  new Map(Object.entries(fields).map(([k, v]) => [k, v.toLowerCase()]));

export function boardFields(board: Board, status: string, model: string, runWord: string): Fields {
  const fields = new Map<string, string>([
    ["name", board.name],
    ["place", board.place],
    ["uid", toHex(board.uid)],
    ["core", board.core],
    ["type", board.boardType],
    ["firmware", board.fwVersion],
    ["port", board.link?.endpoint ?? ""],
    ["status", status],
    ["model", model],
    ["run", runWord],
  ]);
  for (const [key, value] of Object.entries(board.labels)) fields.set(`label.${key}`, value);
  return new Map([...fields].map(([k, v]) => [k.toLowerCase(), v.toLowerCase()]));
}
