import { toHex } from "../../api/bytes";
import { boards } from "../../store/fleet";
import { boardState } from "../board-state";
import { StateMark } from "./state-mark";

/// Boards to tick, by name.
export function BoardChoice(props: { uids: string[]; setUids: (uids: string[]) => void }) {
  const list = boards
    .all()
    .sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  const toggle = (uid: string, on: boolean): void => {
    const rest = props.uids.filter((u) => u !== uid);
    props.setUids(on ? [...rest, uid] : rest);
  };
  if (list.length === 0) return <p class="quiet">No board is known yet.</p>;
  return (
    <fieldset class="choices">
      <legend class="sr-only">Boards</legend>
      {list.map((board) => {
        const uid = toHex(board.uid);
        return (
          <label key={uid} class="check">
            <input
              type="checkbox"
              checked={props.uids.includes(uid)}
              onChange={(e) => toggle(uid, e.currentTarget.checked)}
            />{" "}
            {board.name} <StateMark look={boardState(board).look} />
          </label>
        );
      })}
    </fieldset>
  );
}
