import { toHex } from "../../api/bytes";
import {
  CampaignState,
  CampaignUnitState,
  type Campaign,
  type CampaignUnit,
} from "../../api/types";
import { phaseBoards } from "../../store/campaign-figures";
import { percent } from "../../store/format";
import { Panel } from "../parts/bits";
import { StateMark } from "../parts/state-mark";
import { href } from "../router";
import type { Look } from "../words";
import { campaignOver } from "./words";

/// The phases of a roll-out, canary first: which is under way, and how its boards did.
export function RolloutPanel({
  campaign: c,
  units,
}: {
  campaign: Campaign;
  units: readonly CampaignUnit[];
}) {
  const spec = c.spec;
  if (spec === undefined) return null;
  const totals = phaseBoards(spec, c.boards.length);
  const snapshot = toHex(spec.rollout?.snapshot ?? new Uint8Array());
  return (
    <Panel
      title="Phases"
      aside={
        <>
          <a href={href("weights", snapshot)}>weights {snapshot.slice(0, 12)}</a>
          <span>
            aborts where a board loses more than{" "}
            {percent((spec.rollout?.maxDropPpm || 20_000) / 1e6)}
          </span>
        </>
      }
    >
      <ol class="phases">
        {totals.map((total, i) => {
          const mine = units.filter((u) => u.round === i);
          const planned = total - (totals[i - 1] ?? 0);
          return (
            <li key={i} aria-current={i === c.round && !campaignOver(c.state) ? "step" : undefined}>
              <p class="phase-name">{i === 0 ? "Canary" : `Phase ${i + 1}`}</p>
              <StateMark look={phaseLook(c, i, mine, planned)} />
              <p class="quiet">
                {mine.filter((u) => u.state === CampaignUnitState.SUCCEEDED).length} of {planned}{" "}
                board
                {planned === 1 ? "" : "s"}, {total} in all
              </p>
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}

function phaseLook(
  c: Campaign,
  phase: number,
  mine: readonly CampaignUnit[],
  planned: number,
): Look {
  const in_state = (s: CampaignUnitState): number => mine.filter((u) => u.state === s).length;
  if (in_state(CampaignUnitState.ROLLED_BACK) > 0)
    return { word: "rolled back", tone: "warn", shape: "half" };
  if (in_state(CampaignUnitState.FAILED) > 0)
    return { word: "failed", tone: "bad", shape: "cross" };
  if (in_state(CampaignUnitState.SUCCEEDED) === planned)
    return { word: "done", tone: "ok", shape: "check" };
  if (campaignOver(c.state)) return { word: "not begun", tone: "quiet", shape: "slash" };
  if (phase === c.round && c.state === CampaignState.RUNNING)
    return { word: "under way", tone: "live", shape: "play" };
  return { word: "waiting", tone: "quiet", shape: "dashed" };
}
