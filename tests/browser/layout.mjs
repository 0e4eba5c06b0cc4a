// What does not fit: elements over the edge of the window or cut by their box, and text under 12 px.

/// Faults on the page as it is shown, one line each.
export function layoutFaults(page) {
  return page.evaluate(() => {
    const kSmallest = 12;
    const faults = [];
    const name = (e) =>
      `${e.tagName.toLowerCase()}${e.classList.length > 0 ? `.${[...e.classList].join(".")}` : ""} "${(e.textContent ?? "").trim().slice(0, 40)}"`;
    const visible = (e) => {
      const r = e.getBoundingClientRect();
      const s = getComputedStyle(e);
      return r.width > 1 && r.height > 1 && s.visibility !== "hidden" && s.clipPath === "none";
    };
    // Within something that scrolls or hides on purpose an element may be wider than the window.
    const contained = (e) => {
      for (let p = e.parentElement; p !== null && p !== document.body; p = p.parentElement) {
        if (/auto|scroll|hidden/.test(getComputedStyle(p).overflowX)) return true;
      }
      return false;
    };
    const wide = document.documentElement.scrollWidth - window.innerWidth;
    if (wide > 0) faults.push(`the page is ${wide} px wider than the window`);
    for (const e of document.querySelectorAll("main *, header *")) {
      if (!visible(e) || e.closest(".sr-only, svg *, .u-wrap") !== null) continue;
      const r = e.getBoundingClientRect();
      if ((r.right > window.innerWidth + 1 || r.left < -1) && !contained(e))
        faults.push(`${name(e)} reaches over the window`);
      const style = getComputedStyle(e);
      const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim() !== "");
      if (own && parseFloat(style.fontSize) < kSmallest - 0.01)
        faults.push(`${name(e)} has text of ${parseFloat(style.fontSize).toFixed(1)} px`);
      if (!own) continue;
      const cut =
        (e.scrollWidth > e.clientWidth + 1 &&
          style.overflowX === "visible" &&
          style.display !== "inline") ||
        (e.scrollHeight > e.clientHeight + 3 && style.overflowY === "hidden");
      if (
        cut &&
        e.clientWidth > 0 &&
        !/INPUT|SELECT|TEXTAREA/.test(e.tagName) &&
        !e.matches("tr > *")
      )
        faults.push(`${name(e)} is cut: ${e.scrollWidth} in ${e.clientWidth} px`);
    }
    for (const t of document.querySelectorAll("main svg text")) {
      const px = parseFloat(getComputedStyle(t).fontSize) * (t.getCTM()?.a ?? 1);
      if (visible(t) && px < kSmallest - 0.01)
        faults.push(`${name(t)} is drawn at ${px.toFixed(1)} px`);
    }
    return [...new Set(faults)];
  });
}
