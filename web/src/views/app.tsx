import { useEffect } from "preact/hooks";
import { AlertState } from "../api/types";
import { alerts } from "../store/fleet";
import { fleetKnown, linkLive } from "../store/link";
import { LinkBanner, LinkPill } from "./link-banner";
import { Notices } from "./notices";
import { findView, kPages, pageOf, preloadPages } from "./pages";
import { Empty } from "./parts/bits";
import { href, route } from "./router";
import { sheetOpen, Shortcuts } from "./shortcuts";
import { nextTheme, theme } from "./theme";

const kQuietMs = 3000; // after the first data: time to fetch the other pages

function View() {
  const { view, id } = route.value;
  const Shown = findView(view);
  if (Shown !== undefined) return <Shown key={`${view}/${id}`} id={id} />;
  return (
    <Empty title="There is no such page">
      <p>
        <a href={href("fleet")}>Fleet</a>
      </p>
    </Empty>
  );
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
        {kPages.map((page) => (
          <a
            key={page.view}
            href={href(page.view)}
            aria-current={page.under.includes(view) ? "page" : undefined}
          >
            {page.label}
            {page.view === "alerts" && <FiringCount />}
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

/// Alerts that fire and that nobody looks after yet.
function FiringCount() {
  const n = alerts.all().filter((a) => a.state === AlertState.FIRING && a.ackTimeUs === 0n).length;
  return n === 0 ? null : (
    <span class="nav-count">
      {n}
      <span class="sr-only"> firing</span>
    </span>
  );
}

export function App() {
  const { view, id } = route.value;
  useEffect(() => {
    const page = pageOf(view)?.label ?? "";
    document.title = page === "" ? "odt-fleet" : `${page} · odt-fleet`;
    window.scrollTo(0, 0);
  }, [view, id]);
  const known = fleetKnown.value;
  useEffect(() => {
    if (!known) return;
    const timer = setTimeout(preloadPages, kQuietMs);
    return () => clearTimeout(timer);
  }, [known]);
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
