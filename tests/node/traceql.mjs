// Parses the TraceQL queries of a JSON list on stdin; prints where one is wrong, and exits 1 if any is.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "package.json"));
const { parser } = require("@grafana/lezer-traceql");

let wrong = 0;
for (const query of JSON.parse(readFileSync(0, "utf8"))) {
  parser.parse(query).iterate({
    enter(node) {
      if (node.type.isError) {
        wrong += 1;
        console.log(`at ${node.from} of ${query}`);
      }
    },
  });
}
process.exit(wrong === 0 ? 0 : 1);
