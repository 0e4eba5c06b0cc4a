import { useLayoutEffect, useRef } from "preact/hooks";
import { heatColour } from "./heatmap";
import { lineColour } from "./palette";

export interface SampleProps {
  kind: string; // "image", "series", "table"
  shape: readonly number[]; // [N] or [C,H,W]
  values: ArrayLike<number>;
  label: string; // in words, for those who do not see it
  dark: boolean;
  width: number; // px
}

/// How a sample is drawn: as a picture, as a spectrogram (frames across, bands up), or as lines.
export function drawnAs(kind: string, shape: readonly number[]): "image" | "spectrogram" | "lines" {
  if (kind === "image") return "image";
  const [, frames = 1, bands = 1] = shape;
  return shape.length === 3 && frames > 1 && bands > 1 ? "spectrogram" : "lines";
}

/// One sample as a small picture of its own values.
export function SamplePicture(props: SampleProps) {
  return drawnAs(props.kind, props.shape) === "lines" ? (
    <Lines {...props} />
  ) : (
    <Pixels {...props} />
  );
}

// Without words it is a part of something that has them.
const spoken = (label: string) =>
  label === "" ? { "aria-hidden": true } : { role: "img" as const, "aria-label": label };

function Pixels({ kind, shape, values, label, dark, width }: SampleProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [channels = 1, rows = 1, columns = 1] = shape;
  const spectrogram = kind !== "image";
  const [w, h] = spectrogram ? [rows, columns * channels] : [columns, rows];
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context == null || w * h === 0) return;
    const pixels = context.createImageData(w, h);
    if (spectrogram) paintSpectrogram(pixels, shape, values, dark);
    else paintImage(pixels, channels, values);
    context.putImageData(pixels, 0, 0);
  }, [values, dark, w, h]);
  const height = Math.round((width * h) / Math.max(1, w));
  return (
    <canvas
      ref={canvas}
      class="sample-pixels"
      width={w}
      height={h}
      style={{ width: `${width}px`, height: `${Math.min(height, width * 2)}px` }}
      {...spoken(label)}
    />
  );
}

function range(values: ArrayLike<number>): [number, number] {
  let lo = Infinity;
  let hi = -Infinity;
  for (let i = 0; i < values.length; i++) {
    const v = values[i] ?? 0;
    if (v < lo) lo = v;
    if (v > hi) hi = v;
  }
  return hi > lo ? [lo, hi] : [lo, lo + 1];
}

// Bytes are shown as they are; anything else over its own range.
function paintImage(pixels: ImageData, channels: number, values: ArrayLike<number>): void {
  const [least, most] = range(values);
  const [lo, hi] = least >= 0 && most <= 255 && most > 1 ? [0, 255] : [least, most];
  const plane = pixels.width * pixels.height;
  for (let i = 0; i < plane; i++) {
    for (let c = 0; c < 3; c++) {
      const v = values[(channels === 3 ? c : 0) * plane + i] ?? 0;
      pixels.data[4 * i + c] = (255 * (v - lo)) / (hi - lo);
    }
    pixels.data[4 * i + 3] = 255;
  }
}

function paintSpectrogram(
  pixels: ImageData,
  shape: readonly number[],
  values: ArrayLike<number>,
  dark: boolean,
): void {
  const [channels = 1, frames = 1, bands = 1] = shape;
  const [lo, hi] = range(values);
  for (let c = 0; c < channels; c++) {
    for (let f = 0; f < frames; f++) {
      for (let b = 0; b < bands; b++) {
        const v = values[(c * frames + f) * bands + b] ?? 0;
        const [r = 0, g = 0, blue = 0] = (
          heatColour((v - lo) / (hi - lo), dark).match(/\d+/g) ?? []
        ).map(Number);
        const at = 4 * ((c * bands + (bands - 1 - b)) * frames + f);
        pixels.data.set([r, g, blue, 255], at);
      }
    }
  }
}

function Lines({ shape, values, label, dark, width }: SampleProps) {
  const channels = shape.length === 3 ? (shape[0] ?? 1) : 1;
  const n = Math.floor(values.length / Math.max(1, channels));
  const height = Math.round(width * 0.55);
  const [lo, hi] = range(values);
  const path = (c: number): string => {
    const points: string[] = [];
    const step = Math.max(1, Math.floor(n / (width * 2)));
    for (let i = 0; i < n; i += step) {
      const x = 2 + (i * (width - 4)) / Math.max(1, n - 1);
      const y = height - 2 - (((values[c * n + i] ?? 0) - lo) / (hi - lo)) * (height - 4);
      points.push(`${x.toFixed(1)} ${y.toFixed(1)}`);
    }
    return `M${points.join("L")}`;
  };
  return (
    <svg
      class="sample-lines"
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      {...spoken(label)}
    >
      {Array.from({ length: Math.min(channels, 16) }, (_, c) => (
        <path key={c} d={path(c)} fill="none" stroke={lineColour(c, dark)} stroke-width="1.3" />
      ))}
    </svg>
  );
}
