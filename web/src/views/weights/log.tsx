import { fromHex, toHex } from "../../api/bytes";
import { clients } from "../../api/clients";
import {
  ListSnapshotLogResponse_End as End,
  ListSnapshotLogResponse_Link as Link,
  type ListSnapshotLogResponse,
} from "../../api/types";
import { serverNowMs } from "../../store/clock";
import { boardName } from "../../store/fleet";
import { clock, count, kNone } from "../../store/format";
import { usToMs } from "../../store/numbers";
import { snapshotName } from "../../store/snapshot-tree";
import { Panel, ProblemBox } from "../parts/bits";
import { StateMark } from "../parts/state-mark";
import { useLoad } from "../parts/use-load";
import { href } from "../router";
import type { Look } from "../words";

const kLinks: Record<Link, Look> = {
  [Link.UNSPECIFIED]: { word: "no chain", tone: "quiet", shape: "dashed" },
  [Link.OK]: { word: "checked", tone: "ok", shape: "check" },
  [Link.BROKEN]: { word: "broken", tone: "bad", shape: "cross" },
  [Link.CONTENT_LOST]: { word: "content lost", tone: "bad", shape: "square" },
};

function endText(log: ListSnapshotLogResponse): string {
  switch (log.end) {
    case End.MODEL:
      return "It began with the model’s own weights.";
    case End.UNKNOWN:
      return "What the oldest came from is not known: it was read from a board or uploaded.";
    case End.DELETED:
      return `Its parent ${toHex(log.missing).slice(0, 12)} is not here any more.`;
    default:
      return "Older ones are not shown.";
  }
}

/// The snapshot and what it began as, back to the model's own weights; every link of the hash chain is checked.
export function LogPanel({ hex }: { hex: string }) {
  const { value, problem, reload } = useLoad(hex, "read where the weights come from", () =>
    clients().weights.listSnapshotLog({ hash: fromHex(hex) }, { timeoutMs: 15_000 }),
  );
  return (
    <Panel title="Provenance">
      {problem !== null && <ProblemBox problem={problem} retry={reload} />}
      {value === null ? (
        problem === null && (
          <p class="pad quiet" aria-busy="true">
            Loading …
          </p>
        )
      ) : (
        <>
          <div class="table-frame">
            <table>
              <thead>
                <tr>
                  <th scope="col">Link</th>
                  <th scope="col">Weights</th>
                  <th scope="col">How</th>
                  <th scope="col">Board</th>
                  <th scope="col">Step</th>
                  <th scope="col">When</th>
                </tr>
              </thead>
              <tbody>
                {value.entries.map(({ snapshot: s, link }) => {
                  if (s === undefined) return null;
                  const own = toHex(s.hash);
                  return (
                    <tr key={own}>
                      <td>
                        <StateMark look={kLinks[link] ?? kLinks[Link.UNSPECIFIED]} />
                      </td>
                      <th scope="row">
                        {own === hex ? (
                          snapshotName(s)
                        ) : (
                          <a href={href("weights", own)}>{snapshotName(s)}</a>
                        )}
                      </th>
                      <td data-label="How">
                        {s.origin || kNone}
                        {s.parents.length > 0 && (
                          <span class="sub">average of {s.parents.length}</span>
                        )}
                      </td>
                      <td data-label="Board">
                        {s.boardUid.length > 0 ? boardName(s.boardUid) : kNone}
                      </td>
                      <td data-label="Step">{s.step > 0 ? count(s.step) : kNone}</td>
                      <td data-label="When" class="nowrap">
                        {clock(usToMs(s.meta?.createTimeUs ?? 0n), serverNowMs.value)}
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
          <p class="pad quiet">{endText(value)}</p>
        </>
      )}
    </Panel>
  );
}
