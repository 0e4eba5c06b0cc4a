import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/layout.css";
import "./styles/tables.css";
import "./styles/charts.css";
import { startSession } from "./store/session";
import { App } from "./views/app";

const root = document.getElementById("app");
if (root !== null) {
  startSession();
  render(<App />, root);
}
