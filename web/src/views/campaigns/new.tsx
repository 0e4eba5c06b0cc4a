import { useEffect, useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Problem } from "../../api/errors";
import { CampaignKind, type BoardCheck, type CreateCampaignResponse } from "../../api/types";
import { kNewCampaign, type CampaignWish } from "../../store/campaign-spec";
import { checkCampaign, startCampaign } from "../../store/campaigns";
import { boardName, datasets, models } from "../../store/fleet";
import { count, duration, kNone } from "../../store/format";
import { linkLive } from "../../store/link";
import { usToMs } from "../../store/numbers";
import { fitting, newest } from "../newest";
import { Empty, Panel, ProblemBox } from "../parts/bits";
import { BoardChoice } from "../parts/board-choice";
import { StateMark } from "../parts/state-mark";
import { go, href, route } from "../router";
import "./campaigns.css";
import { CommonFields, KindFields } from "./fields";
import { kKinds, roundName } from "./words";

const kCheckDelayMs = 400;
type Answer = CreateCampaignResponse | Problem | null;
const isProblem = (a: CreateCampaignResponse | Problem): a is Problem => "remedy" in a;

function firstWish(): CampaignWish {
  const query = route.peek().query;
  const modelHex = query.get("model") ?? toHex(newest(models.all())[0]?.hash ?? new Uint8Array());
  const dataset = fitting(models.peek(modelHex), datasets.all())[0];
  return {
    ...kNewCampaign,
    uids: (query.get("boards") ?? "").split(",").filter(Boolean),
    query: query.get("cohort") ?? "",
    modelHex,
    datasetHex: query.get("data") ?? toHex(dataset?.id ?? new Uint8Array()),
    snapshotHex: query.get("snapshot") ?? "",
    kind: query.has("snapshot") ? CampaignKind.ROLLOUT : CampaignKind.SAME,
  };
}

