// Validates dashboards against a JSON schema made from Grafana's own types, those of each panel's options included.
// Arguments: files. Prints one line for each thing that is wrong, and exits 1 if there is any.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "package.json"));
const { createGenerator } = require("ts-json-schema-generator");
const Ajv = require("ajv").default;

const types = path.join(process.cwd(), "node_modules/@grafana/schema/dist/esm/raw");
const panelTypes = {
  timeseries: ["composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.d.ts", "Options", "FieldConfig"],
  stat: ["composable/stat/panelcfg/x/StatPanelCfg_types.gen.d.ts", "Options"],
  bargauge: ["composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen.d.ts", "Options"],
  table: ["composable/table/panelcfg/x/TablePanelCfg_types.gen.d.ts", "Options"],
};

const validators = new Map();
function validator(file, type) {
  const key = `${file} ${type}`;
  if (!validators.has(key)) {
    const schema = createGenerator({
      path: path.join(types, file),
      type,
      tsconfig: path.join(process.cwd(), "tsconfig.json"),
      skipTypeCheck: true,
      additionalProperties: false,
    }).createSchema(type);
    validators.set(key, new Ajv({ strict: false, allErrors: true }).compile(schema));
  }
  return validators.get(key);
}

let wrong = 0;
function check(where, file, type, value) {
  const validate = validator(file, type);
  if (!validate(value)) {
    for (const error of validate.errors) {
      wrong += 1;
      console.log(`${where}${error.instancePath}: ${error.message} ${JSON.stringify(error.params)}`);
    }
  }
}

for (const file of process.argv.slice(2)) {
  const dashboard = JSON.parse(readFileSync(file, "utf8"));
  check(path.basename(file), "dashboard/x/dashboard_types.gen.d.ts", "Dashboard", dashboard);
  for (const panel of dashboard.panels ?? []) {
    if (panel.type === "row") continue;
    const known = panelTypes[panel.type];
    const where = `${path.basename(file)} "${panel.title}" `;
    if (known === undefined) {
      wrong += 1;
      console.log(`${where}: no types for panels of type ${panel.type}`);
      continue;
    }
    const [source, options, custom] = known;
    check(`${where}options`, source, options, panel.options ?? {});
    if (custom !== undefined) check(`${where}custom`, source, custom, panel.fieldConfig?.defaults?.custom ?? {});
  }
}
process.exit(wrong === 0 ? 0 : 1);
