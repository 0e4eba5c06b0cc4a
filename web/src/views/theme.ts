import { computed, effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const kKey = "odt-theme";

function stored(): Theme {
  try {
    const t = localStorage.getItem(kKey);
    return t === "light" || t === "dark" ? t : "auto";
  } catch {
    return "auto"; // storage is forbidden here
  }
}

const media = window.matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(media.matches);
media.addEventListener("change", () => {
  systemDark.value = media.matches;
});

export const theme = signal<Theme>(stored());
export const dark = computed(() =>
  theme.value === "auto" ? systemDark.value : theme.value === "dark",
);

effect(() => {
  document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
});

export function nextTheme(): void {
  const order: Theme[] = ["auto", "light", "dark"];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length] ?? "auto";
  try {
    localStorage.setItem(kKey, theme.value);
  } catch {
    // Kept for this visit only.
  }
}
