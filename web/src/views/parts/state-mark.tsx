import type { JSX } from "preact";
import type { Look, Shape } from "../words";

const kShapes: Record<Shape, JSX.Element> = {
  disc: <circle cx="6" cy="6" r="4.5" fill="currentColor" />,
  ring: <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="1.8" />,
  triangle: <path d="M6 1.2 11.4 10.800H.6z" fill="currentColor" />,
  diamond: <path d="M6 .6 11.400 6 6 11.400.600 6z" fill="currentColor" />,
  square: (
    <path
      d="M1.500 1.500h9v9h-9zM3.800 3.800l4.400 4.400M8.200 3.800 3.800 8.200"
      fill="none"
      stroke="currentColor"
      stroke-width="1.600"
    />
  ),
  dashed: (
    <circle
      cx="6"
      cy="6"
      r="4.200"
      fill="none"
      stroke="currentColor"
      stroke-width="1.600"
      stroke-dasharray="2 1.300"
    />
  ),
  play: <path d="M2.200 1 10.800 6 2.200 11z" fill="currentColor" />,
  pause: <path d="M2.500 1.500h2.500v9H2.500zM7 1.500h2.500v9H7z" fill="currentColor" />,
  half: (
    <>
      <circle cx="6" cy="6" r="4.300" fill="none" stroke="currentColor" stroke-width="1.500" />
      <path d="M6 1.700a4.300 4.300 0 0 1 0 8.600z" fill="currentColor" />
    </>
  ),
  "dot-ring": (
    <>
      <circle cx="6" cy="6" r="4.300" fill="none" stroke="currentColor" stroke-width="1.500" />
      <circle cx="6" cy="6" r="1.800" fill="currentColor" />
    </>
  ),
  check: <path d="m1.500 6.500 3 3 6-7" fill="none" stroke="currentColor" stroke-width="2" />,
  cross: <path d="m2 2 8 8M10 2 2 10" fill="none" stroke="currentColor" stroke-width="2" />,
  slash: (
    <>
      <circle cx="6" cy="6" r="4.300" fill="none" stroke="currentColor" stroke-width="1.500" />
      <path d="m3.200 8.800 5.600-5.600" stroke="currentColor" stroke-width="1.500" />
    </>
  ),
};

/// A state as text, shape and colour together; `age` is what goes on ticking behind it.
export function StateMark({ look, age }: { look: Look; age?: string }) {
  return (
    <span class={`state tone-${look.tone}`}>
      <svg class="state-shape" viewBox="0 0 12 12" aria-hidden="true">
        {kShapes[look.shape]}
      </svg>
      <span class="state-word">{look.word}</span>
      {age !== undefined && age !== "" && <span class="state-age">{age}</span>}
    </span>
  );
}
