import { useEffect } from "preact/hooks";
import { linkLive } from "../store/link";
import { BoardView } from "./board";
import { FleetView } from "./fleet";
import { JobsView } from "./jobs";
import { LibraryView } from "./library";
import { LinkBanner, LinkPill } from "./link-banner";
import { Notices } from "./notices";
import { Empty } from "./parts/bits";
import { href, route } from "./router";
import { RunView } from "./run";
import { RunsView } from "./runs";
import { sheetOpen, Shortcuts } from "./shortcuts";
import { nextTheme, theme } from "./theme";

const kPages: [string, string, string[]][] = [
  ["fleet", "Fleet", ["fleet", "board"]],
  ["runs", "Runs", ["runs", "run"]],
  ["library", "Library", ["library"]],
  ["jobs", "Jobs", ["jobs"]],
];

function View() {
  const { view, id } = route.value;
  switch (view) {
    case "fleet":
      return <FleetView />;
    case "board":
      return <BoardView key={id} uidHex={id} />;
    case "runs":
      return <RunsView />;
    case "run":
      return <RunView key={id} runHex={id} />;
    case "library":
      return <LibraryView />;
    case "jobs":
      return <JobsView />;
    default:
      return (
        <Empty title="There is no such page">
          <p>
            <a href={href("fleet")}>Fleet</a>
          </p>
        </Empty>
      );
  }
}

function TopBar() {
  const { view } = route.value;
  return (
    <header class="top">
      <a class="brand" href={href("fleet")}>
        <img src="/icon.svg" alt="" width="22" height="22" />
        odt-fleet
      </a>
      <nav aria-label="Pages" class="pages">
        {kPages.map(([page, label, views]) => (
          <a key={page} href={href(page)} aria-current={views.includes(view) ? "page" : undefined}>
            {label}
          </a>
        ))}
      </nav>
      <span class="top-end">
        <LinkPill />
        <button type="button" class="quiet-button" onClick={nextTheme} title="Colours (t)">
          <span class="sr-only">Colours: </span>
          {theme.value}
        </button>
        <button
          type="button"
          class="quiet-button"
          aria-label="Keyboard shortcuts"
          title="Keys (?)"
          onClick={() => (sheetOpen.value = true)}
        >
          ?
        </button>
      </span>
    </header>
  );
}

export function App() {
  const { view, id } = route.value;
  useEffect(() => {
    const page = kPages.find(([, , views]) => views.includes(view))?.[1] ?? "";
    document.title = page === "" ? "odt-fleet" : `${page} · odt-fleet`;
    window.scrollTo(0, 0);
  }, [view, id]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        To the content
      </a>
      <TopBar />
      <LinkBanner />
      <main id="main" tabIndex={-1} class={linkLive.value ? "" : "not-live"}>
        <View />
      </main>
      <Notices />
      <Shortcuts />
    </>
  );
}
