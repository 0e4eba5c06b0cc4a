import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Board, Model } from "../../api/types";
import { boards, datasets } from "../../store/fleet";
import { bytes, duration, kNone } from "../../store/format";
import { fitOf } from "../../store/models";
import { usToMs } from "../../store/numbers";
import { fitting } from "../newest";
import { Empty, Panel } from "../parts/bits";
import { StateMark } from "../parts/state-mark";
import { useLoad } from "../parts/use-load";
import { href } from "../router";

const kMost = 40; // boards asked at once

/// Whether each board could train the model: the daemon checks a run of one epoch and begins none.
export function FitPanel({ model }: { model: Model }) {
  const choices = fitting(model, datasets.all());
  const [chosen, setChosen] = useState("");
  const datasetHex = chosen || toHex(choices[0]?.id ?? new Uint8Array());
  const dataset = datasets.get(datasetHex).value;
  const list = boards
    .all()
    .sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))
    .slice(0, kMost);
  return (
    <Panel
      title="On which boards it trains"
      aside={
        choices.length > 0 ? (
          <label>
            with{" "}
            <select value={datasetHex} onChange={(e) => setChosen(e.currentTarget.value)}>
              {choices.map((d) => (
                <option key={toHex(d.id)} value={toHex(d.id)}>
                  {d.name}
                </option>
              ))}
            </select>
          </label>
        ) : undefined
      }
    >
      {dataset === undefined ? (
        <Empty
          title="No dataset has samples of its input"
          command="odtctl data import samples.csv --name NAME"
        />
      ) : list.length === 0 ? (
        <Empty title="No board is known yet" command="odtctl port list" />
      ) : (
        <div class="table-frame">
          <table>
            <thead>
              <tr>
                <th scope="col">Board</th>
                <th scope="col">Answer</th>
                <th scope="col">RAM</th>
                <th scope="col">One epoch</th>
                <th scope="col">What it would hold</th>
              </tr>
            </thead>
            <tbody>
              {list.map((b) => (
                <FitRow key={toHex(b.uid)} model={model} board={b} datasetHex={datasetHex} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function FitRow({ model, board, datasetHex }: { model: Model; board: Board; datasetHex: string }) {
  const uid = toHex(board.uid);
  const { value: fit } = useLoad(
    `${toHex(model.hash)}/${uid}/${datasetHex}`,
    "ask for the fit",
    () => fitOf(model, board, datasets.peek(datasetHex)?.id ?? new Uint8Array()),
  );
  const can = fit !== null && fit.problem === null;
  return (
    <tr>
      <th scope="row">
        <a href={href("board", uid)}>{board.name}</a>
        <span class="sub">{board.core}</span>
      </th>
      <td data-label="Answer">
        {fit === null ? (
          <span class="quiet">asking …</span>
        ) : (
          <StateMark
            look={
              can
                ? { word: "fits", tone: "ok", shape: "check" }
                : { word: "refuses", tone: "bad", shape: "cross" }
            }
          />
        )}
        {fit?.problem && (
          <span class="sub wrap">
            {fit.problem.cause} {fit.problem.remedy}
          </span>
        )}
      </td>
      <td data-label="RAM">
        {fit !== null && fit.boardRamBytes > 0n ? (
          <>
            {bytes(fit.ramBytes)} of {bytes(fit.boardRamBytes)}
            <progress
              class="progress fit-bar"
              max={Number(fit.boardRamBytes)}
              value={Number(fit.ramBytes)}
              aria-label={`RAM of ${board.name} taken`}
            />
          </>
        ) : (
          `${bytes(model.ramK8Bytes)} of ${bytes(board.ramBytes)}`
        )}
      </td>
      <td data-label="One epoch" class="nowrap">
        {fit === null || fit.totalUs === 0n
          ? kNone
          : fit.totalUs < 1_000_000n
            ? "under 1 s"
            : duration(usToMs(fit.totalUs))}
      </td>
      <td data-label="Holds" class="wrap">
        {fit?.placement || kNone}
      </td>
    </tr>
  );
}
