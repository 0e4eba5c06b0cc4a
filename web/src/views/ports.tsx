import { toHex } from "../api/bytes";
import { PortState, type Port } from "../api/types";
import { adopt, pending } from "../store/actions";
import { boardName, ports } from "../store/fleet";
import { Command, Panel } from "./parts/bits";
import { StateMark } from "./parts/state-mark";
import { href } from "./router";
import { portLook } from "./words";

/// Ports that want attention: unclaimed ones to adopt, and those where something is wrong.
export function PortsPanel() {
  const list = ports
    .all()
    .filter((p) => p.state !== PortState.ONLINE && p.state !== PortState.GONE)
    .sort((a, b) => a.path.localeCompare(b.path));
  if (list.length === 0) return null;
  return (
    <Panel title="Ports without a board" class="ports">
      <div class="table-frame">
        <table>
          <thead>
            <tr>
              <th scope="col">Port</th>
              <th scope="col">State</th>
              <th scope="col">Device</th>
              <th scope="col">What to do</th>
            </tr>
          </thead>
          <tbody>
            {list.map((port) => (
              <PortRow key={port.path} port={port} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function PortRow({ port }: { port: Port }) {
  const usb = port.usbVid !== 0 ? `${hex4(port.usbVid)}:${hex4(port.usbPid)}` : "";
  return (
    <tr>
      <th scope="row">
        <code>{port.path}</code>
        {port.boardUid.length > 0 && (
          <a class="sub" href={href("board", toHex(port.boardUid))}>
            was {boardName(port.boardUid)}
          </a>
        )}
      </th>
      <td>
        <StateMark look={portLook(port.state)} />
      </td>
      <td>
        {port.description || "–"}
        <span class="sub">{[usb, port.usbSerial].filter(Boolean).join(" · ")}</span>
      </td>
      <td>
        {port.state === PortState.UNCLAIMED ? (
          <span class="row">
            <button
              type="button"
              disabled={pending.value.has(`adopt/${port.path}`)}
              onClick={() => void adopt(port)}
              aria-label={`Adopt ${port.path}`}
            >
              Adopt
            </button>
            <span class="quiet">or</span>
            <Command text={`odtctl port adopt ${port.path}`} />
          </span>
        ) : (
          <span>
            {port.reason?.text}
            {port.reason?.remedy !== undefined && <span class="sub">{port.reason.remedy}</span>}
          </span>
        )}
      </td>
    </tr>
  );
}

const hex4 = (n: number): string => n.toString(16).padStart(4, "0");
