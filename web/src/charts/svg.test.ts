import { describe, expect, it } from "vitest";
import { chartSvg, escapeHtml, tableHtml } from "./svg";

const line = { label: "a <b>", x: [1, 2, 3], y: [1, NaN, 3], colour: 0 };

describe("charts as files", () => {
  it("draw values, leave holes out, and escape every name", () => {
    const svg = chartSvg({ title: 'T "x"', xLabel: "step", lines: [line], format: String });
    expect(svg).toContain('d="M60.0 186.0L628.0 8.0"');
    expect(svg).toContain("a &#60;b&#62;");
    expect(svg).not.toContain("<b>");
    expect(svg).not.toContain("style=");
  });
  it("are nothing without a value", () => {
    expect(
      chartSvg({ title: "", xLabel: "", lines: [{ ...line, y: [NaN] }], format: String }),
    ).toBe("");
  });
  it("take a flat line", () => {
    const svg = chartSvg({
      title: "t",
      xLabel: "x",
      lines: [{ ...line, y: [2, 2, 2] }],
      format: String,
    });
    expect(svg).not.toContain("NaN");
  });
});

describe("tables as files", () => {
  it("escape what they hold", () => {
    expect(tableHtml(["h"], [["<script>", "b"]])).toContain(
      '<th scope="row">&#60;script&#62;</th><td>b</td>',
    );
    expect(escapeHtml("a&'\"")).toBe("a&#38;&#39;&#34;");
  });
});
