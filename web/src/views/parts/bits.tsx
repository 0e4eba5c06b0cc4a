import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Problem } from "../../api/errors";
import type { Accuracy } from "../../api/types";
import { kNone, percent, points, shortHash, significant } from "../../store/format";
import { fleetKnown, linkLive } from "../../store/link";
import { fraction } from "../../store/numbers";

export function Progress({ done, total, label }: { done: number; total: number; label: string }) {
  const share = total > 0 ? Math.min(1, done / total) : 0;
  return (
    <progress class="progress" max={1000} value={Math.round(share * 1000)} aria-label={label}>
      {percent(share, 0)}
    </progress>
  );
}

/// A change of accuracy in points, signed; what rounds to nothing is neither good nor bad.
export function Delta({ from, to }: { from: number; to: number }) {
  const small = Math.abs(to - from) < 0.0005;
  const tone = small ? "quiet" : to < from ? "tone-bad" : "tone-ok";
  return <span class={`delta ${tone}`}>{points(from, to)}</span>;
}

/// before → after with the gain in points, coloured and signed.
export function BeforeAfter({
  before,
  after,
}: {
  before: Accuracy | undefined;
  after: Accuracy | undefined;
}) {
  const [b, a] = [fraction(before), fraction(after)];
  if (!Number.isFinite(b) && !Number.isFinite(a)) return <span class="quiet">{kNone}</span>;
  const gain = Number.isFinite(a - b) ? <Delta from={b} to={a} /> : null;
  return (
    <span class="before-after">
      <span class="quiet">{percent(b)}</span>
      <span aria-label="to" class="arrow">
        →
      </span>
      <span class="strong">{percent(a)}</span> {gain}
    </span>
  );
}

/// A change of an error in per cent of where it began; less is better.
export function ErrorDelta({ from, to }: { from: number; to: number }) {
  const change = from > 0 ? to / from - 1 : 0;
  const tone = Math.abs(change) < 0.0005 ? "quiet" : change > 0 ? "tone-bad" : "tone-ok";
  const sign = change < 0 ? "−" : "+";
  return <span class={`delta ${tone}`}>{`${sign}${percent(Math.abs(change))}`}</span>;
}

/// Squared error before → after, where there are no classes.
export function ErrorChange({ before, after }: { before: number; after: number }) {
  if (!Number.isFinite(before) && !Number.isFinite(after))
    return <span class="quiet">{kNone}</span>;
  return (
    <span class="before-after" title="mean squared error">
      <span class="quiet">mse {significant(before)}</span>
      <span aria-label="to" class="arrow">
        →
      </span>
      <span class="strong">{significant(after)}</span>{" "}
      {Number.isFinite(after - before) && <ErrorDelta from={before} to={after} />}
    </span>
  );
}

/// A hash or id: short to the eye, whole on the clipboard.
export function Hash({ value, label }: { value: Uint8Array | string; label: string }) {
  const hex = typeof value === "string" ? value : toHex(value);
  const [copied, setCopied] = useState(false);
  if (hex === "") return <span class="quiet">{kNone}</span>;
  const copy = (): void => {
    void navigator.clipboard?.writeText(hex).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return (
    <button type="button" class="hash" title={hex} onClick={copy}>
      <code>{shortHash(hex)}</code>
      <span class="hash-hint">{copied ? "copied" : "copy"}</span>
      <span class="sr-only"> {label}</span>
    </button>
  );
}

export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Tile(props: { label: string; value: ComponentChildren; note?: ComponentChildren }) {
  return (
    <div class="tile">
      <div class="tile-label">{props.label}</div>
      <div class="tile-value">{props.value}</div>
      {props.note !== undefined && <div class="tile-note">{props.note}</div>}
    </div>
  );
}

export function Panel(props: {
  title: string;
  aside?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}) {
  return (
    <section class={`panel ${props.class ?? ""}`}>
      <header class="panel-head">
        <h2>{props.title}</h2>
        {props.aside !== undefined && <div class="panel-aside">{props.aside}</div>}
      </header>
      {props.children}
    </section>
  );
}

/// What is not there yet, and the exact next command that brings it.
export function Empty(props: { title: string; children?: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.children}
      {props.command !== undefined && <Command text={props.command} />}
    </div>
  );
}

export function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard?.writeText(text).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return (
    <span class="command">
      <code>{text}</code>
      <button type="button" class="small" onClick={copy} aria-label={`Copy command ${text}`}>
        {copied ? "Copied" : "Copy"}
      </button>
    </span>
  );
}

export function ProblemBox({ problem, retry }: { problem: Problem; retry?: () => void }) {
  return (
    <div class="problem" role="alert">
      <p class="problem-title">{problem.title}</p>
      <p>{problem.cause}</p>
      <p class="problem-remedy">{problem.remedy}</p>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/// Something is on its way; without a connection it is not, and that is said. `page`: the heading of a page that is
/// nothing else yet.
export function Loading(props: { what?: string; page?: string }) {
  const away = fleetKnown.value && !linkLive.value;
  return (
    <>
      {props.page !== undefined && <h1 class="sr-only">{props.page}</h1>}
      {away ? (
        <p class="not-read">Not read yet: it comes when the daemon is back.</p>
      ) : (
        <p class="loading" aria-busy="true">
          {props.what ?? "Waiting for the daemon’s first snapshot …"}
        </p>
      )}
    </>
  );
}
