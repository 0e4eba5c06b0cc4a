import { toHex } from "../../api/bytes";
import type { Campaign } from "../../api/types";
import { campaignName } from "../../store/campaigns";
import { serverNowMs } from "../../store/clock";
import { campaigns, datasetName, modelName } from "../../store/fleet";
import { clock, count, duration, kNone } from "../../store/format";
import { fleetKnown, linkLive } from "../../store/link";
import { usToMs } from "../../store/numbers";
import { parseFilter, toFields } from "../filter";
import { newest } from "../newest";
import { Empty, Loading, Progress } from "../parts/bits";
import { NoMatch, SearchBox, ShownNote } from "../parts/search-box";
import { StateMark } from "../parts/state-mark";
import { WindowBody } from "../parts/window";
import { href, route } from "../router";
import type { Look } from "../words";
import "./campaigns.css";
import { campaignLook, campaignOver, kindName, roundName } from "./words";

const kRowHeight = 49;

/// What a campaign's state looks like; without a live connection, what it was.
export function liveCampaignLook(c: Campaign): Look {
  const look = campaignLook(c.state);
  if (linkLive.value || campaignOver(c.state)) return look;
  return { ...look, word: `was ${look.word}`, tone: "quiet" };
}

export function CampaignsView() {
  const all = newest(campaigns.all());
  const query = route.value.query;
  if (all.length === 0) return <NoCampaigns />;
  const test = parseFilter(query.get("q") ?? "");
  const shown = all.filter((c) =>
    test(
      toFields({
        name: campaignName(c),
        kind: c.spec ? kindName(c.spec.kind) : "",
        state: campaignLook(c.state).word,
        model: modelName(c.spec?.modelHash ?? new Uint8Array()),
      }),
    ),
  );
  const byHex = new Map(shown.map((c) => [toHex(c.id), c]));
  return (
    <>
      <h1 class="sr-only">Campaigns</h1>
      <div class="bar">
        <SearchBox label="Search campaigns" placeholder="Search, kind=sweep, state=running" />
        <a class="button" href={href("campaign", "new")}>
          New campaign
        </a>
        <ShownNote shown={shown.length} total={all.length} what="campaign" />
      </div>
      {shown.length === 0 ? (
        <NoMatch view="campaigns" what="campaign" total={all.length} />
      ) : (
        <div class="table-frame">
          <table class="runs">
            <thead>
              <tr>
                <th scope="col">State</th>
                <th scope="col">Campaign</th>
                <th scope="col">Kind</th>
                <th scope="col">Boards</th>
                <th scope="col">Progress</th>
                <th scope="col">Model, data</th>
                <th scope="col">Board time</th>
                <th scope="col">Created</th>
              </tr>
            </thead>
            <WindowBody
              keys={[...byHex.keys()]}
              columns={8}
              rowHeight={kRowHeight}
              row={(hex) => <Row key={hex} hex={hex} />}
            />
          </table>
        </div>
      )}
    </>
  );
}

function Row({ hex }: { hex: string }) {
  const c = campaigns.get(hex).value;
  if (c === undefined) return null;
  return (
    <tr>
      <td>
        <StateMark look={liveCampaignLook(c)} />
      </td>
      <th scope="row">
        <a href={href("campaign", hex)}>{campaignName(c)}</a>
        {c.reason?.text ? <span class="sub wrap">{c.reason.text}</span> : null}
      </th>
      <td data-label="Kind">{c.spec ? kindName(c.spec.kind) : kNone}</td>
      <td data-label="Boards">{c.boards.length}</td>
      <td data-label="Progress">
        <CampaignProgress campaign={c} />
      </td>
      <td data-label="Model, data">
        {c.spec && c.spec.modelHash.length > 0 ? modelName(c.spec.modelHash) : kNone}
        <span class="sub">
          {c.spec && c.spec.datasetId.length > 0 ? datasetName(c.spec.datasetId) : "each its own"}
        </span>
      </td>
      <td data-label="Board time">{c.boardUs > 0n ? duration(usToMs(c.boardUs)) : kNone}</td>
      <td class="nowrap" data-label="Created">
        {clock(usToMs(c.meta?.createTimeUs ?? 0n), serverNowMs.value)}
      </td>
    </tr>
  );
}

export function CampaignProgress({ campaign: c }: { campaign: Campaign }) {
  const kind = c.spec?.kind ?? 0;
  return (
    <span class="run-progress">
      <Progress done={c.unitsDone} total={c.unitsTotal} label="Units done" />
      <span class="quiet nowrap">
        {count(c.unitsDone)}/{count(c.unitsTotal)}
        {c.roundsTotal > 1 &&
          ` · ${roundName(kind)} ${Math.min(c.round + 1, c.roundsTotal)}/${c.roundsTotal}`}
        {c.unitsFailed > 0 && <span class="tone-bad"> · {count(c.unitsFailed)} failed</span>}
      </span>
    </span>
  );
}

function NoCampaigns() {
  if (!fleetKnown.value) {
    return <Loading page="Campaigns" />;
  }
  return (
    <>
      <h1 class="sr-only">Campaigns</h1>
      <Empty
        title="No campaigns yet"
        command="odtctl campaign create --cohort site=lab --model MODEL --data DATASET --sweep mu_weight=0,1,2"
      >
        <p>
          The same run on many boards, a sweep of settings, twins, a roll-out in phases, or
          federated rounds.
        </p>
        <p>
          <a class="button" href={href("campaign", "new")}>
            New campaign
          </a>
        </p>
      </Empty>
    </>
  );
}
