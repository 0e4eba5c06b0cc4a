import { useState } from "preact/hooks";
import type { Dataset, DatasetReport } from "../../api/types";
import { lineColour } from "../../charts/palette";
import { useWidth } from "../../charts/use-width";
import { count, percent } from "../../store/format";
import { className } from "../../store/samples";
import { Panel } from "../parts/bits";
import { dark } from "../theme";

const kBar = 20;
const kName = 120;

interface SplitCounts {
  split: string;
  counts: readonly number[];
}

/// Samples of each class by split, as bars and as a table.
export function BalanceChart({
  dataset: d,
  report,
}: {
  dataset: Dataset;
  report: DatasetReport | undefined;
}) {
  const [asTable, setAsTable] = useState(false);
  const splits: SplitCounts[] = report?.splits.map((s) => ({
    split: s.split,
    counts: s.classCounts,
  })) ?? [{ split: "all", counts: d.classCounts }];
  const n = d.nClasses;
  if (n === 0 || splits.every((s) => s.counts.length === 0)) {
    return (
      <Panel title="Balance">
        <p class="pad quiet">
          It has no classes: each sample carries {d.outputs || "its own values as"} targets.
        </p>
      </Panel>
    );
  }
  const totals = Array.from({ length: n }, (_, c) =>
    splits.reduce((sum, s) => sum + (s.counts[c] ?? 0), 0),
  );
  const most = Math.max(...totals, 1);
  const least = Math.min(...totals);
  return (
    <Panel
      title="Balance"
      aside={
        <button
          type="button"
          class="small"
          aria-pressed={asTable}
          aria-label="Balance as a table"
          onClick={() => setAsTable(!asTable)}
        >
          Table
        </button>
      }
    >
      <div class="pad">
        {asTable ? (
          <BalanceTable dataset={d} splits={splits} totals={totals} />
        ) : (
          <Bars dataset={d} splits={splits} totals={totals} most={most} />
        )}
        <p class={least * 4 < most ? "tone-warn" : "quiet"}>
          The smallest class has {percent(least / most, 0)} of the samples of the largest.
        </p>
      </div>
    </Panel>
  );
}

function Bars(props: { dataset: Dataset; splits: SplitCounts[]; totals: number[]; most: number }) {
  const { dataset: d, splits, totals, most } = props;
  const [svg, width] = useWidth<SVGSVGElement>(640);
  const room = Math.max(60, width - kName - 60);
  return (
    <>
      <svg
        ref={svg}
        class="balance-bars"
        height={totals.length * kBar}
        role="img"
        aria-label={`Samples of each class: ${totals.map((t, i) => `${className(d, i)} ${t}`).join(", ")}`}
      >
        {totals.map((total, c) => {
          let x = kName;
          return (
            <g key={c}>
              <text x={kName - 8} y={c * kBar + 14} text-anchor="end">
                {shorten(className(d, c))}
              </text>
              {splits.map((s, i) => {
                const w = ((s.counts[c] ?? 0) / most) * room;
                const at = x;
                x += w;
                return (
                  <rect
                    key={s.split}
                    x={at}
                    y={c * kBar + 3}
                    width={Math.max(0, w - 1)}
                    height={kBar - 6}
                    fill={lineColour(i, dark.value)}
                  >
                    <title>{`${className(d, c)}, ${s.split}: ${s.counts[c] ?? 0}`}</title>
                  </rect>
                );
              })}
              <text x={x + 6} y={c * kBar + 14}>
                {count(total)}
              </text>
            </g>
          );
        })}
      </svg>
      <ul class="legend" aria-label="Splits">
        {splits.map((s, i) => (
          <li key={s.split} class="row">
            <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
              <rect width="12" height="12" fill={lineColour(i, dark.value)} />
            </svg>
            {s.split} {count(s.counts.reduce((a, b) => a + b, 0))}
          </li>
        ))}
      </ul>
    </>
  );
}

const shorten = (text: string): string => (text.length > 15 ? `${text.slice(0, 14)}…` : text);

function BalanceTable(props: { dataset: Dataset; splits: SplitCounts[]; totals: number[] }) {
  return (
    <div class="chart-table" tabIndex={0} role="region" aria-label="Balance, values">
      <table>
        <caption class="sr-only">Samples of each class by split</caption>
        <thead>
          <tr>
            <th scope="col">Class</th>
            {props.splits.map((s) => (
              <th scope="col" key={s.split}>
                {s.split}
              </th>
            ))}
            <th scope="col">All</th>
          </tr>
        </thead>
        <tbody>
          {props.totals.map((total, c) => (
            <tr key={c}>
              <th scope="row">{className(props.dataset, c)}</th>
              {props.splits.map((s) => (
                <td key={s.split}>{count(s.counts[c] ?? 0)}</td>
              ))}
              <td>{count(total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
