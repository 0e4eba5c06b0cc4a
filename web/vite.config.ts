import { defineConfig, type Plugin } from "vite";

// `import url from "worker-chunk:./file"` gives the URL of a module worker that shares its chunks with
// the page, so that the API client is loaded once for both.
function workerChunk(): Plugin {
  const prefix = "worker-chunk:";
  let serving = false;
  return {
    name: "worker-chunk",
    enforce: "pre",
    configResolved(config) {
      serving = config.command === "serve";
    },
    async resolveId(id, importer) {
      if (!id.startsWith(prefix)) return null;
      const target = await this.resolve(id.slice(prefix.length), importer);
      return target === null ? null : `\0${prefix}${target.id}`;
    },
    load(id) {
      if (!id.startsWith(`\0${prefix}`)) return null;
      const file = id.slice(prefix.length + 1);
      if (serving) return `export default ${JSON.stringify(`/@fs${file}`)};`;
      const ref = this.emitFile({ type: "chunk", id: file, name: "watch-worker" });
      return `export default import.meta.ROLLUP_FILE_URL_${ref};`;
    },
  };
}

const api = process.env["ODT_URL"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [workerChunk()],
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/odt.api.v1.": { target: api } } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
} as Parameters<typeof defineConfig>[0]);
