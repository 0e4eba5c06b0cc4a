import { toHex } from "../../api/bytes";
import type { Campaign, CampaignRound, CampaignUnit } from "../../api/types";
import { LineChart, type Line } from "../../charts/line-chart";
import { boardRounds, type BoardRounds } from "../../store/campaign-figures";
import { loadRounds } from "../../store/campaigns";
import { boardName } from "../../store/fleet";
import { fromHex } from "../../api/bytes";
import { count, decimal, duration, kNone, percent } from "../../store/format";
import { usToMs } from "../../store/numbers";
import { Panel, ProblemBox } from "../parts/bits";
import { useLoad } from "../parts/use-load";
import { href } from "../router";
import { dark } from "../theme";

const kMostLines = 50;

/// Rounds with their averages; drift, contribution and accuracy of every board.
export function FederatedPanels({
  campaign: c,
  units,
}: {
  campaign: Campaign;
  units: readonly CampaignUnit[];
}) {
  const { value, problem, reload } = useLoad(
    toHex(c.id),
    "read the rounds",
    () => loadRounds(c.id),
    c.meta?.etag ?? 0n,
  );
  const rounds = value ?? [];
  const boards = boardRounds(units, rounds);
  const limit = (c.spec?.federated?.outlierQ8 || 768) / 256;
  const x = rounds.map((r) => r.round + 1);
  const lines = (pick: (b: BoardRounds) => ArrayLike<number>): Line[] =>
    boards.slice(0, kMostLines).map((b, i) => ({
      label: boardName(fromHex(b.boardHex)),
      values: pick(b),
      colour: i,
      dots: true,
    }));
  const note = boards.length > kMostLines ? `${kMostLines} of ${boards.length} boards` : "";
  const version = units.reduce((sum, u) => sum + Number(u.endTimeUs % 1_000_003n), rounds.length);
  return (
    <>
      {problem !== null && <ProblemBox problem={problem} retry={reload} />}
      <RoundTable rounds={rounds} />
      <div class="charts curves">
        <LineChart
          title="Drift of each board against the median"
          xLabel="round"
          unit=""
          x={x}
          lines={[
            ...lines((b) => b.drift),
            { label: `left out above ${decimal(limit, 1)}`, values: x.map(() => limit), colour: 7 },
          ]}
          version={version}
          format={(v) => decimal(v)}
          dark={dark.value}
          yMin={0}
          empty="No round has ended yet."
          note={note}
        />
        <LineChart
          title="Best held-out accuracy of each board"
          xLabel="round"
          unit="%"
          x={x}
          lines={lines((b) => b.heldout)}
          version={version}
          format={(v) => percent(v)}
          dark={dark.value}
          empty="No round has ended yet."
          note={note}
        />
      </div>
      <Contribution boards={boards} rounds={rounds} />
    </>
  );
}

function RoundTable({ rounds }: { rounds: readonly CampaignRound[] }) {
  return (
    <Panel title="Rounds" aside={rounds.length > 0 ? String(rounds.length) : undefined}>
      <div class="table-frame">
        <table class="numbers">
          <thead>
            <tr>
              <th scope="col">Round</th>
              <th scope="col">Boards</th>
              <th scope="col">Averaged</th>
              <th scope="col">Samples</th>
              <th scope="col">Median drift</th>
              <th scope="col">Began with</th>
              <th scope="col">Average</th>
              <th scope="col">Took</th>
            </tr>
          </thead>
          <tbody>
            {rounds.map((r) => (
              <tr key={r.round}>
                <th scope="row">{r.round + 1}</th>
                <td data-label="Boards">{r.boards}</td>
                <td data-label="Averaged">
                  {r.averaged}
                  {r.averaged < r.boards && r.average.length > 0 && (
                    <span class="sub tone-warn">{r.boards - r.averaged} left out</span>
                  )}
                </td>
                <td data-label="Samples">{count(r.samples)}</td>
                <td data-label="Median drift">{count(r.medianL1)}</td>
                <td data-label="Began with">
                  <Weights hash={r.start} none="the model’s own" />
                </td>
                <td data-label="Average">
                  <Weights hash={r.average} none="not made yet" />
                </td>
                <td data-label="Took">
                  {r.endTimeUs > 0n ? duration(usToMs(r.endTimeUs - r.startTimeUs)) : kNone}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Weights({ hash, none }: { hash: Uint8Array; none: string }) {
  if (hash.length === 0) return <span class="quiet">{none}</span>;
  const hex = toHex(hash);
  return <a href={href("weights", hex)}>{hex.slice(0, 12)}</a>;
}

function Contribution({
  boards,
  rounds,
}: {
  boards: readonly BoardRounds[];
  rounds: readonly CampaignRound[];
}) {
  if (boards.length === 0) return null;
  return (
    <Panel title="What each board contributes" aside="share of the samples in the average">
      <div
        class="table-frame scroll"
        tabIndex={0}
        role="region"
        aria-label="What each board contributes"
      >
        <table class="numbers">
          <thead>
            <tr>
              <th scope="col">Board</th>
              {rounds.map((r) => (
                <th scope="col" key={r.round}>
                  Round {r.round + 1}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {boards.map((b) => (
              <tr key={b.boardHex}>
                <th scope="row">
                  <a href={href("board", b.boardHex)}>{boardName(fromHex(b.boardHex))}</a>
                </th>
                {rounds.map((r, i) => (
                  <td key={r.round}>
                    <Share share={b.share[i] ?? NaN} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Share({ share }: { share: number }) {
  if (!Number.isFinite(share)) return <span class="quiet">{kNone}</span>;
  if (share === 0) return <span class="tone-warn">left out</span>;
  return (
    <>
      <progress class="progress amount" max={1} value={share} aria-label="Share" /> {percent(share)}
    </>
  );
}
