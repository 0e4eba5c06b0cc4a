import { DiffView } from "./diff";
import { SnapshotList } from "./list";
import { SnapshotView } from "./snapshot";
import "./weights.css";

/// #/weights: all snapshots; #/weights/diff?a=&b=: two of them; #/weights/HASH: one.
export function WeightsView({ id }: { id: string }) {
  if (id === "") return <SnapshotList />;
  return id === "diff" ? <DiffView /> : <SnapshotView hex={id} />;
}
