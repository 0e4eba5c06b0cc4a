import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { bytes } from "../store/format";
import { loadSystemInfo, systemInfo } from "../store/system";
import { kPages } from "./pages";
import { go, href } from "./router";
import { nextTheme } from "./theme";

const kKeys: [string, string][] = [
  ["/", "Search"],
  ...kPages.map(({ key, label }): [string, string] => [key, label]),
  ["t", "Colours: automatic, light, dark"],
  ["?", "This sheet"],
  ["Esc", "Leave the search, close"],
];
export const sheetOpen = signal(false);

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");

function onKey(e: KeyboardEvent): void {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (isTyping(e.target)) {
    if (e.key === "Escape") (e.target as HTMLElement).blur();
    return;
  }
  const page = kPages.find(({ key }) => key === e.key);
  if (e.key === "/") {
    const box = document.getElementById("search");
    if (box === null) return;
    e.preventDefault();
    box.focus();
    if (box instanceof HTMLInputElement) box.select();
  } else if (e.key === "?") {
    sheetOpen.value = !sheetOpen.value;
  } else if (e.key === "t") {
    nextTheme();
  } else if (page !== undefined) {
    go(href(page.view));
  }
}

function About() {
  useEffect(() => {
    if (sheetOpen.value) void loadSystemInfo();
  }, [sheetOpen.value]);
  const info = systemInfo.value;
  if (info === null) return null;
  return (
    <p class="quiet about">
      odtd {info.version}, rules {info.rulesVersion}. Data in <code>{info.dataDir}</code>,{" "}
      {bytes(info.controlDbBytes + info.telemetryDbBytes)}; {bytes(info.diskFreeBytes)} free.
    </p>
  );
}

export function Shortcuts() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  useEffect(() => {
    if (sheetOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [sheetOpen.value]);
  return (
    <dialog
      ref={dialog}
      class="sheet"
      aria-labelledby="sheet-title"
      onClose={() => (sheetOpen.value = false)}
      onClick={(e) => e.target === dialog.current && dialog.current?.close()}
    >
      <h2 id="sheet-title">Keys</h2>
      <dl class="keys">
        {kKeys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <About />
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
