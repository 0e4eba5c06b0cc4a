// Whom this browser's calls are for, where boards are reserved: the header x-odt-owner of each.
import type { Interceptor } from "@connectrpc/connect";

const kKey = "odt-owner";

function read(): string {
  try {
    return localStorage.getItem(kKey) ?? "";
  } catch {
    return "";
  }
}

let current = read();
export const currentOwner = (): string => current;
export function setOwner(name: string): void {
  current = name;
  try {
    localStorage.setItem(kKey, name);
  } catch {
    // For this page only.
  }
}

export const withOwner: Interceptor = (next) => (request) => {
  // A header holds no other letters.
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(current)) {
    request.header.set("x-odt-owner", current);
  }
  return next(request);
};
