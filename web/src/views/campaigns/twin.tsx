import { toHex } from "../../api/bytes";
import { clients } from "../../api/clients";
import {
  TwinResult_What as What,
  type Campaign,
  type CampaignUnit,
  type TelemetryFrame,
} from "../../api/types";
import { join } from "../../charts/join";
import { LineChart } from "../../charts/line-chart";
import { boardName } from "../../store/fleet";
import { count, kNone, significant } from "../../store/format";
import { lossPerSample } from "../../store/numbers";
import { Facts, Panel, ProblemBox } from "../parts/bits";
import { useLoad } from "../parts/use-load";
import { href } from "../router";
import { dark } from "../theme";

const kFrames = 2000;

const kWhat: Record<What, string> = {
  [What.UNSPECIFIED]: "not compared yet",
  [What.EQUAL]: "nothing: the two are equal, bit for bit",
  [What.LOSS]: "the loss",
  [What.BITS]: "the bits of a layer’s accumulators",
  [What.SHIFT]: "a layer’s shift",
  [What.PRECISION]: "a layer’s precision",
  [What.STATE]: "the state hash at an epoch’s end",
  [What.LENGTH]: "the length: one has steps that the other lacks",
};

/// Where B first differs from A, why it may, and both losses around it.
export function TwinPanels({
  campaign: c,
  units,
}: {
  campaign: Campaign;
  units: readonly CampaignUnit[];
}) {
  const [a, b] = units;
  const twin = c.twin;
  const differs = twin !== undefined && twin.what !== What.EQUAL && twin.what !== What.UNSPECIFIED;
  const layered =
    twin?.what === What.BITS || twin?.what === What.SHIFT || twin?.what === What.PRECISION;
  return (
    <Panel
      title="Where the twins part"
      aside={
        a !== undefined && b !== undefined && a.runId.length > 0 && b.runId.length > 0 ? (
          <a
            href={href(
              "compare",
              "",
              new URLSearchParams({ runs: `${toHex(a.runId)},${toHex(b.runId)}` }),
            )}
          >
            Compare the runs
          </a>
        ) : undefined
      }
    >
      <Facts
        rows={[
          ["First difference", kWhat[twin?.what ?? What.UNSPECIFIED]],
          ["At step", differs ? <strong key="s">{count(twin.step)}</strong> : kNone],
          ["Layer", layered ? String(twin.layer) : kNone],
          ["A has, B has", differs ? `${count(twin.a)}, ${count(twin.b)}` : kNone],
          [
            "First epoch with another state",
            (twin?.firstStateEpoch ?? 0) > 0 ? String(twin?.firstStateEpoch) : kNone,
          ],
          ["Steps compared", count(twin?.stepsCompared ?? 0)],
          [
            "Settings that differ",
            (twin?.settings.length ?? 0) > 0 ? (
              twin?.settings.join(", ")
            ) : (
              <span key="n">none: a difference is a bit error or another firmware</span>
            ),
          ],
        ]}
      />
      {a !== undefined && b !== undefined && <Losses a={a} b={b} step={differs ? twin.step : -1} />}
    </Panel>
  );
}

async function frames(runId: Uint8Array): Promise<TelemetryFrame[]> {
  if (runId.length === 0) return [];
  const answer = await clients().run.getTelemetry(
    { runId, maxFrames: kFrames },
    { timeoutMs: 15_000 },
  );
  return answer.frames.filter((f) => f.gap === 0);
}

function Losses({ a, b, step }: { a: CampaignUnit; b: CampaignUnit; step: number }) {
  const key = `${toHex(a.runId)}/${toHex(b.runId)}`;
  const { value, problem, reload } = useLoad(
    key,
    "read the losses of the twins",
    () => Promise.all([frames(a.runId), frames(b.runId)]),
    `${a.stepsDone}/${b.stepsDone}/${a.state}/${b.state}`,
  );
  if (problem !== null) return <ProblemBox problem={problem} retry={reload} />;
  const [fa, fb] = value ?? [[], []];
  const column = (list: TelemetryFrame[]) => list.map((f) => lossPerSample(f.loss));
  const joined = join(
    fa.map((f) => f.step),
    [column(fa)],
    fb.map((f) => f.step),
    [column(fb)],
  );
  const name = (u: CampaignUnit, side: string): string =>
    u.boardUid.length > 0 ? `${side}: ${boardName(u.boardUid)}` : side;
  return (
    <LineChart
      title="Loss of both"
      xLabel="step"
      unit=""
      x={joined.x}
      lines={[
        { label: name(a, "A"), values: joined.columns[0] ?? [], colour: 0 },
        { label: name(b, "B"), values: joined.columns[1] ?? [], colour: 1 },
      ]}
      version={joined.x.length}
      format={significant}
      dark={dark.value}
      empty="No steps yet."
      note={step >= 0 ? `they part at step ${step}` : ""}
    />
  );
}
