// SPDX-License-Identifier: GPL-2.0-or-later
// Bundles one file per page into web/static/built/, which git ignores.
import { build } from "esbuild";

await build({
  entryPoints: ["live.js", "flame.js"],
  outdir: "../static/built",
  bundle: true,
  minify: true,
  // d3-flame-graph recognises its own tree by the class name "Node".
  keepNames: true,
  format: "iife",
  target: "es2020",
  // Its colours are ours: see web/static/app.css.
  loader: { ".css": "empty" },
  legalComments: "linked",
  logLevel: "warning",
});
