// Colours that stay apart for the usual kinds of colour blindness, on either background; lines beyond
// the eighth repeat them dashed.
const kLight = [
  "#0067a5",
  "#c2410c",
  "#00795a",
  "#a8408a",
  "#7a5c00",
  "#4f46c9",
  "#8a3324",
  "#4d5b68",
];
const kDark = [
  "#5bb4f0",
  "#ff9e64",
  "#4fd6a5",
  "#ef9ad3",
  "#e3c14d",
  "#a5a0ff",
  "#e8907c",
  "#aab7c4",
];

export const lineColour = (index: number, dark: boolean): string =>
  (dark ? kDark : kLight)[index % kLight.length] ?? "#808080";
export const lineDash = (index: number): number[] => (index < kLight.length ? [] : [6, 4]);
