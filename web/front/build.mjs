// SPDX-License-Identifier: GPL-2.0-or-later
// Bundles one file per page into web/static/built/, which git ignores.
import { build } from "esbuild";

await build({
  entryPoints: ["live.js", "form.js", "tail.js", "every.js", "flame.js", "trend.js"],
  outdir: "../static/built",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "linked",
  logLevel: "warning",
});
