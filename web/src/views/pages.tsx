// Every page: where it stands in the navigation, its key, and what to fetch for it.
import { FleetView } from "./fleet";
import { PortsView } from "./ports";
import { lazy } from "./parts/lazy";

interface ViewProps {
  id: string;
}
interface View {
  (props: ViewProps): preact.JSX.Element;
  preload?: () => void;
}

const kViews: Record<string, View> = {
  fleet: () => <FleetView />,
  board: lazy(() => import("./board").then((m) => ({ id }) => <m.BoardView uidHex={id} />)),
  runs: lazy(() => import("./runs").then((m) => m.RunsView)),
  run: lazy(() => import("./run").then((m) => ({ id }) => <m.RunView runHex={id} />)),
  campaigns: lazy(() => import("./campaigns/list").then((m) => m.CampaignsView)),
  campaign: lazy(() => import("./campaigns/campaign").then((m) => m.CampaignView)),
  weights: lazy(() => import("./weights/weights").then((m) => m.WeightsView)),
  ports: () => <PortsView />,
  launch: lazy(() => import("./launch/launch").then((m) => m.LaunchView)),
  report: lazy(() =>
    import("./report/report").then((m) => ({ id }) => <m.ReportView runHex={id} />),
  ),
  compare: lazy(() => import("./compare/compare").then((m) => m.CompareView)),
  layers: lazy(() =>
    import("./layers/layers").then((m) => ({ id }) => <m.LayersView runHex={id} />),
  ),
  evaluate: lazy(() => import("./evaluate/evaluate").then((m) => m.EvaluateView)),
  data: lazy(() => import("./data/data").then((m) => m.DataView)),
  models: lazy(() => import("./models/models").then((m) => m.ModelsView)),
  logs: lazy(() => import("./logs/logs").then((m) => m.LogsView)),
  console: lazy(() => import("./logs/console").then((m) => m.ConsoleView)),
  storage: lazy(() => import("./storage/storage").then((m) => m.StorageView)),
  alerts: lazy(() => import("./alerts/alerts").then((m) => m.AlertsView)),
  settings: lazy(() => import("./settings/settings").then((m) => m.SettingsView)),
  jobs: lazy(() => import("./jobs").then((m) => m.JobsView)),
};
// Addresses of before that people may have kept.
const kMoved: Record<string, string> = {
  library: "models",
  trash: "storage",
};

export const findView = (name: string): View | undefined => kViews[kMoved[name] ?? name];

export interface Page {
  view: string;
  label: string;
  key: string; // on the keyboard
  under: string[]; // views that belong to it
}
const page = (view: string, label: string, key: string, ...under: string[]): Page => ({
  view,
  label,
  key,
  under: [view, ...under],
});

/// What the navigation shows, in its order.
export const kPages: readonly Page[] = [
  page("fleet", "Fleet", "f", "board", "ports", "launch"),
  page("runs", "Runs", "r", "run", "compare", "layers", "report"),
  page("campaigns", "Campaigns", "c", "campaign"),
  page("weights", "Weights", "w"),
  page("evaluate", "Evaluate", "e"),
  page("data", "Data", "d"),
  page("models", "Models", "m", "library"),
  page("logs", "Logs", "l", "console"),
  page("jobs", "Jobs", "j"),
  page("storage", "Storage", "s", "trash"),
  page("alerts", "Alerts", "a"),
  page("settings", "Settings", ","),
];

export const pageOf = (view: string): Page | undefined =>
  kPages.find(({ under }) => under.includes(view));

/// Fetches the parts of all pages in a quiet moment: they then open at once, also while the daemon is away.
export function preloadPages(): void {
  for (const view of Object.values(kViews)) view.preload?.();
}
