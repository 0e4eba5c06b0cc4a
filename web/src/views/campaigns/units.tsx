import { toHex } from "../../api/bytes";
import { CampaignKind, type Campaign, type CampaignUnit } from "../../api/types";
import { boardName, runs } from "../../store/fleet";
import { count, duration, kNone, percent } from "../../store/format";
import { fraction, usToMs } from "../../store/numbers";
import { BeforeAfter, Empty } from "../parts/bits";
import { StateMark } from "../parts/state-mark";
import { WindowBody } from "../parts/window";
import { href } from "../router";
import { roundName, unitLook } from "./words";

const kRowHeight = 45;

/// Every run of the campaign, or every board of a roll-out.
export function UnitTable({
  campaign: c,
  units,
}: {
  campaign: Campaign;
  units: readonly CampaignUnit[];
}) {
  if (units.length === 0) return <Empty title="Nothing has begun yet" />;
  const kind = c.spec?.kind ?? CampaignKind.UNSPECIFIED;
  const federated = kind === CampaignKind.FEDERATED;
  const byKey = new Map(units.map((u) => [String(u.index), u]));
  return (
    <div class="table-frame">
      <table class="runs">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Board</th>
            <th scope="col" class="capital">
              {roundName(kind)}
            </th>
            <th scope="col">Held-out</th>
            <th scope="col">Test</th>
            {federated && <th scope="col">Drift</th>}
            {federated && <th scope="col">Counts for</th>}
            <th scope="col">Run</th>
            <th scope="col">Weights</th>
            <th scope="col">Took</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <WindowBody
          keys={[...byKey.keys()]}
          columns={federated ? 11 : 9}
          rowHeight={kRowHeight}
          row={(key) => <UnitRow key={key} unit={byKey.get(key)!} federated={federated} />}
        />
      </table>
    </div>
  );
}

function UnitRow({ unit: u, federated }: { unit: CampaignUnit; federated: boolean }) {
  const run = runs.get(toHex(u.runId)).value;
  const took =
    u.endTimeUs > 0n && u.startTimeUs > 0n ? duration(usToMs(u.endTimeUs - u.startTimeUs)) : kNone;
  return (
    <tr>
      <td>
        <StateMark look={unitLook(u.state)} />
      </td>
      <th scope="row">
        {u.boardUid.length === 0 ? (
          <span class="quiet">not given out yet</span>
        ) : (
          <a href={href("board", toHex(u.boardUid))}>{boardName(u.boardUid)}</a>
        )}
      </th>
      <td data-label="Round">{u.personal ? "personal" : u.round + 1}</td>
      <td data-label="Held-out">
        <BeforeAfter before={u.heldoutStart} after={u.heldoutBest} />
      </td>
      <td data-label="Test">
        <BeforeAfter before={u.before ?? run?.before} after={u.after ?? run?.after} />
      </td>
      {federated && (
        <td data-label="Drift">
          {count(u.driftL1)}
          <span class="sub">{percent(u.changedPpm / 1e6)} changed</span>
        </td>
      )}
      {federated && (
        <td data-label="Counts for">
          {u.weight > 0n ? `${count(u.weight)} samples` : <span class="quiet">left out</span>}
        </td>
      )}
      <td data-label="Run">
        {u.runId.length > 0 ? (
          <a href={href("run", toHex(u.runId))}>{toHex(u.runId).slice(0, 12)}</a>
        ) : (
          kNone
        )}
        {u.tries > 1 && <span class="sub">try {u.tries}</span>}
      </td>
      <td data-label="Weights">
        {u.weights.length > 0 ? (
          <a href={href("weights", toHex(u.weights))}>{toHex(u.weights).slice(0, 8)}</a>
        ) : (
          kNone
        )}
      </td>
      <td data-label="Took" class="nowrap">
        {took}
      </td>
      <td class="wrap">{u.reason?.text}</td>
    </tr>
  );
}

export const heldoutOf = (u: CampaignUnit): number => fraction(u.heldoutBest);
