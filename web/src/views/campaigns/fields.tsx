import { toHex } from "../../api/bytes";
import { CampaignKind, SweepStrategy } from "../../api/types";
import { kTwinSettings, type CampaignWish } from "../../store/campaign-spec";
import { datasets, models, snapshots } from "../../store/fleet";
import { count } from "../../store/format";
import { snapshotName } from "../../store/snapshot-tree";
import { newest } from "../newest";
import { kStrategies } from "./words";

interface Props {
  wish: CampaignWish;
  set: (change: Partial<CampaignWish>) => void;
}

const kWhole = { inputMode: "numeric" as const, pattern: "-?[0-9]*", size: 6 };

function Text(
  props: Props & { name: keyof CampaignWish; label: string; hint?: string; whole?: boolean },
) {
  return (
    <label>
      {props.label}
      <input
        {...(props.whole === true ? kWhole : {})}
        value={String(props.wish[props.name])}
        placeholder={props.hint}
        maxLength={200}
        onInput={(e) => props.set({ [props.name]: e.currentTarget.value })}
      />
    </label>
  );
}

export function CommonFields({ wish, set }: Props) {
  const trained = wish.kind !== CampaignKind.ROLLOUT;
  return (
    <div class="fields">
      <Text wish={wish} set={set} name="name" label="Name" />
      {trained && (
        <label>
          Model
          <select value={wish.modelHex} onChange={(e) => set({ modelHex: e.currentTarget.value })}>
            {newest(models.all()).map((m) => (
              <option key={toHex(m.hash)} value={toHex(m.hash)}>
                {m.name}
              </option>
            ))}
          </select>
        </label>
      )}
      <label>
        Dataset
        <select
          value={wish.datasetHex}
          onChange={(e) => set({ datasetHex: e.currentTarget.value })}
        >
          {newest(datasets.all()).map((d) => (
            <option key={toHex(d.id)} value={toHex(d.id)}>
              {d.name} ({count(d.train)} samples)
            </option>
          ))}
        </select>
      </label>
      {trained && (
        <>
          <Text wish={wish} set={set} name="epochs" label="Epochs" hint="default" whole />
          <Text wish={wish} set={set} name="muWeight" label="mu weight" hint="by policy" />
          <Text wish={wish} set={set} name="batch" label="Batch" hint="by policy" whole />
          <Text wish={wish} set={set} name="k" label="k" hint="by policy" whole />
        </>
      )}
      <Text wish={wish} set={set} name="parallel" label="Boards at a time" hint="all" whole />
    </div>
  );
}

/// What only this kind of campaign asks for.
export function KindFields({ wish, set }: Props) {
  switch (wish.kind) {
    case CampaignKind.SWEEP:
      return (
        <div class="fields kind-fields">
          <label class="wide">
            Axes, one a line: NAME=VALUE,VALUE
            <textarea
              rows={3}
              value={wish.axes}
              onInput={(e) => set({ axes: e.currentTarget.value })}
            />
          </label>
          <label>
            Strategy
            <select
              value={wish.strategy}
              onChange={(e) => set({ strategy: Number(e.currentTarget.value) as SweepStrategy })}
            >
              {kStrategies.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          {wish.strategy !== SweepStrategy.GRID && (
            <Text wish={wish} set={set} name="trials" label="Trials" hint="all" whole />
          )}
        </div>
      );
    case CampaignKind.TWIN:
      return (
        <div class="fields kind-fields">
          <label class="wide">
            What B does otherwise ({kTwinSettings.join(", ")}); nothing: two equal runs
            <textarea
              rows={2}
              value={wish.settingsB}
              onInput={(e) => set({ settingsB: e.currentTarget.value })}
            />
          </label>
          <p class="quiet wide">Tick one board (both runs there) or two: A is the first ticked.</p>
        </div>
      );
    case CampaignKind.ROLLOUT:
      return <RolloutFields wish={wish} set={set} />;
    case CampaignKind.FEDERATED:
      return (
        <div class="fields kind-fields">
          <Text wish={wish} set={set} name="rounds" label="Rounds" whole />
          <Text
            wish={wish}
            set={set}
            name="minBoards"
            label="Least boards of a round"
            hint="half"
            whole
          />
        </div>
      );
    default:
      return null;
  }
}

function RolloutFields({ wish, set }: Props) {
  return (
    <div class="fields kind-fields">
      <label>
        Weights
        <select
          value={wish.snapshotHex}
          onChange={(e) => set({ snapshotHex: e.currentTarget.value })}
        >
          <option value="">choose</option>
          {newest(snapshots.all()).map((s) => (
            <option key={toHex(s.hash)} value={toHex(s.hash)}>
              {snapshotName(s)} ({toHex(s.hash).slice(0, 8)})
            </option>
          ))}
        </select>
      </label>
      <Text wish={wish} set={set} name="canaryPercent" label="Canary, % of boards" />
      <Text wish={wish} set={set} name="phases" label="Then, % of boards in all" />
      <Text wish={wish} set={set} name="maxDropPoints" label="Abort above, points lost" />
      <label class="check">
        <input
          type="checkbox"
          checked={wish.commit}
          onChange={(e) => set({ commit: e.currentTarget.checked })}
        />{" "}
        commit to non-volatile memory
      </label>
    </div>
  );
}
