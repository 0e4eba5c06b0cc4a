// Charts as text of SVG, for files that are to be read without the dashboard.
import { lineColour } from "./palette";
import { roundTicks } from "./scatter";

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

export interface SvgLine {
  label: string;
  x: ArrayLike<number>;
  y: ArrayLike<number>; // NaN: no value
  colour: number;
  faint?: boolean;
}

interface SvgChart {
  title: string;
  xLabel: string;
  lines: readonly SvgLine[];
  format: (v: number) => string;
}

const kWidth = 640;
const kHeight = 220;
const kLeft = 60;
const kRight = 12;
const kTop = 8;
const kBottom = 34;

function range(lines: readonly SvgLine[], of: (l: SvgLine) => ArrayLike<number>): [number, number] {
  let [lo, hi] = [Infinity, -Infinity];
  for (const line of lines) {
    const values = of(line);
    for (let i = 0; i < values.length; i++) {
      const v = values[i] ?? NaN;
      if (v < lo) lo = v;
      if (v > hi) hi = v;
    }
  }
  if (lo > hi) return [0, 1];
  return hi > lo ? [lo, hi] : [lo - 0.5, hi + 0.5];
}

/// One chart; "" without any value.
export function chartSvg({ title, xLabel, lines, format }: SvgChart): string {
  const known = lines.filter((l) => Array.from(l.y).some(Number.isFinite));
  if (known.length === 0) return "";
  const [x0, x1] = range(known, (l) => l.x);
  const [y0, y1] = range(known, (l) => l.y);
  const px = (v: number): string =>
    (kLeft + ((v - x0) / (x1 - x0)) * (kWidth - kLeft - kRight)).toFixed(1);
  const py = (v: number): string =>
    (kHeight - kBottom - ((v - y0) / (y1 - y0)) * (kHeight - kBottom - kTop)).toFixed(1);
  const path = (l: SvgLine): string => {
    let out = "";
    for (let i = 0; i < l.x.length; i++) {
      const v = l.y[i] ?? NaN;
      if (Number.isFinite(v)) out += `${out === "" ? "M" : "L"}${px(l.x[i] ?? 0)} ${py(v)}`;
    }
    return out;
  };
  const grid = roundTicks(y0, y1).map(
    (v) =>
      `<path d="M${kLeft} ${py(v)}H${kWidth - kRight}" stroke="#d8dee4"/>` +
      `<text x="${kLeft - 6}" y="${Number(py(v)) + 4}" text-anchor="end">${escapeHtml(format(v))}</text>`,
  );
  const across = roundTicks(x0, x1).map(
    (v) => `<text x="${px(v)}" y="${kHeight - kBottom + 15}" text-anchor="middle">${v}</text>`,
  );
  const drawn = known.map(
    (l) =>
      `<path d="${path(l)}" fill="none" stroke="${lineColour(l.colour, false)}" stroke-width="${l.faint === true ? 0.8 : 1.8}" stroke-opacity="${l.faint === true ? 0.35 : 1}"/>`,
  );
  const legend = known
    .filter((l) => l.faint !== true)
    .map(
      (l) =>
        `<span><svg width="18" height="8"><path d="M0 4h18" stroke="${lineColour(l.colour, false)}" stroke-width="3"/></svg> ${escapeHtml(l.label)}</span>`,
    );
  return (
    `<figure><figcaption>${escapeHtml(title)}</figcaption>` +
    `<svg viewBox="0 0 ${kWidth} ${kHeight}" role="img" aria-label="${escapeHtml(title)}" font-family="sans-serif" font-size="12" fill="#55626f">` +
    `${grid.join("")}${across.join("")}<text x="${kWidth / 2}" y="${kHeight - 3}" text-anchor="middle">${escapeHtml(xLabel)}</text>${drawn.join("")}</svg>` +
    `<p class="legend">${legend.join(" ")}</p></figure>`
  );
}

/// A table of texts; without names of columns where all of them are empty.
export function tableHtml(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const names = head.map((h) => (h === "" ? "<td></td>" : `<th scope="col">${escapeHtml(h)}</th>`));
  const top = head.every((h) => h === "") ? "" : `<thead><tr>${names.join("")}</tr></thead>`;
  const cell = (text: string, i: number): string =>
    i === 0 ? `<th scope="row">${escapeHtml(text)}</th>` : `<td>${escapeHtml(text)}</td>`;
  const body = rows.map((r) => `<tr>${r.map(cell).join("")}</tr>`).join("");
  return `<table>${top}<tbody>${body}</tbody></table>`;
}
