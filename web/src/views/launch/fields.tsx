import type { ComponentChildren } from "preact";
import { toHex } from "../../api/bytes";
import { datasets, models, snapshots } from "../../store/fleet";
import { count, shortHash } from "../../store/format";
import type { MoreWishes, RunWish } from "../../store/launch";
import { newest } from "../newest";

interface Props {
  wish: RunWish;
  setWish: (wish: RunWish) => void;
}

function Field(props: { label: string; children: ComponentChildren; hint?: string }) {
  return (
    <label title={props.hint}>
      {props.label}
      {props.children}
    </label>
  );
}

/// Settings of a run; the less usual ones behind a fold.
export function Fields({ wish, setWish }: Props) {
  const set = (change: Partial<RunWish>): void => setWish({ ...wish, ...change });
  const text = (
    key: "name" | "epochs" | "muWeight" | "batch" | "k",
    placeholder = "by policy",
  ) => ({
    value: wish[key],
    placeholder,
    onInput: (e: { currentTarget: HTMLInputElement }) => set({ [key]: e.currentTarget.value }),
  });
  const whole = { inputMode: "numeric" as const, pattern: "-?[0-9]*" };
  return (
    <>
      <div class="fields pad">
        <Field label="Model">
          <select value={wish.modelHex} onChange={(e) => set({ modelHex: e.currentTarget.value })}>
            {newest(models.all()).map((m) => (
              <option key={toHex(m.hash)} value={toHex(m.hash)}>
                {m.name}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Dataset">
          <select
            value={wish.datasetHex}
            onChange={(e) => set({ datasetHex: e.currentTarget.value })}
          >
            {newest(datasets.all()).map((d) => (
              <option key={toHex(d.id)} value={toHex(d.id)}>
                {d.name} ({count(d.train)} samples)
              </option>
            ))}
          </select>
        </Field>
        <Field label="Epochs">
          <input {...whole} {...text("epochs")} />
        </Field>
        <Field label="mu weight" hint="One number, or three by thirds of the run: 1,-1,-3">
          <input {...text("muWeight")} pattern="-?[0-9]+(, *-?[0-9]+, *-?[0-9]+)?" />
        </Field>
        <Field label="Batch">
          <input {...whole} {...text("batch")} />
        </Field>
        <Field label="k" hint="Bits of the stored weights, 2 to 16">
          <input {...whole} {...text("k")} />
        </Field>
        <Field label="Name">
          <input {...text("name", "")} maxLength={63} />
        </Field>
      </div>
      <MoreFields wish={wish} setWish={setWish} />
    </>
  );
}

function MoreFields({ wish, setWish }: Props) {
  const more = wish.more ?? {};
  const set = (change: Partial<MoreWishes>): void =>
    setWish({ ...wish, more: { ...more, ...change } });
  const text = (
    key: "muOffset" | "tMin" | "tMax" | "kMax" | "telemetryEvery" | "priority",
    placeholder: string,
  ) => ({
    value: more[key] ?? "",
    placeholder,
    inputMode: "decimal" as const,
    pattern: "-?[0-9]*(\\.[0-9]+)?",
    onInput: (e: { currentTarget: HTMLInputElement }) => set({ [key]: e.currentTarget.value }),
  });
  const check = (key: "fixed" | "streamed" | "noGuard", label: string) => (
    <label class="check" key={key}>
      <input
        type="checkbox"
        checked={more[key] === true}
        onChange={(e) => set({ [key]: e.currentTarget.checked })}
      />
      {label}
    </label>
  );
  const model = wish.modelHex;
  const starts = snapshots.all().filter((s) => toHex(s.modelHash) === model);
  return (
    <details class="pad more-fields">
      <summary>Precision, start weights, reporting</summary>
      <div class="fields">
        <Field label="Precision adapts" hint="Each layer's bits move with its updates (APT)">
          <select
            value={more.apt ?? ""}
            onChange={(e) => set({ apt: e.currentTarget.value as MoreWishes["apt"] })}
          >
            <option value="">no</option>
            <option value="quarters">each quarter of an epoch</option>
            <option value="epochs">each epoch</option>
          </select>
        </Field>
        <Field label="Tmin" hint="Mean update below: one bit more">
          <input {...text("tMin", "0.3")} disabled={!more.apt} />
        </Field>
        <Field label="Tmax" hint="Above: one bit less; at least 4 times Tmin">
          <input {...text("tMax", "never")} disabled={!more.apt} />
        </Field>
        <Field label="Most bits">
          <input {...text("kMax", "what memory allows")} disabled={!more.apt} />
        </Field>
        <Field label="mu offset">
          <input {...text("muOffset", "by policy")} />
        </Field>
        <Field label="Start weights">
          <select value={more.start ?? ""} onChange={(e) => set({ start: e.currentTarget.value })}>
            <option value="">the model’s own</option>
            {starts.map((s) => (
              <option key={toHex(s.hash)} value={toHex(s.hash)}>
                {s.aliases[0] ?? shortHash(toHex(s.hash))}, step {count(s.step)}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Report every n-th step">
          <input {...text("telemetryEvery", "1")} />
        </Field>
        <Field label="Priority" hint="-100 to 100; the highest that waits for a board goes first">
          <input {...text("priority", "0")} />
        </Field>
      </div>
      <p class="row">
        {check("fixed", "policy fixed: nothing chosen by held-out accuracy")}
        {check("streamed", "stream the samples")}
        {check("noGuard", "no guard: keep the last weights, even if worse")}
      </p>
    </details>
  );
}
