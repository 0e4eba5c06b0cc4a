import type { ComponentChildren } from "preact";
import { ChartFrame } from "./frame";
import { lineColour } from "./palette";

export interface Bar {
  label: string;
  value: number; // >= 0; NaN: none
  colour: number;
  note?: string;
}

interface BarsProps {
  title: string;
  bars: readonly Bar[];
  format: (value: number) => string;
  dark: boolean;
  note?: string;
  empty: string;
  tools?: ComponentChildren;
}

/// Lengths to compare, longest at full width. Every bar carries its figure.
export function Bars({ title, bars, format, dark, note, empty, tools }: BarsProps) {
  const known = bars.filter((b) => Number.isFinite(b.value));
  const most = Math.max(...known.map((b) => b.value), 0);
  return (
    <ChartFrame
      title={title}
      empty={empty}
      tools={tools}
      {...(note !== undefined && { note })}
      table={{
        head: ["", title, "Note"],
        rows: known.map((b) => [b.label, format(b.value), b.note ?? ""]),
      }}
    >
      <ul class="bars" aria-label={title}>
        {known.map((b) => (
          <li key={b.label}>
            <span class="bar-label" title={b.label}>
              {b.label}
            </span>
            <span class="bar-track" aria-hidden="true">
              <span
                class="bar-fill"
                style={{
                  width: `${most > 0 ? (b.value / most) * 100 : 0}%`,
                  background: lineColour(b.colour, dark),
                }}
              />
            </span>
            <span class="bar-value">
              {format(b.value)}
              {b.note !== undefined && <span class="quiet"> {b.note}</span>}
            </span>
          </li>
        ))}
      </ul>
    </ChartFrame>
  );
}
