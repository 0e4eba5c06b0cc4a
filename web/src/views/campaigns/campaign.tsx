import { fromHex, toHex } from "../../api/bytes";
import { CampaignKind, CampaignState, type Campaign, type CampaignUnit } from "../../api/types";
import { lateClients } from "../../api/late-clients";
import { pending } from "../../store/actions";
import {
  campaignName,
  changeCampaign,
  deleteCampaign,
  loadEvents,
  loadUnits,
} from "../../store/campaigns";
import { serverNowMs } from "../../store/clock";
import { campaigns, datasetName, modelName } from "../../store/fleet";
import { clock, count, duration, kNone } from "../../store/format";
import { fleetKnown, linkLive } from "../../store/link";
import { usToMs } from "../../store/numbers";
import { Empty, Loading, Panel, ProblemBox, Progress, Tile } from "../parts/bits";
import { ConfirmButton } from "../parts/confirm";
import { StateMark } from "../parts/state-mark";
import { useLoad } from "../parts/use-load";
import { go, href } from "../router";
import { FederatedPanels } from "./federated";
import { liveCampaignLook } from "./list";
import { NewCampaign } from "./new";
import { RolloutPanel } from "./rollout";
import { SweepPanels } from "./sweep";
import { TwinPanels } from "./twin";
import { UnitTable } from "./units";
import { campaignLook, campaignOver, kindName, roundName } from "./words";

export function CampaignView({ id }: { id: string }) {
  const c = campaigns.get(id).value;
  // The stream brings the newest thousand; older ones are asked for.
  const asked = useLoad(
    id !== "new" && c === undefined && fleetKnown.value ? id : "",
    `read campaign ${id.slice(0, 12)}`,
    async () =>
      (await lateClients().campaign.getCampaign({ id: fromHex(id) }, { timeoutMs: 15_000 }))
        .campaign,
  );
  if (id === "new") return <NewCampaign />;
  const found = c ?? asked.value;
  if (found !== undefined && found !== null) return <Known campaign={found} />;
  if (asked.problem !== null) {
    return (
      <>
        <h1 class="sr-only">Campaign</h1>
        <ProblemBox problem={asked.problem} retry={asked.reload} />
        <Empty title={`No campaign ${id.slice(0, 16)}`} command="odtctl campaign list">
          <p>
            It was never made here, or it was deleted. <a href={href("campaigns")}>All campaigns</a>
          </p>
        </Empty>
      </>
    );
  }
  return <Loading page="Campaign" what="Waiting for the daemon …" />;
}

function Known({ campaign: c }: { campaign: Campaign }) {
  const hex = toHex(c.id);
  const units = useLoad(hex, "read the campaign’s runs", () => loadUnits(c.id), c.meta?.etag ?? 0n);
  const list = units.value ?? [];
  return (
    <>
      <Head campaign={c} />
      {c.reason?.text ? <ReasonBox campaign={c} /> : null}
      <Tiles campaign={c} />
      {units.problem !== null && <ProblemBox problem={units.problem} retry={units.reload} />}
      {units.value !== null && <ByKind campaign={c} units={list} />}
      <Panel title="Runs" aside={list.length > 0 ? count(list.length) : undefined}>
        {units.value === null ? (
          units.problem === null && (
            <p class="pad quiet" aria-busy="true">
              Loading …
            </p>
          )
        ) : (
          <UnitTable campaign={c} units={list} />
        )}
      </Panel>
      <Events campaign={c} />
    </>
  );
}

function ByKind({ campaign: c, units }: { campaign: Campaign; units: readonly CampaignUnit[] }) {
  switch (c.spec?.kind) {
    case CampaignKind.SWEEP:
      return <SweepPanels campaign={c} units={units} />;
    case CampaignKind.TWIN:
      return <TwinPanels campaign={c} units={units} />;
    case CampaignKind.ROLLOUT:
      return <RolloutPanel campaign={c} units={units} />;
    case CampaignKind.FEDERATED:
      return <FederatedPanels campaign={c} units={units} />;
    default:
      return null;
  }
}

function ReasonBox({ campaign: c }: { campaign: Campaign }) {
  const mild = c.state !== CampaignState.FAILED;
  return (
    <div class={mild ? "problem mild" : "problem"}>
      <p class="problem-title">{c.reason?.text}</p>
      {c.reason?.remedy ? <p class="problem-remedy">{c.reason.remedy}</p> : null}
    </div>
  );
}

