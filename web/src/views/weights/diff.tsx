import { fromHex, toHex } from "../../api/bytes";
import { clients } from "../../api/clients";
import type { DiffSnapshotsResponse, LayerDiff, WeightDiff } from "../../api/types";
import { CellMap } from "../../charts/cell-map";
import { snapshots } from "../../store/fleet";
import { count, decimal, kNone, percent } from "../../store/format";
import { snapshotName } from "../../store/snapshot-tree";
import { newest } from "../newest";
import { Empty, Loading, Panel, ProblemBox, Tile } from "../parts/bits";
import { useLoad } from "../parts/use-load";
import { href, route, setQuery } from "../router";
import { dark } from "../theme";

const kDiffMs = 60_000;

export const changedShare = (d: WeightDiff | undefined): number =>
  d === undefined || d.values === 0n ? NaN : Number(d.changed) / Number(d.values);
export const meanDifference = (d: WeightDiff | undefined): number =>
  d === undefined || d.values === 0n ? NaN : Number(d.l1) / Number(d.values);

/// What differs between two snapshots of one model, layer by layer and channel by channel.
export function DiffView() {
  const query = route.value.query;
  const [a, b] = [query.get("a") ?? "", query.get("b") ?? ""];
  const ready = a !== "" && b !== "";
  const { value, problem, reload } = useLoad(ready ? `${a}/${b}` : "", "compare the weights", () =>
    clients().weights.diffSnapshots(
      { a: fromHex(a), b: fromHex(b), channels: true },
      { timeoutMs: kDiffMs },
    ),
  );
  return (
    <>
      <header class="page-head">
        <nav aria-label="Where this is" class="crumbs">
          <a href={href("weights")}>Weights</a> <span aria-hidden="true">/</span>
        </nav>
        <h1>Compare</h1>
      </header>
      <div class="bar">
        <Side name="a" hex={a} other={b} />
        <button
          type="button"
          aria-label="Swap the two"
          onClick={() => {
            setQuery("a", b);
            setQuery("b", a);
          }}
        >
          ⇄
        </button>
        <Side name="b" hex={b} other={a} />
      </div>
      {problem !== null && <ProblemBox problem={problem} retry={reload} />}
      {!ready && (
        <Empty title="Choose two snapshots of one model" command="odtctl weights diff A B" />
      )}
      {ready && value === null && problem === null && <Loading what="Comparing …" />}
      {value !== null && <Differences diff={value} />}
    </>
  );
}

function Side({ name, hex, other }: { name: "a" | "b"; hex: string; other: string }) {
  const otherModel = toHex(snapshots.get(other).value?.modelHash ?? new Uint8Array());
  const list = newest(snapshots.all());
  const fits = list.filter((s) => otherModel === "" || toHex(s.modelHash) === otherModel);
  const known = fits.some((s) => toHex(s.hash) === hex);
  return (
    <label class="side">
      <span class="quiet">{name.toUpperCase()}</span>{" "}
      <select value={hex} onChange={(e) => setQuery(name, e.currentTarget.value)}>
        {!known && <option value={hex}>{hex === "" ? "choose" : hex.slice(0, 12)}</option>}
        {fits.map((s) => (
          <option key={toHex(s.hash)} value={toHex(s.hash)}>
            {snapshotName(s)} ({toHex(s.hash).slice(0, 8)}, step {s.step})
          </option>
        ))}
      </select>
    </label>
  );
}

function Differences({ diff }: { diff: DiffSnapshotsResponse }) {
  const { all } = diff;
  const same = all?.changed === 0n;
  return (
    <>
      <div class="tiles run-tiles">
        <Tile
          label="Changed"
          value={percent(changedShare(all))}
          note={`${count(all?.changed ?? 0n)} of ${count(all?.values ?? 0n)} values`}
        />
        <Tile
          label="Mean difference"
          value={decimal(meanDifference(all))}
          note="steps of the finer precision"
        />
        <Tile
          label="Largest difference"
          value={count(all?.linf ?? 0n)}
          note="steps of the finer precision"
        />
        <Tile
          label="Hamming distance"
          value={(all?.hammingBits ?? 0n) > 0n ? count(all?.hammingBits ?? 0n) : kNone}
          note="bits, where both are stored alike"
        />
      </div>
      {same && <p class="tone-ok">The two are the same, bit for bit.</p>}
      <LayerTable layers={diff.layers} />
      {!same && (
        <div class="charts curves">
          {diff.layers
            .filter((l) => l.channels.length > 0)
            .map((layer) => (
              <ChannelMap key={layer.layer} layer={layer} />
            ))}
        </div>
      )}
    </>
  );
}

function LayerTable({ layers }: { layers: readonly LayerDiff[] }) {
  const most = Math.max(...layers.map((l) => meanDifference(l.weights)).filter(Number.isFinite), 0);
  return (
    <Panel title="By layer">
      <div class="table-frame">
        <table class="numbers">
          <thead>
            <tr>
              <th scope="col">Layer</th>
              <th scope="col">Part</th>
              <th scope="col">Precision A | B</th>
              <th scope="col">Values</th>
              <th scope="col">Changed</th>
              <th scope="col">Mean |d|</th>
              <th scope="col">Max |d|</th>
              <th scope="col">Bits</th>
            </tr>
          </thead>
          <tbody>
            {layers.flatMap((l) =>
              (
                [
                  ["weights", l.weights],
                  ["offsets", l.offsets],
                ] as const
              ).map(([part, d]) => (
                <tr key={`${l.layer}/${part}`}>
                  <th scope="row">
                    {l.name}
                    {part === "weights" && <span class="sub">{l.shape.join(" × ")}</span>}
                  </th>
                  <td data-label="Part">{part}</td>
                  <td data-label="Precision">
                    {part === "weights" ? `${l.kA} | ${l.kB}` : kNone}
                    {part === "weights" && !l.sameForm && <span class="sub">stored otherwise</span>}
                  </td>
                  <td data-label="Values">{count(d?.values ?? 0n)}</td>
                  <td data-label="Changed">{percent(changedShare(d))}</td>
                  <td data-label="Mean |d|">
                    {decimal(meanDifference(d))}
                    {part === "weights" && most > 0 && (
                      <progress
                        class="progress amount"
                        max={most}
                        value={meanDifference(d)}
                        aria-label={`Mean difference of ${l.name} against the largest`}
                      />
                    )}
                  </td>
                  <td data-label="Max |d|">{count(d?.linf ?? 0n)}</td>
                  <td data-label="Bits">
                    {(d?.hammingBits ?? 0n) > 0n ? count(d?.hammingBits ?? 0n) : kNone}
                  </td>
                </tr>
              )),
            )}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function ChannelMap({ layer }: { layer: LayerDiff }) {
  return (
    <CellMap
      title={`${layer.name}: mean difference by output channel`}
      values={layer.channels.map((c) => meanDifference(c))}
      label={(i) => {
        const c = layer.channels[i];
        return `channel ${i}, ${percent(changedShare(c))} changed`;
      }}
      valueName="mean |d|"
      format={(v) => decimal(v, 1)}
      dark={dark.value}
    />
  );
}
