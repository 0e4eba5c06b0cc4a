import { CaptureView } from "./capture";
import "./data.css";
import { DatasetView } from "./dataset";
import { DatasetList } from "./list";

/// #/data: all datasets, and importing; #/data/capture: windows of a board's sensor; #/data/ID: one dataset.
export function DataView({ id }: { id: string }) {
  if (id === "") return <DatasetList />;
  return id === "capture" ? <CaptureView /> : <DatasetView hex={id} />;
}