function Head({ campaign: c }: { campaign: Campaign }) {
  const hex = toHex(c.id);
  const name = campaignName(c);
  const over = campaignOver(c.state);
  const off = (verb: string): boolean =>
    !linkLive.value || pending.value.has(`${verb}-campaign/${hex}`);
  const remove = async (): Promise<void> => {
    if (await deleteCampaign(c)) go(href("campaigns"));
  };
  const rolling = c.spec?.kind === CampaignKind.ROLLOUT;
  return (
    <header class="page-head">
      <nav aria-label="Where this is" class="crumbs">
        <a href={href("campaigns")}>Campaigns</a> <span aria-hidden="true">/</span>
      </nav>
      <h1>{name}</h1>
      <StateMark look={liveCampaignLook(c)} />
      <span class="quiet head-note">{c.spec ? kindName(c.spec.kind) : ""}</span>
      <div class="page-actions">
        {(c.state === CampaignState.RUNNING || c.state === CampaignState.QUEUED) && (
          <button
            type="button"
            disabled={off("pause")}
            onClick={() => void changeCampaign(c, "pause")}
          >
            Pause
          </button>
        )}
        {c.state === CampaignState.PAUSED && (
          <button
            type="button"
            class="primary"
            disabled={off("resume")}
            onClick={() => void changeCampaign(c, "resume")}
          >
            Resume
          </button>
        )}
        {!over && (
          <ConfirmButton
            label="Cancel"
            title={`Cancel campaign ${name}?`}
            confirm="Cancel the campaign"
            disabled={off("cancel")}
            onConfirm={() => void changeCampaign(c, "cancel")}
          >
            <p>
              {rolling
                ? "Boards keep the weights that they have by now."
                : "Its runs under way end where they are. What they have learned so far is not kept."}{" "}
              What failed or was cancelled can be retried later.
            </p>
          </ConfirmButton>
        )}
        {over && c.unitsFailed > 0 && c.spec?.kind !== CampaignKind.FEDERATED && (
          <button
            type="button"
            disabled={off("retry")}
            onClick={() => void changeCampaign(c, "retry")}
          >
            Retry what failed
          </button>
        )}
        {over && (
          <ConfirmButton
            label="Delete"
            title={`Forget campaign ${name}?`}
            confirm="Forget it"
            disabled={off("delete")}
            onConfirm={() => void remove()}
          >
            <p>Its runs and weights stay. The campaign itself cannot be brought back.</p>
          </ConfirmButton>
        )}
      </div>
    </header>
  );
}

function Tiles({ campaign: c }: { campaign: Campaign }) {
  const end = c.endTimeUs > 0n ? usToMs(c.endTimeUs) : serverNowMs.value;
  const took = c.startTimeUs > 0n ? duration(end - usToMs(c.startTimeUs)) : kNone;
  return (
    <div class="tiles run-tiles">
      <Tile
        label="Progress"
        value={`${count(c.unitsDone)} of ${count(c.unitsTotal)}`}
        note={<RoundNote campaign={c} />}
      />
      <Tile
        label="Boards"
        value={c.boards.length}
        note={c.spec?.query ? `cohort ${c.spec.query}` : `${c.unitsRunning} at work`}
      />
      <Tile
        label="Model, data"
        value={
          c.spec && c.spec.modelHash.length > 0 ? (
            <a href={href("models", toHex(c.spec.modelHash))}>{modelName(c.spec.modelHash)}</a>
          ) : (
            kNone
          )
        }
        note={
          c.spec && c.spec.datasetId.length > 0
            ? datasetName(c.spec.datasetId)
            : "each board its own"
        }
      />
      <Tile label="Took" value={took} note={`${duration(usToMs(c.boardUs))} on boards`} />
      <Tile
        label="Result"
        value={
          c.result.length > 0 ? (
            <a href={href("weights", toHex(c.result))}>{toHex(c.result).slice(0, 12)}</a>
          ) : (
            kNone
          )
        }
        note={c.result.length > 0 ? "weights" : campaignOver(c.state) ? "none" : "none yet"}
      />
    </div>
  );
}

function RoundNote({ campaign: c }: { campaign: Campaign }) {
  const round =
    c.roundsTotal > 1
      ? `${roundName(c.spec?.kind ?? 0)} ${Math.min(c.round + 1, c.roundsTotal)} of ${c.roundsTotal}`
      : "";
  return (
    <>
      <Progress done={c.unitsDone} total={c.unitsTotal} label="Runs done" />
      {[round, c.unitsFailed > 0 ? `${count(c.unitsFailed)} failed` : ""]
        .filter(Boolean)
        .join(", ")}
    </>
  );
}

function Events({ campaign: c }: { campaign: Campaign }) {
  const { value, problem, reload } = useLoad(
    toHex(c.id),
    "read the campaign’s history",
    () => loadEvents(c.id),
    c.state,
  );
  return (
    <Panel title="What happened">
      {problem !== null && <ProblemBox problem={problem} retry={reload} />}
      <ol class="events">
        {[...(value ?? [])].reverse().map((e) => (
          <li key={e.seq}>
            <span class="quiet">{clock(usToMs(e.timeUs), serverNowMs.value)}</span>
            <StateMark look={campaignLook(e.to)} />
            <span>
              {e.cause} {e.actor !== "" && <span class="quiet">by {e.actor}</span>}
            </span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}
