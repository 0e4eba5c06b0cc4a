import { useEffect, useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import { CaptureRole, type Capture, type CapturedWindow, type Dataset } from "../../api/types";
import { SamplePicture } from "../../charts/sample";
import { pending } from "../../store/actions";
import { getWindow, labelWindow, windowValues } from "../../store/capture";
import { datasets } from "../../store/fleet";
import { count, duration } from "../../store/format";
import { linkLive } from "../../store/link";
import { className } from "../../store/samples";
import { newest } from "../newest";
import { Empty, Panel } from "../parts/bits";
import { dark } from "../theme";

const kShown = 60;

const kRoles: Record<CaptureRole, string> = {
  [CaptureRole.UNSPECIFIED]: "not a sample",
  [CaptureRole.TRAIN]: "training",
  [CaptureRole.HELDOUT]: "held-out",
};

/// The windows that the board holds, newest first, each with its values, its class and what it is used for.
export function WindowsPanel({
  uidHex,
  capture: c,
  reload,
}: {
  uidHex: string;
  capture: Capture;
  reload: () => void;
}) {
  const named = newest(datasets.all()).filter((d) => d.nClasses > 0);
  const [namesOf, setNamesOf] = useState("");
  const dataset = named.find((d) => toHex(d.id) === namesOf);
  const list = [...c.windows].reverse().slice(0, kShown);
  const unlabelled = c.windows.filter((w) => w.label === undefined).length;
  return (
    <Panel
      title="Windows"
      aside={
        <>
          <span>
            {count(c.windows.length)} held, {count(unlabelled)} without a class
          </span>
          {named.length > 0 && (
            <label>
              Names of{" "}
              <select value={namesOf} onChange={(e) => setNamesOf(e.currentTarget.value)}>
                <option value="">numbers</option>
                {named.map((d) => (
                  <option key={toHex(d.id)} value={toHex(d.id)}>
                    {d.name}
                  </option>
                ))}
              </select>
            </label>
          )}
        </>
      }
    >
      {list.length === 0 ? (
        <Empty title="No window yet" command="odtctl capture list BOARD">
          <p>The first comes as soon as the sensor has given as many steps as a window has.</p>
        </Empty>
      ) : (
        <ul>
          {list.map((w) => (
            <WindowRow
              key={w.id}
              uidHex={uidHex}
              capture={c}
              window={w}
              dataset={dataset}
              reload={reload}
            />
          ))}
        </ul>
      )}
    </Panel>
  );
}

function WindowRow(props: {
  uidHex: string;
  capture: Capture;
  window: CapturedWindow;
  dataset: Dataset | undefined;
  reload: () => void;
}) {
  const { uidHex, window: w, dataset, capture: c } = props;
  const [label, setLabel] = useState(w.label ?? 0);
  const [keep, setKeep] = useState(CaptureRole.TRAIN);
  const values = useValues(uidHex, w.id);
  const classes = Math.max(dataset?.nClasses ?? 10, (w.label ?? 0) + 1);
  const give = (): void => void labelWindow(uidHex, w.id, label, keep).then(props.reload);
  return (
    <li class="window-row">
      {values !== null ? (
        <SamplePicture
          kind="series"
          shape={[c.channels, c.windowSteps, 1]}
          values={values}
          label={`Window ${w.id}`}
          dark={dark.value}
          width={150}
        />
      ) : (
        <span class="sample-none" style={{ width: "150px", height: "82px" }} />
      )}
      <span>
        <strong>Window {w.id}</strong>
        <span class="sub">at {duration(w.timeMs)} of the board’s time</span>
      </span>
      <span>
        {w.label === undefined ? <span class="quiet">no class</span> : className(dataset, w.label)}
        <span class="sub">
          {kRoles[w.kept]}
          {w.byRule ? ", by a rule" : w.byButton ? ", by the button" : ""}
        </span>
      </span>
      <label>
        <span class="sr-only">Class of window {w.id}</span>
        <select value={label} onChange={(e) => setLabel(Number(e.currentTarget.value))}>
          {Array.from({ length: classes }, (_, i) => (
            <option key={i} value={i}>
              {className(dataset, i)}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span class="sr-only">Use of window {w.id}</span>
        <select
          value={keep}
          onChange={(e) => setKeep(Number(e.currentTarget.value) as CaptureRole)}
        >
          <option value={CaptureRole.TRAIN}>training</option>
          <option value={CaptureRole.HELDOUT}>held-out</option>
          <option value={CaptureRole.UNSPECIFIED}>not a sample</option>
        </select>
      </label>
      <button
        type="button"
        class="small"
        aria-label={`Label window ${w.id}`}
        disabled={
          !linkLive.value ||
          pending.value.has(`label/${uidHex}/${w.id}`) ||
          w.kept !== CaptureRole.UNSPECIFIED
        }
        title={w.kept !== CaptureRole.UNSPECIFIED ? "It is a sample already" : ""}
        onClick={give}
      >
        Label
      </button>
    </li>
  );
}

/// A window's values, read once.
function useValues(uidHex: string, id: number): number[] | null {
  const [values, setValues] = useState<number[] | null>(null);
  useEffect(() => {
    let current = true;
    setValues(null);
    getWindow(uidHex, id)
      .then((w) => current && setValues(windowValues(w.values, w.dtype)))
      .catch(() => undefined); // the window has given way to a newer one
    return () => {
      current = false;
    };
  }, [uidHex, id]);
  return values;
}