/// A campaign is asked for; the daemon says of every board what would happen before anything begins.
export function NewCampaign() {
  const [wish, setWish] = useState<CampaignWish>(firstWish);
  const [answer, setAnswer] = useState<Answer>(null);
  const [starting, setStarting] = useState(false);
  const set = (change: Partial<CampaignWish>): void => setWish((w) => ({ ...w, ...change }));
  const live = linkLive.value;
  const chosen = wish.uids.length > 0 || wish.query.trim() !== "";

  useEffect(() => {
    setAnswer(null);
    if (!chosen || !live) return;
    let current = true;
    const timer = setTimeout(() => {
      void checkCampaign(wish).then((a) => current && setAnswer(a));
    }, kCheckDelayMs);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [wish, chosen, live]);

  const start = async (): Promise<void> => {
    setStarting(true);
    const made = await startCampaign(wish);
    setStarting(false);
    if ("remedy" in made) setAnswer(made);
    else go(href("campaign", toHex(made.id)));
  };
  const refused =
    answer === null || isProblem(answer) || answer.checks.some((c) => c.refusal?.code);
  return (
    <>
      <header class="page-head">
        <nav aria-label="Where this is" class="crumbs">
          <a href={href("campaigns")}>Campaigns</a> <span aria-hidden="true">/</span>
        </nav>
        <h1>New campaign</h1>
      </header>
      {models.keys.value.length === 0 && (
        <Empty title="There is no model yet" command="odtctl model add model.onnx --trainable 2" />
      )}
      <form
        class="two-columns"
        onSubmit={(e) => {
          e.preventDefault();
          void start();
        }}
      >
        <div>
          <Panel title="What">
            <div class="pad">
              <Kinds wish={wish} set={set} />
            </div>
          </Panel>
          <Panel title="Boards">
            <div class="pad">
              <BoardChoice uids={wish.uids} setUids={(uids) => set({ uids })} />
              <div class="inline-form">
                <label>
                  And all boards with
                  <input
                    value={wish.query}
                    placeholder="site=lab,!broken"
                    onInput={(e) => set({ query: e.currentTarget.value })}
                  />
                </label>
              </div>
            </div>
          </Panel>
          <Panel title="Settings">
            <div class="pad">
              <CommonFields wish={wish} set={set} />
              <KindFields wish={wish} set={set} />
            </div>
          </Panel>
        </div>
        <aside>
          <Panel title="What would happen">
            <div class="pad" aria-live="polite">
              {!chosen ? (
                <p class="quiet">Choose boards; each is checked before anything begins.</p>
              ) : answer === null ? (
                <p class="quiet">Asking the daemon …</p>
              ) : isProblem(answer) ? (
                <ProblemBox problem={answer} />
              ) : (
                <Plan answer={answer} kind={wish.kind} />
              )}
            </div>
            <div class="row pad">
              <button type="submit" class="primary" disabled={refused || starting || !live}>
                {starting ? "Starting …" : "Start campaign"}
              </button>
            </div>
          </Panel>
        </aside>
      </form>
    </>
  );
}

function Kinds({ wish, set }: { wish: CampaignWish; set: (c: Partial<CampaignWish>) => void }) {
  return (
    <fieldset class="kinds">
      <legend class="sr-only">Kind of campaign</legend>
      {kKinds.map(([kind, name, text]) => (
        <label key={kind}>
          <input
            type="radio"
            name="kind"
            checked={wish.kind === kind}
            onChange={() => set({ kind })}
          />{" "}
          <strong>{name}</strong>
          <span class="sub">{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

/// The first round in words, and what each board says to it.
function Plan({ answer, kind }: { answer: CreateCampaignResponse; kind: CampaignKind }) {
  const longest = answer.checks.reduce(
    (most, c) => (c.estimateUs > most ? c.estimateUs : most),
    0n,
  );
  const rounds = answer.campaign?.roundsTotal ?? 1;
  const refused = answer.checks.filter((c) => c.refusal?.code).length;
  return (
    <>
      <p class={refused > 0 ? "tone-bad" : "tone-ok"}>
        {refused > 0
          ? `${refused} of ${answer.checks.length} boards cannot do this.`
          : `${answer.checks.length} board${answer.checks.length === 1 ? "" : "s"} can do this.`}
      </p>
      <p class="quiet">
        {answer.units.length > 0
          ? `${count(answer.units.length)} runs in the first ${roundName(kind)}`
          : ""}
        {rounds > 1 && `, ${rounds} ${roundName(kind)}s`}
        {longest > 0n ? `, about ${duration(usToMs(longest))}` : ""}
        {longest === 0n &&
          answer.units.length > 0 &&
          "; no step time is measured yet, so how long is not known"}
      </p>
      <table class="outcomes">
        <caption class="sr-only">What each board says</caption>
        <thead>
          <tr>
            <th scope="col">Board</th>
            <th scope="col">Answer</th>
          </tr>
        </thead>
        <tbody>
          {answer.checks.map((c) => (
            <CheckRow key={toHex(c.boardUid)} check={c} />
          ))}
        </tbody>
      </table>
    </>
  );
}

function CheckRow({ check: c }: { check: BoardCheck }) {
  const refused = (c.refusal?.code ?? "") !== "";
  const parts = [
    c.units > 0 ? `${c.units} run${c.units === 1 ? "" : "s"}` : "",
    c.steps > 0 ? `${count(c.steps)} steps each` : "",
    c.estimateUs > 0n ? duration(usToMs(c.estimateUs)) : "",
    c.online ? "" : "offline: waits for it",
  ].filter(Boolean);
  return (
    <tr>
      <th scope="row">{boardName(c.boardUid)}</th>
      <td>
        <StateMark
          look={
            refused
              ? { word: "refuses", tone: "bad", shape: "cross" }
              : { word: "can", tone: "ok", shape: "check" }
          }
        />
        <span class="sub wrap">
          {refused ? `${c.refusal?.text} ${c.refusal?.remedy}` : parts.join(", ") || kNone}
        </span>
      </td>
    </tr>
  );
}
