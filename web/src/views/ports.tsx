import { toHex } from "../api/bytes";
import { PortState, type Port } from "../api/types";
import { useState } from "preact/hooks";
import { adopt, adoptPlace, pending, release } from "../store/actions";
import { boardName, ports } from "../store/fleet";
import { fleetKnown, linkLive } from "../store/link";
import { Command, Empty, Loading, Panel } from "./parts/bits";
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
    <Panel
      title="Ports without a board"
      class="ports"
      aside={<a href={href("ports")}>All ports</a>}
    >
      <PortsTable list={list} />
    </Panel>
  );
}

/// Every port that the daemon knows, and another place to look for a board.
export function PortsView() {
  const list = ports.all().sort((a, b) => a.path.localeCompare(b.path));
  return (
    <>
      <header class="page-head">
        <nav aria-label="Where this is" class="crumbs">
          <a href={href("fleet")}>Fleet</a> <span aria-hidden="true">/</span>
        </nav>
        <h1>Ports</h1>
      </header>
      <Panel title="Adopt a port">
        <AdoptForm />
      </Panel>
      {list.length > 0 ? (
        <Panel title="Ports">
          <PortsTable list={list} />
        </Panel>
      ) : fleetKnown.value ? (
        <Empty title="No ports" command="odtctl port list">
          <p>
            Serial ports appear here when they are plugged in; boards that dial in over the network
            need none.
          </p>
        </Empty>
      ) : (
        <Loading />
      )}
    </>
  );
}

function AdoptForm() {
  const [path, setPath] = useState("");
  const [baud, setBaud] = useState("");
  const [uid, setUid] = useState("");
  return (
    <form
      class="fields pad"
      onSubmit={(e) => {
        e.preventDefault();
        void adoptPlace(path.trim(), Number(baud) || 0, uid.trim()).then((ok) => ok && setPath(""));
      }}
    >
      <label>
        Path
        <input
          value={path}
          required
          placeholder="/dev/ttyACM0 or tcp:host:7001"
          onInput={(e) => setPath(e.currentTarget.value)}
        />
      </label>
      <label>
        Baud
        <input
          value={baud}
          inputMode="numeric"
          pattern="[0-9]*"
          placeholder="tried one by one"
          onInput={(e) => setBaud(e.currentTarget.value)}
        />
      </label>
      <label>
        Board expected
        <input
          value={uid}
          pattern="([0-9a-fA-F]{2}){8,16}"
          placeholder="any"
          title="The uid, 16 to 32 hex digits: another board there is not taken"
          onInput={(e) => setUid(e.currentTarget.value)}
        />
      </label>
      <div class="field-end">
        <button
          type="submit"
          class="primary"
          disabled={
            path.trim() === "" || !linkLive.value || pending.value.has(`adopt/${path.trim()}`)
          }
        >
          Adopt
        </button>
      </div>
    </form>
  );
}

function PortsTable({ list }: { list: readonly Port[] }) {
  return (
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
            {port.state === PortState.ONLINE ? "" : "was "}
            {boardName(port.boardUid)}
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
            {port.state === PortState.ONLINE && port.reason === undefined && (
              <a href={href("board", toHex(port.boardUid))}>{boardName(port.boardUid)}</a>
            )}
            {port.reason?.text}
            {port.reason?.remedy !== undefined && <span class="sub">{port.reason.remedy}</span>}
          </span>
        )}
        {port.adopted && (
          <button
            type="button"
            class="small release"
            disabled={!linkLive.value || pending.value.has(`release/${port.path}`)}
            aria-label={`Release ${port.path}`}
            onClick={() => void release(port)}
          >
            Release
          </button>
        )}
      </td>
    </tr>
  );
}

const hex4 = (n: number): string => n.toString(16).padStart(4, "0");
